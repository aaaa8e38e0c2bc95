/* devices.c - see devices.h. */
#include "learn/hmm/devices.h"

#include <string.h>

#include "base/mem.h"
#include "gpu/gpu.h"
#include "gpu/learners.h"

enum { ALIGN = 256, TOKENS = 1 << 20, ROWS = 1 << 16 }; /* of a launch, at most */

/* Of a lane: what goes to the device and what comes from it, until the dealer accepts it. */
struct lane {
    i32 *first, *word; /* [ROWS + 1], [tokens] */
    u8 *path;          /* [all tokens] of a piece */
};

/* Places in the heap, in bytes; those of a lane follow from its begin. */
struct layout {
    i64 trans, start, lanes, first, word, back, path, lane_bytes;
};

struct sharing {
    const struct shared_paths *q;
    struct offload *offload;
    struct layout at;
    i64 tokens;             /* of a launch */
    i32 nlane;
    struct lane *lane;      /* [nlane] */
    i32 *start;             /* [L] scores << shift */
    struct deal_part *part; /* [nparts] */
    i32 *part_at;           /* [nparts] first sequence in `order` */
    i32 nparts;
};

static i64 length(const struct sharing *s, i32 k) {
    const i32 row = s->q->order[k];
    return s->q->rows->first[row + 1] - s->q->rows->first[row];
}

/* ------------------------------------------------------------------ a device ------------------------------------------------ */

static void prepare(void *self, const struct offload_lane *at) {
    struct sharing *s = self;
    const struct hmm_fixed *f = &s->q->h->fixed;
    gpu_put_bytes(at->heap, f->emit, (i64)s->q->h->W * f->kern.Lp * (i64)sizeof *f->emit);
    gpu_put_bytes(at->heap + s->at.trans, f->packed, (i64)f->kern.L * f->kern.Lp * (i64)sizeof *f->packed);
    gpu_put_bytes(at->heap + s->at.start, s->start, f->kern.L * (i64)sizeof *s->start);
}

/* Sequences order[from, to), whose tokens fit a launch. */
static void decode_rows(struct sharing *s, const struct offload_lane *at, i32 from, i32 to, u8 *path) {
    const struct viterbi *kern = &s->q->h->fixed.kern;
    struct lane *l = &s->lane[at->slot];
    char *mine = at->heap + s->at.lanes + at->lane * s->at.lane_bytes;
    i64 n = 0;
    for (i32 k = from; k < to; k++) {
        l->first[k - from] = (i32)n;
        memcpy(l->word + n, s->q->rows->word + s->q->rows->first[s->q->order[k]], (size_t)length(s, k) * sizeof *l->word);
        n += length(s, k);
    }
    l->first[to - from] = (i32)n;
    gpu_put_bytes(mine + s->at.first, l->first, (to - from + 1) * (i64)sizeof *l->first);
    gpu_put_bytes(mine + s->at.word, l->word, n * (i64)sizeof *l->word);
    const struct gpu_viterbi v = {.trans = (const i32 *)(const void *)(at->heap + s->at.trans),
                                  .start = (const i32 *)(const void *)(at->heap + s->at.start),
                                  .emit = (const i32 *)(const void *)at->heap,
                                  .first = (const i32 *)(const void *)(mine + s->at.first),
                                  .word = (const i32 *)(const void *)(mine + s->at.word),
                                  .back = (u8 *)mine + s->at.back, .path = (u8 *)mine + s->at.path, .n = to - from,
                                  .L = kern->L, .Lp = kern->Lp, .shift = kern->shift};
    gpu_viterbi(&v);
    gpu_get(path, n, v.path, n, n, 1);
}

/* Sequences of the piece in launches of at most `tokens`. */
static void on_device(void *self, const struct offload_lane *at, const struct deal_piece *p) {
    struct sharing *s = self;
    const i32 base = s->part_at[p->part], end = base + (i32)p->hi;
    u8 *path = s->lane[at->slot].path;
    for (i32 k = base + (i32)p->lo; k < end;) {
        const i32 from = k;
        i64 n = 0;
        while (k < end && k - from < ROWS && n + length(s, k) <= s->tokens) n += length(s, k++);
        decode_rows(s, at, from, k, path);
        path += n;
    }
}

/* The cores write their paths in place. */
static void accept(void *self, const struct offload_lane *at, const struct deal_piece *p) {
    const struct sharing *s = self;
    const u8 *path = s->lane[at->slot].path;
    if (!at->heap) return;
    for (i32 k = s->part_at[p->part] + (i32)p->lo; k < s->part_at[p->part] + (i32)p->hi; k++) {
        memcpy(s->q->path + s->q->rows->first[s->q->order[k]], path, (size_t)length(s, k));
        path += length(s, k);
    }
}

static void on_host(void *self, const struct offload_lane *at, const struct deal_piece *p) {
    const struct sharing *s = self;
    (void)at;
    s->q->on_host(s->q->self, s->part_at[p->part] + (i32)p->lo, s->part_at[p->part] + (i32)p->hi);
}

/* ------------------------------------------------------------------ opening ------------------------------------------------- */

/* A partition for each power of two of lengths: a row of it costs its longest. */
static err cut(struct sharing *s) {
    i64 cap = 0;
    i32 n = s->q->rows->n;
    while (n > 0 && length(s, n - 1) == 0) n--; /* empty ones come last, and have no path */
    NEW(s->part_at, 64);
    for (i32 k = 0; k < n;) {
        const i64 longest = length(s, k);
        const i32 from = k;
        while (k < n && 2 * length(s, k) > longest) k++;
        GROW(s->part, s->nparts, cap);
        s->part[s->nparts] = (struct deal_part){k - from, (f64)longest};
        s->part_at[s->nparts++] = from;
    }
    return 0;
}

static void set_layout(struct sharing *s, i64 longest) {
    const struct viterbi *k = &s->q->h->fixed.kern;
    struct layout *l = &s->at;
    s->tokens = lmax(TOKENS, longest);
    l->trans = round_up64((i64)s->q->h->W * k->Lp * (i64)sizeof(i32), ALIGN);
    l->start = round_up64(l->trans + (i64)k->L * k->Lp * (i64)sizeof(i32), ALIGN);
    l->lanes = round_up64(l->start + k->L * (i64)sizeof(i32), ALIGN);
    l->first = 0;
    l->word = round_up64((ROWS + 1) * (i64)sizeof(i32), ALIGN);
    l->back = round_up64(l->word + s->tokens * (i64)sizeof(i32), ALIGN);
    l->path = round_up64(l->back + s->tokens * k->L, ALIGN);
    l->lane_bytes = round_up64(l->path + s->tokens, ALIGN);
}

static err lanes_new(struct sharing *s) {
    const struct hmm_fixed *f = &s->q->h->fixed;
    const i64 all = s->q->rows->first[s->q->rows->n] - s->q->rows->first[0];
    const i32 n = offload_slots(s->offload);
    NEW(s->start, f->kern.L);
    for (i32 j = 0; j < f->kern.L; j++) s->start[j] = f->start[j] * (1 << f->kern.shift);
    NEW(s->lane, n);
    s->nlane = n;
    for (i32 i = 0; i < n; i++) {
        NEW(s->lane[i].first, ROWS + 1);
        NEW(s->lane[i].word, s->tokens);
        NEW(s->lane[i].path, all);
    }
    return 0;
}

static err run(struct sharing *s, const struct resources *use) {
    char shares[256];
    TRY(cut(s));
    if (s->nparts == 0) return 0;
    if (length(s, 0) > INT32_MAX / 2)
        return FAIL_AT(E106, "--device", "no --device", "a sequence of %lld tokens is too long for a device",
                       (long long)length(s, 0));
    set_layout(s, length(s, 0));
    const i64 bytes = s->at.lanes + offload_lanes(use) * s->at.lane_bytes;
    const struct offload_kernel k = {.self = s, .bytes = bytes, .grain = 1, .prepare = prepare, .on_device = on_device,
                                     .on_host = on_host, .accept = accept};
    TRY(offload_open(&k, use, &s->offload));
    TRY(lanes_new(s));
    TRY(offload_run(s->offload, s->part, s->nparts, false));
    offload_shares(s->offload, shares, sizeof shares);
    event_note(use->events, EVENT_DETAIL, "tokens by device: %s", shares);
    return 0;
}

err shared_paths_run(const struct shared_paths *p, const struct resources *use) {
    struct sharing s = {.q = p};
    const err e = run(&s, use);
    offload_close(s.offload);
    for (i32 i = 0; i < s.nlane; i++) {
        mem_free(s.lane[i].first);
        mem_free(s.lane[i].word);
        mem_free(s.lane[i].path);
    }
    mem_free(s.lane);
    mem_free(s.start);
    mem_free(s.part);
    mem_free(s.part_at);
    return e;
}
