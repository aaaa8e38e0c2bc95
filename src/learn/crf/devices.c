/* devices.c - see devices.h. */
#include "learn/crf/devices.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/mem.h"
#include "gpu/gpu.h"
#include "gpu/learners.h"

enum { ALIGN = 256, TOKENS = 1 << 16, BLOCKS = 1 << 10, NOTE = 4 }; /* of a launch, at most; floats of a token's note */

/* Of a lane: what goes to the device and what comes from it, until the dealer accepts it. */
struct lane {
    struct crf_scratch scratch; /* for blocks with numbers that single precision cannot hold */
    i32 *first, *block;         /* [BLOCKS * CRF_TOGETHER + 1], [BLOCKS + 1] */
    f32 *d, *note, *pair;       /* of a piece: [tokens][Lp], [tokens][NOTE], [blocks][L][Lp] */
    f64 *nll;                   /* [sentences] */
    u8 *path;                   /* [tokens] */
};

/* Of a thread of the cores. */
struct worker {
    struct crf_scratch scratch;
    i32 *from;
    f32 *v;
};

/* Places in the heap, in bytes; those of a lane follow from its begin. */
struct layout {
    i64 attribute, gold, w, E, back, lanes;
    i64 first, block, u, a, d, note, pair, from, path, lane_bytes;
};

struct shared_crf {
    struct shared_sentences q;
    struct pool *pool;
    const struct crf_kern *kern;
    struct offload *offload;
    struct layout at;
    i64 room;               /* tokens of a launch */
    i32 longest;            /* sentence */
    i32 nblock, *block;     /* [nblock + 1] first sentence */
    i32 *part_at;           /* [ncut + 1] first block */
    struct deal_part *part; /* [ncut] */
    i32 nlane, nworker;
    struct lane *lane;
    struct worker *worker;
    struct crf_pass pass;   /* with the exponentials of this run, in worker[0].scratch */
    bool ran, paths;        /* rows are on the devices; what this run computes */
    f32 *d, *pair;          /* results: [ntoken][Lp], [nblock][L][Lp] */
    f64 *nll;               /* [nsentence] */
    i32 *best;              /* [ntoken] */
    i32 end;                /* of the piece of the cores */
    _Atomic i32 next;
    _Atomic i64 redone;     /* blocks that single precision cannot hold, of devices */
};

static i64 token(const struct shared_crf *s, i32 block) { return s->q.first[s->block[block]]; }
static i32 length(const struct shared_crf *s, i32 k) { return (i32)(s->q.first[k + 1] - s->q.first[k]); }
static i64 pairs(const struct shared_crf *s) { return (i64)s->q.pass.L * s->q.pass.Lp; }
static i32 sentences(const struct shared_crf *s) { return s->q.cut[s->q.ncut]; }

/* ------------------------------------------------------------------ a device ------------------------------------------------ */

static void prepare(void *self, const struct offload_lane *at) {
    const struct shared_crf *s = self;
    const struct crf_pass *p = &s->q.pass;
    const i64 n = s->q.first[sentences(s)];
    gpu_put_bytes(at->heap, p->at, (n + 1) * (i64)sizeof *p->at);
    if (p->at[n] > 0) gpu_put_bytes(at->heap + s->at.attribute, p->attribute, p->at[n] * (i64)sizeof *p->attribute);
    if (p->gold) gpu_put_bytes(at->heap + s->at.gold, p->gold, n * (i64)sizeof *p->gold);
}

static void begin(void *self, const struct offload_lane *at) {
    const struct shared_crf *s = self;
    const i64 bytes = pairs(s) * (i64)sizeof(f32);
    gpu_put_bytes(at->heap + s->at.w, s->q.pass.w, s->q.nrow * s->q.pass.Lp * (i64)sizeof(f32));
    if (s->paths) return;
    gpu_put_bytes(at->heap + s->at.E, s->pass.E, bytes);
    gpu_put_bytes(at->heap + s->at.back, s->pass.back, bytes);
}

/* The launch of blocks [from, to), whose sentences go to the device. */
static struct gpu_chain chain_of(struct shared_crf *s, const struct offload_lane *at, i32 from, i32 to) {
    const struct lane *l = &s->lane[at->slot];
    const struct layout *o = &s->at;
    char *heap = at->heap, *mine = heap + o->lanes + at->lane * o->lane_bytes;
    const i32 k0 = s->block[from], n = s->block[to] - k0;
    for (i32 k = 0; k <= n; k++) l->first[k] = (i32)(s->q.first[k0 + k] - s->q.first[k0]);
    for (i32 b = from; b <= to; b++) l->block[b - from] = s->block[b] - k0;
    gpu_put_bytes(mine + o->first, l->first, (n + 1) * (i64)sizeof *l->first);
    gpu_put_bytes(mine + o->block, l->block, (to - from + 1) * (i64)sizeof *l->block);
#define AT(type, where) ((type *)(void *)(where))
    const i64 A = (s->q.nrow - s->q.pass.L) * s->q.pass.Lp;
    return (struct gpu_chain){.w = AT(f32, heap + o->w), .at = AT(i64, heap), .attribute = AT(i32, heap + o->attribute),
                              .gold = AT(i32, heap + o->gold), .token0 = token(s, from), .first = AT(i32, mine + o->first),
                              .block = AT(i32, mine + o->block), .M = s->paths ? AT(f32, heap + o->w) + A : AT(f32, heap + o->E),
                              .back = AT(f32, heap + o->back), .u = AT(f32, mine + o->u), .a = AT(f32, mine + o->a),
                              .d = AT(f32, mine + o->d), .note = AT(f32, mine + o->note), .pair = AT(f32, mine + o->pair),
                              .from = AT(u8, mine + o->from), .path = AT(u8, mine + o->path),
                              .tokens = l->first[n], .n = n, .blocks = to - from, .L = s->q.pass.L, .Lp = s->q.pass.Lp};
#undef AT
}

/* Negative log-likelihood of sentence k from the notes of its tokens, as the kernel of the cores adds it up. */
static f64 likelihood(const struct shared_crf *s, i32 k, const f32 *note) {
    const struct crf_pass *p = &s->pass;
    const i32 *gold = p->gold + s->q.first[k], T = length(s, k);
    f64 score = (f64)(T - 1) * (f64)p->top, z = 0, scale = 1;
    for (i32 t = 0; t < T; t++) {
        score -= (f64)note[t * NOTE + 1];
        if (t > 0) score -= (f64)p->A[(i64)gold[t - 1] * p->Lp + gold[t]];
        score += (f64)note[t * NOTE];
        scale *= (f64)note[t * NOTE + 2];
        if ((t & 3) == 3) {
            z += log(scale);
            scale = 1;
        }
    }
    return score + (z + log(scale));
}

/* A block on the cores: sentences in order, whose pairs are summed together. */
static void take_block(const struct shared_crf *s, struct crf_scratch *c, i32 b, f32 *d, f32 *pair, f64 *nll) {
    struct crf_pass p = crf_scratch_pass(c, &s->q.pass);
    const i64 t0 = token(s, b);
    memset(c->pair, 0, sizeof *c->pair * (size_t)p.Lp * (size_t)p.Lp);
    for (i32 k = s->block[b]; k < s->block[b + 1]; k++)
        *nll++ = s->kern->sentence(&p, s->q.first[k], length(s, k), d + (s->q.first[k] - t0) * p.Lp, c->pair);
    memcpy(pair, c->pair, sizeof *pair * (size_t)pairs(s));
}

/* What the device has made of block b of a piece that begins with block b0. */
static void settle(struct shared_crf *s, struct lane *l, i32 b0, i32 b) {
    const i64 t0 = token(s, b) - token(s, b0);
    f64 *nll = l->nll + (s->block[b] - s->block[b0]);
    bool is_finite = true;
    for (i32 k = s->block[b]; k < s->block[b + 1]; k++) {
        nll[k - s->block[b]] = likelihood(s, k, l->note + (s->q.first[k] - token(s, b0)) * NOTE);
        is_finite = is_finite && isfinite(nll[k - s->block[b]]);
    }
    if (is_finite) return;
    s->redone++;
    take_block(s, &l->scratch, b, l->d + t0 * s->q.pass.Lp, l->pair + (b - b0) * pairs(s), nll);
}

static void launch(struct shared_crf *s, const struct offload_lane *at, i32 b0, i32 from, i32 to) {
    struct lane *l = &s->lane[at->slot];
    const struct gpu_chain c = chain_of(s, at, from, to);
    const i64 t0 = token(s, from) - token(s, b0), row = c.Lp * (i64)sizeof(f32), note = NOTE * (i64)sizeof(f32);
    if (s->paths) {
        gpu_chain_paths(&c);
        gpu_get(l->path + t0, c.tokens, c.path, c.tokens, c.tokens, 1);
        return;
    }
    gpu_chain_pass(&c);
    gpu_get(l->d + t0 * c.Lp, c.tokens * row, c.d, c.tokens * row, c.tokens * row, 1);
    gpu_get(l->note + t0 * NOTE, c.tokens * note, c.note, c.tokens * note, c.tokens * note, 1);
    const i64 bytes = c.blocks * pairs(s) * (i64)sizeof(f32);
    gpu_get(l->pair + (from - b0) * pairs(s), bytes, c.pair, bytes, bytes, 1);
    if (gpu_sync() < 0) return;
    for (i32 b = from; b < to; b++) settle(s, l, b0, b);
}

static void on_device(void *self, const struct offload_lane *at, const struct deal_piece *p) {
    struct shared_crf *s = self;
    const i32 b0 = s->part_at[p->part] + (i32)p->lo, end = s->part_at[p->part] + (i32)p->hi;
    for (i32 b = b0; b < end;) {
        const i32 from = b;
        while (b < end && b - from < BLOCKS && token(s, b + 1) - token(s, from) <= s->room) b++;
        launch(s, at, b0, from, b);
    }
}

/* The cores write their results in place. */
static void accept(void *self, const struct offload_lane *at, const struct deal_piece *p) {
    const struct shared_crf *s = self;
    const struct lane *l = &s->lane[at->slot];
    const i32 b0 = s->part_at[p->part] + (i32)p->lo, end = s->part_at[p->part] + (i32)p->hi, Lp = s->q.pass.Lp;
    const i64 t0 = token(s, b0), n = token(s, end) - t0;
    if (!at->heap) return;
    for (i64 t = 0; s->paths && t < n; t++) s->best[t0 + t] = l->path[t];
    if (s->paths) return;
    memcpy(s->d + t0 * Lp, l->d, sizeof *l->d * (size_t)(n * Lp));
    memcpy(s->pair + b0 * pairs(s), l->pair, sizeof *l->pair * (size_t)((end - b0) * pairs(s)));
    memcpy(s->nll + s->block[b0], l->nll, sizeof *l->nll * (size_t)(s->block[end] - s->block[b0]));
}

/* ------------------------------------------------------------------ the cores ----------------------------------------------- */

static void find_paths(const struct shared_crf *s, struct worker *w, i32 b) {
    const struct crf_pass *p = &s->q.pass;
    for (i32 k = s->block[b]; k < s->block[b + 1]; k++) {
        const i64 t0 = s->q.first[k];
        s->kern->score(p, t0, length(s, k), w->scratch.u);
        s->kern->decode(w->scratch.u, p->A, p->L, p->Lp, length(s, k), w->from, w->v, s->best + t0);
    }
}

static void take_blocks(void *self, i32 worker) {
    struct shared_crf *s = self;
    struct worker *w = &s->worker[worker];
    for (i32 b; (b = atomic_fetch_add(&s->next, 1)) < s->end;)
        if (s->paths) find_paths(s, w, b);
        else take_block(s, &w->scratch, b, s->d + token(s, b) * s->q.pass.Lp, s->pair + b * pairs(s), s->nll + s->block[b]);
}

static void on_host(void *self, const struct offload_lane *at, const struct deal_piece *p) {
    struct shared_crf *s = self;
    (void)at;
    s->end = s->part_at[p->part] + (i32)p->hi;
    atomic_store(&s->next, s->part_at[p->part] + (i32)p->lo);
    pool_run(s->pool, take_blocks, s);
}

/* ------------------------------------------------------------------ opening ------------------------------------------------- */

/* Blocks end where the pass of the plan adds up its pairs. */
static err cut_blocks(struct shared_crf *s) {
    const struct shared_sentences *q = &s->q;
    NEW(s->block, sentences(s) / CRF_TOGETHER + q->ncut + 2);
    NEW(s->part_at, q->ncut + 1);
    NEW(s->part, q->ncut);
    for (i32 k = 0; k < q->ncut; k++) {
        s->part_at[k] = s->nblock;
        for (i32 j = q->cut[k]; j < q->cut[k + 1]; j = imin((j / CRF_TOGETHER + 1) * CRF_TOGETHER, q->cut[k + 1]))
            s->block[s->nblock++] = j;
        s->block[s->nblock] = q->cut[k + 1];
        const i64 tokens = q->first[q->cut[k + 1]] - q->first[q->cut[k]], blocks = s->nblock - s->part_at[k];
        s->part[k] = (struct deal_part){blocks, dmax(1, (f64)tokens * q->pass.L / dmax(1, (f64)blocks))};
    }
    s->part_at[q->ncut] = s->nblock;
    for (i32 k = 0; k < sentences(s); k++) s->longest = imax(s->longest, length(s, k));
    s->room = TOKENS;
    for (i32 b = 0; b < s->nblock; b++) s->room = lmax(s->room, token(s, b + 1) - token(s, b));
    s->room = lmin(s->room, lmax(1, q->first[sentences(s)]));
    return 0;
}

/* The next place behind *end, aligned. */
static i64 place(i64 *end, i64 n, size_t size) {
    const i64 at = round_up64(*end, ALIGN);
    *end = at + n * (i64)size;
    return at;
}

static void set_layout(struct shared_crf *s) {
    const struct crf_pass *p = &s->q.pass;
    const i64 n = s->q.first[sentences(s)], row = s->room * p->Lp;
    struct layout *l = &s->at;
    i64 end = (n + 1) * (i64)sizeof *p->at;
    l->attribute = place(&end, p->at[n], sizeof(i32));
    l->gold = place(&end, n, sizeof(i32));
    l->w = place(&end, s->q.nrow * p->Lp, sizeof(f32));
    l->E = place(&end, pairs(s), sizeof(f32));
    l->back = place(&end, pairs(s), sizeof(f32));
    l->lanes = round_up64(end, ALIGN);
    end = 0;
    l->first = place(&end, BLOCKS * CRF_TOGETHER + 1, sizeof(i32));
    l->block = place(&end, BLOCKS + 1, sizeof(i32));
    l->u = place(&end, row, sizeof(f32));
    l->path = place(&end, s->room, 1);
    l->from = place(&end, p->gold ? 0 : s->room * p->L, 1);
    l->a = place(&end, p->gold ? row : 0, sizeof(f32));
    l->d = place(&end, p->gold ? row : 0, sizeof(f32));
    l->note = place(&end, s->room * NOTE, sizeof(f32));
    l->pair = place(&end, p->gold ? imin(BLOCKS, s->nblock) * pairs(s) : 0, sizeof(f32));
    l->lane_bytes = round_up64(end, ALIGN);
}

static err lane_new(const struct shared_crf *s, struct lane *l) {
    i64 tokens = 0;
    i32 blocks = 0;
    for (i32 k = 0; k < s->q.ncut; k++) {
        tokens = lmax(tokens, s->q.first[s->q.cut[k + 1]] - s->q.first[s->q.cut[k]]);
        blocks = imax(blocks, s->part_at[k + 1] - s->part_at[k]);
    }
    NEW(l->first, BLOCKS * CRF_TOGETHER + 1);
    NEW(l->block, BLOCKS + 1);
    NEW(l->path, tokens);
    if (!s->q.pass.gold) return 0;
    TRY(crf_scratch_new(s->q.pass.L, s->q.pass.Lp, s->longest, &l->scratch));
    NEW(l->d, tokens * s->q.pass.Lp);
    NEW(l->note, tokens * NOTE);
    NEW(l->pair, blocks * pairs(s));
    NEW(l->nll, (i64)blocks * CRF_TOGETHER);
    return 0;
}

static err worker_new(const struct shared_crf *s, struct worker *w) {
    TRY(crf_scratch_new(s->q.pass.L, s->q.pass.Lp, s->longest, &w->scratch));
    if (s->q.pass.gold) return 0;
    NEW(w->from, (i64)s->longest * s->q.pass.Lp);
    NEW(w->v, 2 * s->q.pass.Lp);
    return 0;
}

static err rooms_new(struct shared_crf *s) {
    const i32 nlane = offload_slots(s->offload), nworker = pool_size(s->pool);
    NEW(s->lane, nlane);
    s->nlane = nlane;
    for (i32 i = 0; i < nlane; i++) TRY(lane_new(s, &s->lane[i]));
    NEW(s->worker, nworker);
    s->nworker = nworker;
    for (i32 i = 0; i < nworker; i++) TRY(worker_new(s, &s->worker[i]));
    if (!s->q.pass.gold) return 0;
    NEW(s->pair, s->nblock * pairs(s));
    NEW(s->nll, sentences(s));
    return 0;
}

static err check(const struct shared_sentences *q, const struct resources *use) {
    if (q->pass.L > GPU_CHAIN_LABELS)
        return FAIL_AT(E106, "--device", "no --device", "%d labels are too many for a device (%d)", q->pass.L, GPU_CHAIN_LABELS);
    if (!crf_kern_fuses((i32)use->kern->arch))
        return FAIL_AT(E106, "--device", "no --device   or   no --kernel",
                       "the cores round otherwise than devices with --kernel %s", use->kern->name);
    return 0;
}

err shared_crf_open(const struct shared_sentences *q, const struct resources *use, struct shared_crf **out) {
    struct shared_crf *s;
    *out = NULL;
    TRY(check(q, use));
    NEW(s, 1);
    *out = s;
    s->q = *q;
    s->pool = use->pool;
    s->kern = crf_kern_for((i32)use->kern->arch);
    TRY(cut_blocks(s));
    set_layout(s);
    const struct offload_kernel k = {.self = s, .bytes = s->at.lanes + offload_lanes(use) * s->at.lane_bytes, .grain = 1,
                                     .prepare = prepare, .begin = begin, .on_device = on_device, .on_host = on_host,
                                     .accept = accept};
    TRY(offload_open(&k, use, &s->offload));
    return rooms_new(s);
}

static void lane_free(struct lane *l) {
    void *all[] = {l->first, l->block, l->d, l->note, l->pair, l->nll, l->path};
    for (size_t i = 0; i < COUNT(all); i++) mem_free(all[i]);
    crf_scratch_free(&l->scratch);
}

void shared_crf_close(struct shared_crf *s) {
    if (!s) return;
    offload_close(s->offload);
    for (i32 i = 0; i < s->nlane; i++) lane_free(&s->lane[i]);
    for (i32 i = 0; i < s->nworker; i++) {
        crf_scratch_free(&s->worker[i].scratch);
        mem_free(s->worker[i].from);
        mem_free(s->worker[i].v);
    }
    void *all[] = {s->lane, s->worker, s->block, s->part_at, s->part, s->pair, s->nll};
    for (size_t i = 0; i < COUNT(all); i++) mem_free(all[i]);
    mem_free(s);
}

/* ------------------------------------------------------------------ runs ---------------------------------------------------- */

static err run(struct shared_crf *s) {
    TRY(offload_run(s->offload, s->part, s->q.ncut, s->ran));
    s->ran = true;
    return 0;
}

/* Sums of a partition in the order of its sentences and blocks. */
static void add_up(const struct shared_crf *s, i32 k, f64 *part) {
    const i32 L = s->q.pass.L, Lp = s->q.pass.Lp;
    memset(part, 0, sizeof *part * (size_t)(1 + (i64)Lp * Lp));
    for (i32 j = s->q.cut[k]; j < s->q.cut[k + 1]; j++) part[0] += s->nll[j];
    for (i32 b = s->part_at[k]; b < s->part_at[k + 1]; b++)
        crf_add_pairs(L, Lp, s->pair + b * pairs(s), s->pass.E, part + 1);
}

err shared_crf_pass(struct shared_crf *s, f32 *d, f64 *part) {
    const i64 size = 1 + (i64)s->q.pass.Lp * s->q.pass.Lp;
    s->paths = false;
    s->d = d;
    s->pass = crf_scratch_pass(&s->worker[0].scratch, &s->q.pass);
    TRY(run(s));
    for (i32 k = 0; k < s->q.ncut; k++) add_up(s, k, part + k * size);
    return 0;
}

err shared_crf_paths(struct shared_crf *s, i32 *best) {
    s->paths = true;
    s->best = best;
    return run(s);
}

void shared_crf_note(const struct shared_crf *s, const struct events *to) {
    char shares[256];
    offload_shares(s->offload, shares, sizeof shares);
    event_note(to, EVENT_DETAIL, "sentences by device: %s; the cores repeated %lld blocks", shares, (long long)s->redone);
}
