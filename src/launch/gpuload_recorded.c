/* gpuload_recorded.c - loads that were written down, in place of a GPU: for tests, and to try a rule on what a node really did.
 *
 *     time,gpu,utilisation,memory      seconds, number of the GPU, per cent, per cent
 *     0,0,95,40                        all lines of one time make one sample; every sample has the same GPUs, 0, 1, .. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "launch/gpuload.h"

enum { FIELDS = 4, MOST_BYTES = 64 << 20, SHOWN = 40 };
static const char *const columns[FIELDS] = {"time", "gpu", "utilisation", "memory"};
static const char heading[] = "time,gpu,utilisation,memory";

struct reader {
    const char *path;
    i64 line;
    struct gpuload_record *out;
    i64 room;
    u64 seen; /* GPUs seen in the newest sample */
};

/* Fails with a message about a field of the line; field -1: about the line. */
static err bad(const struct reader *r, i32 field, const char *text, int n, const char *what, const char *fix) {
    char where[256], column[32] = "";
    if (field >= 0) snprintf(column, sizeof column, ":%s", columns[field]);
    snprintf(where, sizeof where, "%.200s:%lld%s", r->path, (long long)r->line, column);
    return FAIL_AT(E822, where, fix, "\"%.*s%s\" %s", n < SHOWN ? n : SHOWN, text, n > SHOWN ? ".." : "", what);
}

static err number(const struct reader *r, i32 field, const char *text, int n, f64 *out) {
    if (!str_to_f64(text, (size_t)n, '.', out) || !isfinite(*out))
        return bad(r, field, text, n, "is not a number", "a plain number, with a point");
    if (field == 0 && *out < 0)
        return bad(r, field, text, n, "lies below 0", "seconds from the beginning of the record, or since 1970");
    if (field == 1 && !(*out >= 0 && *out < GPU_MOST && *out == floor(*out)))
        return bad(r, field, text, n, "is no number of a GPU", "GPUs go by number, from 0 to 63");
    if (field > 1 && !(*out >= 0 && *out <= 100)) return bad(r, field, text, n, "lies outside 0 to 100", "per cent: 0 to 100");
    return 0;
}

/* A sample is complete if its GPUs are 0, 1, .. without gaps, as many as in the first sample. */
static err close_sample(struct reader *r) {
    struct gpuload_record *o = r->out;
    if (o->n == 0) return 0;
    struct gpuload_sample *s = &o->sample[o->n - 1];
    const i32 want = o->n > 1 ? o->sample[0].n : s->n;
    for (i32 i = 0; i < imax(want, s->n); i++) {
        char text[40];
        if (i < want && (r->seen >> i & 1)) continue;
        const int n = snprintf(text, sizeof text, "%g", s->time);
        r->line--; /* the sample ended on the line before */
        if (i >= want) return bad(r, -1, text, n, "is a time with more GPUs than the first one", "the same GPUs at every time");
        return bad(r, -1, text, n, "is a time that lacks one of the GPUs", "a line for each GPU at every time");
    }
    return 0;
}

static err add(struct reader *r, const f64 v[FIELDS], const char *text, int n) {
    struct gpuload_record *o = r->out;
    struct gpuload_sample *s = o->n > 0 ? &o->sample[o->n - 1] : NULL;
    const i32 gpu = (i32)v[1];
    if (s && v[0] < s->time) return bad(r, 0, text, n, "is before the time of the line above", "sort the lines by time");
    if (!s || v[0] > s->time) {
        TRY(close_sample(r));
        GROW(o->sample, o->n, r->room);
        s = &o->sample[o->n++];
        *s = (struct gpuload_sample){.time = v[0]};
        r->seen = 0;
    }
    if (r->seen >> gpu & 1) return bad(r, 1, text, n, "is there twice at one time", "one line for a GPU at a time");
    r->seen |= (u64)1 << gpu;
    s->n = imax(s->n, gpu + 1);
    s->gpu[gpu] = (struct gpu_load){.busy = v[2] / 100, .memory = v[3] / 100};
    return 0;
}

static err row(struct reader *r, const char *text, int n) {
    f64 v[FIELDS];
    const char *field[FIELDS + 1];
    int len[FIELDS + 1], fields = 0;
    for (const char *p = text, *end = text + n; fields <= FIELDS; fields++) {
        const char *comma = memchr(p, ',', (size_t)(end - p));
        field[fields] = p;
        len[fields] = (int)((comma ? comma : end) - p);
        if (!comma) break;
        p = comma + 1;
    }
    if (fields + 1 != FIELDS)
        return bad(r, -1, text, n, "does not have four fields", heading);
    for (i32 i = 0; i < FIELDS; i++) TRY(number(r, i, field[i], len[i], &v[i]));
    const i32 at = r->out->n > 0 && v[0] == r->out->sample[r->out->n - 1].time ? 1 : 0; /* column that the message names */
    return add(r, v, field[at], len[at]);
}

static err lines(struct reader *r, const char *text, i64 size) {
    for (const char *p = text, *end = text + size; p < end;) {
        const char *next = memchr(p, '\n', (size_t)(end - p));
        int n = (int)((next ? next : end) - p);
        if (n > 0 && p[n - 1] == '\r') n--;
        r->line++;
        if (r->line == 1 && !(n == (int)sizeof heading - 1 && memcmp(p, heading, (size_t)n) == 0))
            return bad(r, -1, p, n, "is not the line that names the columns", heading);
        if (r->line > 1 && n > 0) TRY(row(r, p, n));
        p = next ? next + 1 : end;
    }
    r->line++;
    return close_sample(r);
}

err gpuload_record_parse(const char *path, const char *text, i64 n, struct gpuload_record *out) {
    struct reader r = {.path = path, .out = out};
    *out = (struct gpuload_record){0};
    snprintf(out->source, sizeof out->source, "%s", path);
    err e = lines(&r, text, n);
    if (e >= 0 && out->n == 0) e = FAIL_AT(E822, path, heading, "the record holds no loads");
    if (e < 0) gpuload_record_free(out);
    return e;
}

err gpuload_record_load(const char *path, struct gpuload_record *out) {
    char *text = NULL;
    i64 n = 0;
    *out = (struct gpuload_record){0};
    TRY(file_load(path, MOST_BYTES, &text, &n));
    err e = gpuload_record_parse(path, text, n, out);
    mem_free(text);
    return e;
}

void gpuload_record_free(struct gpuload_record *r) {
    mem_free(r->sample);
    *r = (struct gpuload_record){0};
}

const struct gpuload_sample *gpuload_record_next(const struct gpuload_record *r, const struct gpuload_state *s, bool *over) {
    *over = false;
    for (i32 i = 0; i < r->n; i++)
        if (s->n == 0 || strcmp(s->source, r->source) != 0 || r->sample[i].time > s->time) return &r->sample[i];
    *over = true;
    return &r->sample[r->n - 1];
}
