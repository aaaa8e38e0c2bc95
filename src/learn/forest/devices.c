/* devices.c - see devices.h. */
#include "learn/forest/devices.h"

#include <stdatomic.h>
#include <string.h>

#include "base/mem.h"
#include "gpu/gpu.h"
#include "gpu/learners.h"

enum { GRAIN = 1024, ALIGN = 256, CHUNKS = 8, ROOM = CHUNKS * GPU_HISTOGRAM_CHUNK, PART_BYTES = 32 << 20, LOW_BITS = 12 };

/* Counts of the piece of a lane, until the dealer accepts it. */
struct lane {
    char *sum; /* [slots] blocks of counts_bytes */
    u32 *part; /* of one launch, as the device writes them */
};

/* Places in the heap, in bytes; those of a lane follow from its begin. */
struct layout {
    i64 lanes, entry, input, part, lane_bytes;
};

struct shared_counts {
    const struct tree_data *d;
    struct pool *pool;
    struct offload *offload;
    struct layout at;
    i64 cells;       /* of a partial result */
    i32 slots, together; /* most inputs of a node; of a launch */
    i32 nlane;
    struct lane *lane;   /* [nlane] */
    struct deal_part *part; /* [cap] */
    i64 cap;
    const struct count_node *node; /* of this run */
    /* The piece of the cores. */
    const struct deal_piece *piece;
    char *sum;
    _Atomic i32 next;
};

static i64 block_bytes(const struct shared_counts *s) { return counts_bytes(s->d->nclass); }

/* Partial results of ROOM entries at `together` inputs. */
static i64 part_bytes(const struct shared_counts *s) { return s->together * CHUNKS * s->cells * (i64)sizeof(u32); }

static void set_layout(struct shared_counts *s) {
    struct layout *l = &s->at;
    l->lanes = round_up64(s->d->rows * s->d->ninput, ALIGN);
    l->entry = 0;
    l->input = round_up64(ROOM * (i64)sizeof(struct entry), ALIGN);
    l->part = round_up64(l->input + s->slots * (i64)sizeof(i32), ALIGN);
    l->lane_bytes = round_up64(l->part + part_bytes(s), ALIGN);
}

/* ------------------------------------------------------------------ a device ------------------------------------------------ */

static void prepare(void *self, const struct offload_lane *at) {
    struct shared_counts *s = self;
    gpu_put_bytes(at->heap, s->d->bin, s->d->rows * s->d->ninput);
}

/* Adds the partial results of `n` inputs to their blocks. */
static void add_parts(const struct shared_counts *s, const u32 *part, i32 chunks, i32 n, char *sum) {
    for (i32 k = 0; k < n * chunks; k++, part += s->cells) {
        const struct counts to = counts_at(sum + block_bytes(s) * (k / chunks), s->d->nclass);
        const i64 counted = s->d->nclass > 0 ? s->cells : BINS;
        for (i64 i = 0; i < counted; i++) to.count[i] += (i32)part[i];
        for (i64 i = 0; to.sum && i < BINS; i++) to.sum[i] += (i64)part[BINS + i] + ((i64)part[2 * BINS + i] << LOW_BITS);
    }
}

/* At most ROOM entries, whose inputs are on the device. */
static void count_entries(struct shared_counts *s, const struct offload_lane *at, const struct count_node *v, i64 from, i64 to) {
    struct lane *l = &s->lane[at->slot];
    char *mine = at->heap + s->at.lanes + at->lane * s->at.lane_bytes;
    struct gpu_histogram h = {.bin = (const u8 *)at->heap, .bin_step = s->d->step, .entry = mine + s->at.entry,
                              .n = (i32)(to - from), .nclass = s->d->nclass, .part = (u32 *)(void *)(mine + s->at.part)};
    const i32 chunks = gpu_histogram_chunks(h.n);
    gpu_put_bytes(mine + s->at.entry, v->entry + from, (to - from) * (i64)sizeof *v->entry);
    for (i32 k = 0; k < v->slots; k += s->together) {
        h.ninput = imin(s->together, v->slots - k);
        h.input = (const i32 *)(const void *)(mine + s->at.input) + k;
        const i64 bytes = h.ninput * chunks * s->cells * (i64)sizeof *l->part;
        gpu_histogram(&h);
        gpu_get(l->part, bytes, h.part, bytes, bytes, 1);
        if (gpu_sync() < 0) return;
        add_parts(s, l->part, chunks, h.ninput, l->sum + block_bytes(s) * k);
    }
}

static void on_device(void *self, const struct offload_lane *at, const struct deal_piece *p) {
    struct shared_counts *s = self;
    const struct count_node *v = &s->node[p->part];
    char *mine = at->heap + s->at.lanes + at->lane * s->at.lane_bytes;
    memset(s->lane[at->slot].sum, 0, (size_t)(block_bytes(s) * v->slots));
    gpu_put_bytes(mine + s->at.input, v->input, v->slots * (i64)sizeof *v->input);
    for (i64 from = p->lo; from < p->hi; from += ROOM) count_entries(s, at, v, from, lmin(p->hi, from + ROOM));
}

static void accept(void *self, const struct offload_lane *at, const struct deal_piece *p) {
    const struct shared_counts *s = self;
    const struct count_node *v = &s->node[p->part];
    const i64 cells = (i64)BINS * imax(1, s->d->nclass);
    for (i32 k = 0; k < v->slots; k++) {
        const struct counts to = counts_at(v->counts + block_bytes(s) * k, s->d->nclass);
        const struct counts from = counts_at(s->lane[at->slot].sum + block_bytes(s) * k, s->d->nclass);
        for (i64 i = 0; i < cells; i++) to.count[i] += from.count[i];
        for (i64 i = 0; to.sum && i < cells; i++) to.sum[i] += from.sum[i];
    }
}

/* ------------------------------------------------------------------ the cores ----------------------------------------------- */

static void count_inputs(void *self, i32 worker) {
    struct shared_counts *s = self;
    const struct deal_piece *p = s->piece;
    const struct count_node *v = &s->node[p->part];
    (void)worker;
    for (i32 k; (k = atomic_fetch_add(&s->next, 1)) < v->slots;) {
        char *to = s->sum + block_bytes(s) * k;
        memset(to, 0, (size_t)block_bytes(s));
        counts_add(s->d, v->input[k], v->entry + p->lo, p->hi - p->lo, counts_at(to, s->d->nclass));
    }
}

static void on_host(void *self, const struct offload_lane *at, const struct deal_piece *p) {
    struct shared_counts *s = self;
    s->piece = p;
    s->sum = s->lane[at->slot].sum;
    atomic_store(&s->next, 0);
    pool_run(s->pool, count_inputs, s);
}

/* ------------------------------------------------------------------ opening ------------------------------------------------- */

static err lanes_new(struct shared_counts *s) {
    const i32 n = offload_slots(s->offload);
    NEW(s->lane, n);
    s->nlane = n;
    for (i32 i = 0; i < n; i++) {
        TRY(mem_new((void **)&s->lane[i].sum, s->slots * block_bytes(s), 1));
        TRY(mem_new((void **)&s->lane[i].part, part_bytes(s), 1));
    }
    return 0;
}

err shared_counts_open(const struct tree_data *d, i32 slots, const struct resources *use, struct shared_counts **out) {
    struct shared_counts *s;
    *out = NULL;
    NEW(s, 1);
    *out = s;
    s->d = d;
    s->pool = use->pool;
    s->slots = slots;
    s->cells = gpu_histogram_cells(d->nclass);
    s->together = (i32)lmax(1, lmin(slots, PART_BYTES / (CHUNKS * s->cells * (i64)sizeof(u32))));
    set_layout(s);
    const i64 bytes = s->at.lanes + offload_lanes(use) * s->at.lane_bytes;
    const struct offload_kernel k = {.self = s, .bytes = bytes, .grain = GRAIN, .prepare = prepare, .on_device = on_device,
                                     .on_host = on_host, .accept = accept};
    TRY(offload_open(&k, use, &s->offload));
    return lanes_new(s);
}

void shared_counts_close(struct shared_counts *s) {
    if (!s) return;
    offload_close(s->offload);
    for (i32 i = 0; i < s->nlane; i++) {
        mem_free(s->lane[i].sum);
        mem_free(s->lane[i].part);
    }
    mem_free(s->lane);
    mem_free(s->part);
    mem_free(s);
}

err shared_counts_run(struct shared_counts *s, const struct count_node *node, i32 n) {
    s->node = node;
    while (s->cap < n) GROW(s->part, s->cap, s->cap);
    for (i32 k = 0; k < n; k++) s->part[k] = (struct deal_part){node[k].n, node[k].slots};
    return offload_run(s->offload, s->part, n, false);
}

const struct offload *shared_counts_offload(const struct shared_counts *s) { return s->offload; }
