/* rig.c - chooses the kind of rig; raw f32 files for the exchange with PyTorch. */
#include "rig.h"

#include <stdio.h>

#include "base/file.h"
#include "base/mem.h"

err rig_new(const struct spec *s, struct pool *pool, struct rig **out) {
    struct spec whole = *s;
    if (s->T < 1 || s->B < 1 || s->I < 1 || s->H < 1) return FAIL(E103, "a case needs T, B, I and H, all at least 1");
    if (!whole.slice) whole.slice = s->prec == PREC_BF16 ? 512 : 256;
#if defined(BENCH_STEP)
    if (s->step) return step_rig_new(&whole, pool, out);
    if (s->layer || s->proj) return layer_rig_new(&whole, pool, out);
#endif
    if (s->step || s->layer || s->proj) return FAIL(E103, "layers and full steps are measured by bench_step");
    return cell_rig_new(&whole, pool, out);
}

void rig_free(struct rig *r) {
    if (r) r->free(r);
}

err raw_read(const char *dir, const char *name, i64 n, f32 *out) {
    char path[512];
    struct file_in f;
    snprintf(path, sizeof path, "%s/%s.f32", dir, name);
    TRY(file_open(path, &f));
    err e = f.size == n * (i64)sizeof *out
                ? file_read_at(&f, 0, out, f.size)
                : FAIL_AT(E103, path, NULL, "holds %lld bytes, want %lld floats", (long long)f.size, (long long)n);
    file_close(&f);
    return e;
}

err raw_write(const char *dir, const char *name, i64 n, const f32 *v) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s.f32", dir, name);
    return file_write_all(path, v, n * (i64)sizeof *v);
}

void raw_draw(i64 n, f32 scale, f32 *out) {
    static u32 seed = 1;
    for (i64 i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        out[i] = scale * ((f32)(seed >> 8) / 16777216.0f - 0.5f);
    }
}
