/* pagerank_step.c - the steps of PageRank: kernels and plans; see pagerank.h.
 *
 *     sweep   gather block 0: device 0 | device 1 | ..   take block 0: every rank copies the new c   gather block 1 ..
 *     plain   gather all blocks, then take all
 *     fold    gather all blocks, scale: every rank, fold: device 0 | device 1 | ..   take all
 *
 * A device owns a range of positions in each block: it reads what all nodes bring, and writes its own ranges, which go to the
 * other ranks.  Nobody reads what a gather writes before a take copied it, so the bits do not depend on who is first. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "learn/graph/gather.h"
#include "learn/graph/pagerank.h"
#include "plan/build.h"

enum kernel_id { K_SWEEP, K_TAKE, K_EXACT, K_SCALE, K_FOLD, NKERNEL };
/* BRING: of all nodes, read; NEXT: new ones.  X: x and rest.  PART, FOLDED: sums of each part.  SUMS: stands for the numbers in
 * struct pagerank: the sums of block k at k, `each` and `scale` at SCALE. */
enum buffer_id { B_BRING, B_NEXT, B_X, B_PART, B_FOLDED, B_SUMS, B_NBUF };
enum { ALL_BLOCKS = GRAPH_BLOCKS + 1, SCALE = ALL_BLOCKS }; /* ALL: with that of the dangling nodes */

/* Of a part.  A sweep: sum of c, L1 change of c.  A fold: of x; what dangling nodes have, and their number. */
struct sums {
    f64 c, change;
};
struct exact_sums {
    f64 x, dangling, ndangling;
};

/* ------------------------------------------------------------------ kernels ------------------------------------------------- */

enum { TOGETHER = 256 }; /* rows: their sums stay in the cache */

struct row_sums {
    f32 got[TOGETHER], c[TOGETHER], change[TOGETHER];
};

/* Four sums in turn, as for rows of edges. */
static f64 sum_of(const f32 *v, i64 n) {
    f64 s[4] = {0};
    i64 i = 0;
    for (; i + 4 <= n; i += 4)
        for (i32 k = 0; k < 4; k++) s[k] += (f64)v[i + k];
    for (; i < n; i++) s[0] += (f64)v[i];
    return (s[0] + s[1]) + (s[2] + s[3]);
}

/* n positions from i on, n at most TOGETHER.  tile: next has the sums of their edges. */
static struct sums sweep_rows(const struct pagerank *p, i32 i, i32 n, f32 each, bool tile, f32 *next) {
    struct row_sums r;
    const struct graph *g = p->g;
    const f32 damping = (f32)p->damping, *inverse = p->inverse + i, *bring = p->bring + i;
    const f64 *rest = p->rest + i;
    if (tile) memcpy(r.got, next, (size_t)n * sizeof *next);
    else gather_f32(g->row + i, g->from, g->weight, n, p->bring, r.got);
    for (i32 k = 0; k < n; k++) {
        const f32 c = (f32)rest[k] + damping * r.got[k] + each, to = c * inverse[k];
        const bool dangling = inverse[k] == 0;
        next[k] = to;
        r.c[k] = dangling ? 0 : c;
        r.change[k] = fabsf(to - bring[k]) / (dangling ? 1 : inverse[k]);
    }
    return (struct sums){sum_of(r.c, n), sum_of(r.change, n)};
}

/* The edges of a part of g. */
struct part_edges {
    i64 n;
    const u32 *from;
    const u16 *to;
    const f64 *weight;
};

static struct part_edges edges_of(const struct graph *g, i32 part) {
    const i64 first = g->row[g->part[part]];
    return (struct part_edges){g->row[g->part[part + 1]] - first, g->from + first, g->to ? g->to + first : NULL,
                               g->weight ? g->weight + first : NULL};
}

/* next: the sums of the rows of a tile. */
static void sweep_tile(const struct pagerank *p, i32 part, f32 *next) {
    const struct part_edges e = edges_of(p->g, part);
    memset(next, 0, (size_t)(p->g->part[part + 1] - p->g->part[part]) * sizeof *next);
    add_f32(e.from, e.to, e.weight, e.n, p->bring, next);
}

/* box: parts of a block. */
static void sweep(void *self, const struct kernel_call *call) {
    const struct pagerank *p = self;
    const struct graph *g = p->g;
    struct sums *const part = call->mem[B_PART];
    f32 *const next = call->mem[B_NEXT];
    f64 dangling = p->missing;
    for (i32 b = 0; b < GRAPH_BLOCKS; b++) dangling -= p->block_sum[b];
    const f32 each = (f32)(p->damping / g->n * dangling);
    for (i32 k = call->task->box.b0; k < call->task->box.b1; k++) {
        const bool tile = graph_is_tile(g, k);
        part[k] = (struct sums){0};
        if (tile) sweep_tile(p, k, next + g->part[k]);
        for (i32 i = g->part[k]; i < g->part[k + 1]; i += TOGETHER) {
            const struct sums s = sweep_rows(p, i, imin(TOGETHER, g->part[k + 1] - i), each, tile, next + i);
            part[k].c += s.c;
            part[k].change += s.change;
        }
    }
}

/* On every rank: positions [lo, hi) of a block; the first one of a block, which has its parts as box, adds their sums. */
static void take(void *self, const struct kernel_call *call) {
    struct pagerank *p = self;
    const struct task *t = call->task;
    const struct sums *part = call->mem[B_PART];
    const f32 *next = call->mem[B_NEXT];
    memcpy(p->bring + t->lo, next + t->lo, (size_t)(t->hi - t->lo) * sizeof *next);
    if (t->node_b > 0) return;
    struct sums all = {0};
    for (i32 k = t->box.b0; k < t->box.b1; k++) {
        all.c += part[k].c;
        all.change += part[k].change;
    }
    p->block_sum[t->node_a] = all.c;
    p->block_change[t->node_a] = all.change;
}

/* tile: rest has what the edges bring. */
static void exact_rows(const struct pagerank *p, i32 first, i32 n, bool tile, struct exact_sums *s) {
    f64 got[TOGETHER];
    const struct graph *g = p->g;
    if (tile) memset(got, 0, sizeof got);
    else gather_f64(g->row + first, g->from, g->weight, n, p->bring, got);
    for (i32 k = 0; k < n; k++) {
        const i32 i = first + k;
        const f64 to = p->rest[i] + p->damping * got[k];
        const bool dangling = p->inverse[i] == 0;
        const f64 c = dangling ? to : (f64)p->bring[i] * g->out[i]; /* x of a dangling node follows from the others: rest 0 */
        p->x[i] += c;
        p->rest[i] = to - c;
        s->x += p->x[i];
        s->dangling += dangling ? c : 0;
        s->ndangling += dangling;
    }
}

/* x += c, but for what dangling nodes give to all; rest: F of that x, but for the same, - x. */
static void exact(void *self, const struct kernel_call *call) {
    const struct pagerank *p = self;
    const struct graph *g = p->g;
    struct exact_sums *const part = call->mem[B_FOLDED];
    for (i32 k = call->task->box.b0; k < call->task->box.b1; k++) {
        const bool tile = graph_is_tile(g, k);
        const struct part_edges e = edges_of(g, k);
        part[k] = (struct exact_sums){0};
        if (tile) add_f64(e.from, e.to, e.weight, e.n, p->damping, p->bring, p->rest + g->part[k]);
        for (i32 i = g->part[k]; i < g->part[k + 1]; i += TOGETHER)
            exact_rows(p, i, imin(TOGETHER, g->part[k + 1] - i), tile, &part[k]);
    }
}

/* On every rank.  A dangling node's c contains what dangling nodes give to all: each = d / n (dangling + ndangling each). */
static void scale(void *self, const struct kernel_call *call) {
    struct pagerank *p = self;
    const struct exact_sums *part = call->mem[B_FOLDED];
    struct exact_sums all = {0};
    for (i32 k = 0; k < p->g->npart; k++) {
        all.x += part[k].x;
        all.dangling += part[k].dangling;
        all.ndangling += part[k].ndangling;
    }
    p->each = p->damping / p->g->n * all.dangling / (1 - p->damping * all.ndangling / p->g->n);
    p->scale = 1 / (all.x + all.ndangling * p->each);
    p->missing = 0;
}

/* F is affine: with x times s, rest = s rest + (1 - s) jump. */
static void fold(void *self, const struct kernel_call *call) {
    struct pagerank *p = self;
    const struct graph *g = p->g;
    struct sums *const part = call->mem[B_PART];
    f32 *const next = call->mem[B_NEXT];
    const f64 jump = (1 - p->scale) * p->jump;
    for (i32 k = call->task->box.b0; k < call->task->box.b1; k++) {
        struct sums s = {0};
        for (i32 i = g->part[k]; i < g->part[k + 1]; i++) {
            const bool dangling = p->inverse[i] == 0;
            p->x[i] = p->scale * (p->x[i] + (dangling ? p->each : 0));
            p->rest[i] = jump + p->scale * (p->rest[i] + (dangling ? 0 : p->each));
            next[i] = (f32)(p->rest[i] * (f64)p->inverse[i]);
            s.c += (f64)next[i] * g->out[i];
            s.change += fabs(p->rest[i]);
        }
        part[k] = s;
    }
}

static struct exec_result add_changes(const struct pagerank *p, i32 blocks) {
    f64 all = 0;
    for (i32 b = 0; b < blocks; b++) all += p->block_change[b];
    return (struct exec_result){.loss = all, .finite = true};
}

static struct exec_result change_of(void *self, void *const *mem) {
    (void)mem;
    return add_changes(self, GRAPH_BLOCKS);
}

static struct exec_result residual_of(void *self, void *const *mem) {
    (void)mem;
    return add_changes(self, ALL_BLOCKS);
}

static const struct kernel kernels[NKERNEL] = {
    [K_SWEEP] = {.name = "sweep", .run = sweep, .rows = true, .compute = true},
    [K_TAKE] = {.name = "take", .run = take},
    [K_EXACT] = {.name = "exact", .run = exact, .rows = true, .compute = true},
    [K_SCALE] = {.name = "scale", .run = scale},
    [K_FOLD] = {.name = "fold", .run = fold, .compute = true},
};

/* ------------------------------------------------------------------ plans --------------------------------------------------- */

struct making {
    struct builder b;
    const struct graph *g;
    i32 ndevice;
};

/* Parts of a block for device d of n: about equal work each, as parts are. */
static void parts_of(const struct graph *g, i32 block, i32 d, i32 n, i32 *k0, i32 *k1) {
    const i64 first = g->block_part[block], all = g->block_part[block + 1] - first;
    *k0 = (i32)(first + all * d / n);
    *k1 = (i32)(first + all * (d + 1) / n);
}

void pagerank_range(const struct graph *g, i32 block, i32 d, i32 n, i32 *lo, i32 *hi) {
    i32 k0, k1;
    parts_of(g, block, d, n, &k0, &k1);
    *lo = g->part[k0];
    *hi = g->part[k1];
}

static err use(struct making *m, enum buffer_id buf, enum use_mode mode, i64 lo, i64 hi) {
    return build_use(&m->b, (struct use){.buf = buf, .mode = (u8)mode, .lo = lo, .hi = hi});
}

static err buffers(struct making *m) {
    const i64 n = m->g->n, parts = m->g->npart;
    const struct pbuf buf[B_NBUF] = {
        [B_BRING] = {.element = ELEMENT_F32, .lent = true, .local = true, .home = HOME_WRITER, .bytes = n * 4, .extent = n},
        [B_NEXT] = {.element = ELEMENT_F32, .lent = true, .home = HOME_WRITER, .bytes = n * 4, .extent = n},
        [B_X] = {.element = ELEMENT_F64, .lent = true, .home = HOME_WRITER, .bytes = n * 8, .extent = n},
        [B_PART] = {.element = ELEMENT_F64, .home = HOME_WRITER, .bytes = parts * (i64)sizeof(struct sums), .extent = parts},
        [B_FOLDED] = {.element = ELEMENT_F64, .home = HOME_WRITER, .bytes = parts * (i64)sizeof(struct exact_sums),
                      .extent = parts},
        [B_SUMS] = {.element = ELEMENT_F64, .local = true, .home = HOME_WRITER, .bytes = (SCALE + 1) * 8, .extent = SCALE + 1},
    };
    u32 at;
    for (i32 k = 0; k < B_NBUF; k++) TRY(build_buffer(&m->b, buf[k], &at));
    return 0;
}

/* sweep, exact and fold of a block on a device. */
static err work(struct making *m, enum kernel_id kind, i32 block, i32 d) {
    const struct graph *g = m->g;
    i32 k0, k1;
    parts_of(g, block, d, m->ndevice, &k0, &k1);
    if (k0 == k1) return 0;
    const i32 lo = g->part[k0], hi = g->part[k1];
    const f32 seconds = 1e-9f * (f32)(kind == K_FOLD ? hi - lo : g->row[hi] - g->row[lo] + 2 * (hi - lo));
    TRY(build_task(&m->b, (struct task){.kind = (u8)kind, .device = (u32)d, .box = {k0, k1, 0, 1}, .cost = seconds}));
    TRY(use(m, B_X, kind == K_SWEEP ? USE_R : USE_RW, lo, hi));
    if (kind != K_FOLD) TRY(use(m, B_BRING, USE_R, 0, g->n));
    if (kind == K_EXACT) return use(m, B_FOLDED, USE_W, k0, k1);
    if (kind == K_SWEEP) TRY(use(m, B_SUMS, USE_R, 0, GRAPH_BLOCKS));
    if (kind == K_FOLD) TRY(use(m, B_SUMS, USE_R, SCALE, SCALE + 1));
    TRY(use(m, B_NEXT, USE_W, lo, hi));
    return use(m, B_PART, USE_W, k0, k1);
}

static err work_all(struct making *m, enum kernel_id kind, i32 block) {
    for (i32 d = 0; d < m->ndevice; d++) TRY(work(m, kind, block, d));
    return 0;
}

/* Share d of the copying, for each rank's device of that number. */
static err take_share(struct making *m, i32 block, i32 d) {
    const struct graph *g = m->g;
    const i32 k0 = g->block_part[block], k1 = g->block_part[block + 1];
    const i64 first = g->block[block], all = g->block[block + 1] - first;
    const i64 lo = first + all * d / m->ndevice, hi = first + all * (d + 1) / m->ndevice;
    TRY(build_task(&m->b, (struct task){.kind = K_TAKE, .everywhere = RUN_EVERYWHERE, .device = (u32)d, .box = {k0, k1, 0, 1},
                                        .node_a = block, .node_b = d, .lo = lo, .hi = hi, .cost = 1e-10f * (f32)(hi - lo)}));
    TRY(use(m, B_BRING, USE_W, lo, hi));
    TRY(use(m, B_NEXT, USE_R, lo, hi));
    if (d > 0) return 0;
    TRY(use(m, B_PART, USE_R, k0, k1));
    return use(m, B_SUMS, USE_W, block, block + 1);
}

static err take_all(struct making *m, i32 block) {
    for (i32 d = 0; d < m->ndevice; d++) TRY(take_share(m, block, d));
    return 0;
}

static err sweep_tasks(struct making *m, bool plain) {
    for (i32 k = 0; k < GRAPH_BLOCKS; k++) {
        TRY(work_all(m, K_SWEEP, k));
        if (!plain) TRY(take_all(m, k));
    }
    for (i32 k = 0; plain && k < GRAPH_BLOCKS; k++) TRY(take_all(m, k));
    return 0;
}

static err fold_tasks(struct making *m) {
    for (i32 k = 0; k < ALL_BLOCKS; k++) TRY(work_all(m, K_EXACT, k));
    TRY(build_task(&m->b, (struct task){.kind = K_SCALE, .everywhere = RUN_EVERYWHERE, .box = {0, m->g->npart, 0, 1}}));
    TRY(use(m, B_FOLDED, USE_R, 0, m->g->npart));
    TRY(use(m, B_SUMS, USE_W, SCALE, SCALE + 1));
    for (i32 k = 0; k < ALL_BLOCKS; k++) TRY(work_all(m, K_FOLD, k));
    for (i32 k = 0; k < ALL_BLOCKS; k++) TRY(take_all(m, k));
    return 0;
}

static err make(struct making *m, const struct machine *machine, enum pagerank_step step) {
    static const char *const name[] = {"pagerank fold", "pagerank", "pagerank plain"};
    TRY(build_begin(&m->b, name[step], machine, m->ndevice));
    m->b.plan->exact = true;
    m->b.plan->B = m->b.plan->ngrain = m->g->npart;
    m->b.plan->grain = 1;
    TRY(buffers(m));
    TRY(step == PAGERANK_FOLD ? fold_tasks(m) : sweep_tasks(m, step == PAGERANK_PLAIN));
    return build_end(&m->b);
}

err pagerank_plan_run(struct pagerank *p, enum pagerank_step step, const struct resources *use, struct map_run *out) {
    struct making m = {.g = p->g, .ndevice = map_run_machine(use)->ndevice};
    const err e = make(&m, map_run_machine(use), step);
    if (e < 0) {
        build_drop(&m.b);
        return e;
    }
    m.b.plan->predicted = plan_schedule(m.b.plan, NULL);
    void *lent[B_NBUF] = {[B_BRING] = p->bring, [B_NEXT] = p->next, [B_X] = p->x};
    const struct client client = {.kernel = kernels, .nkernel = NKERNEL, .self = p,
                                  .result = step == PAGERANK_FOLD ? residual_of : change_of};
    return plan_run_open(m.b.plan, &client, use, lent, out);
}

/* ------------------------------------------------------------------ state --------------------------------------------------- */

err pagerank_open(struct pagerank *p, const struct graph *g, f64 damping) {
    *p = (struct pagerank){.g = g, .damping = damping, .jump = (1 - damping) / g->n, .missing = 1};
    NEW(p->x, g->n);
    NEW(p->rest, g->n);
    NEW(p->bring, g->n);
    NEW(p->inverse, g->n);
    NEW(p->next, g->n);
    for (i32 i = 0; i < g->n; i++) {
        p->rest[i] = p->jump;
        p->inverse[i] = g->out[i] > 0 ? (f32)(1 / g->out[i]) : 0;
        p->bring[i] = p->inverse[i] / (f32)g->n;
    }
    for (i32 b = 0; b < GRAPH_BLOCKS; b++) p->block_sum[b] = (f64)(g->block[b + 1] - g->block[b]) / g->n;
    return 0;
}

void pagerank_drop(struct pagerank *p) {
    mem_free(p->x);
    mem_free(p->rest);
    mem_free(p->bring);
    mem_free(p->inverse);
    mem_free(p->next);
    *p = (struct pagerank){0};
}
