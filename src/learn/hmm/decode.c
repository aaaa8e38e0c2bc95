/* decode.c - `stretto decode`: the Viterbi path of one long sequence from a file into a file. */
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "learn/hmm/symbols.h"
#include "learn/offload.h"
#include "learn/viterbi_slices.h"

enum { TEXT_BYTES = 1 << 20, LABEL_BYTES = 256 };

/* ------------------------------------------------------------------ the path as text ---------------------------------------- */

/* Labels with a line end, all at most LABEL_BYTES long. */
struct lines {
    char (*text)[LABEL_BYTES]; /* [L] */
    i32 *bytes;                /* [L] */
    char *buf;                 /* [TEXT_BYTES] */
};

static err fill_lines(const struct hmm *h, struct lines *l) {
    NEW(l->text, h->L);
    NEW(l->bytes, h->L);
    NEW(l->buf, TEXT_BYTES);
    for (i32 i = 0; i < h->L; i++) {
        const char *label = vocab_word(&h->label, i);
        const size_t n = strlen(label);
        if (n > LABEL_BYTES - 1)
            return FAIL(E214, "the label \"%.40s..\" is longer than %d bytes", label, LABEL_BYTES - 1);
        memcpy(l->text[i], label, n);
        l->text[i][n] = '\n';
        l->bytes[i] = (i32)n + 1;
    }
    return 0;
}

/* The lines of as many steps as fit, from *at on; returns their bytes. */
static i64 next_text(const struct lines *l, const u8 *path, i64 n, i64 *at) {
    i64 fill = 0;
    while (*at < n && fill + LABEL_BYTES <= TEXT_BYTES) {
        const u8 label = path[(*at)++];
        if (l->bytes[label] <= 8) memcpy(l->buf + fill, l->text[label], 8); /* a fixed size is much faster */
        else memcpy(l->buf + fill, l->text[label], (size_t)l->bytes[label]);
        fill += l->bytes[label];
    }
    return fill;
}

static err write_file(const struct lines *l, const u8 *path, i64 n, const char *out) {
    struct file_out f;
    TRY(file_create(out, &f));
    err e = 0;
    for (i64 at = 0; e >= 0 && at < n;) {
        const i64 bytes = next_text(l, path, n, &at);
        e = file_write(&f, l->buf, bytes);
    }
    if (e >= 0) return file_commit(&f);
    file_abort(&f);
    return e;
}

static err write_path(const struct hmm *h, const u8 *path, i64 n, const char *out, struct str *text) {
    struct lines l = {0};
    err e = fill_lines(h, &l);
    if (e >= 0 && strcmp(out, "-") != 0) e = write_file(&l, path, n, out);
    else
        for (i64 at = 0; e >= 0 && at < n;) {
            const i64 bytes = next_text(&l, path, n, &at);
            str_addn(text, l.buf, (size_t)bytes);
        }
    mem_free(l.text);
    mem_free(l.bytes);
    mem_free(l.buf);
    return e < 0 ? e : str_ok(text);
}

/* ------------------------------------------------------------------ decoding ------------------------------------------------ */

static void tell(const struct hmm *h, const struct hmm_symbols *s, const struct viterbi_long_result *r,
                 const struct resources *use) {
    if (s->unknown > 0)
        event_note(use->events, EVENT_WARNING, "%lld of %lld words are unknown to the training (the first: \"%s\"): all labels "
                   "have smoothed probabilities for them", (long long)s->unknown, (long long)s->n, s->first);
    event_note(use->events, EVENT_NOTE, "decoded %lld steps in %.3g s: %.1f million steps/s, threads %d, slices %d",
               (long long)s->n, r->seconds, 1e-6 * (f64)s->n / r->seconds, pool_size(use->pool), r->slices);
    if (r->serial)
        event_note(use->events, EVENT_NOTE, "the scores of slices depend on each other for long: most ran one after the other");
    event_note(use->events, EVENT_NOTE, "log-likelihood of the path %.10g, per step %.6f", (f64)r->score / h->fixed.scale,
               (f64)r->score / h->fixed.scale / (f64)s->n);
    event_note(use->events, EVENT_DETAIL, "%d rounds, %lld of %lld blocks repeated, %lld computed again for the path", r->rounds,
               (long long)r->again, (long long)r->blocks, (long long)r->traced);
}

static err decode(const struct hmm *h, const struct hmm_symbols *s, i32 slices, const struct resources *use, u8 *path) {
    const struct hmm_fixed *f = &h->fixed;
    struct viterbi_long_result r;
    struct viterbi kern;
    i32 *packed;
    NEW(packed, (i64)h->L * f->kern.Lp);
    viterbi_pack(use->kern->arch, h->L, f->trans, packed, &kern);
    const struct viterbi_long q = {.kern = &kern, .start = f->start, .unary = f->emit, .symbol = s->at,
                                   .symbol_bytes = s->bytes, .T = s->n, .slices = slices, .path = path};
    const err e = viterbi_long(&q, use, &r);
    mem_free(packed);
    if (e >= 0) tell(h, s, &r, use);
    return e;
}

err hmm_decode_file(const struct model *m, const struct options *o, const char *path, const char *out,
                    const struct resources *use, struct str *text) {
    const struct hmm *h = hmm_of(m);
    struct hmm_symbols s;
    u8 *labels = NULL;
    if (offload_wanted(use))
        return FAIL_AT(E106, "--device", "no --device", "decode runs one sequence on the cores; predict and eval take --device");
    TRY(hmm_symbols_read(h, path, use, &s));
    err e = mem_new((void **)&labels, s.n, sizeof *labels);
    if (e >= 0) e = decode(h, &s, (i32)o->slices, use, labels);
    if (e >= 0) e = write_path(h, labels, s.n, out, text);
    mem_free(labels);
    hmm_symbols_free(&s);
    return e;
}
