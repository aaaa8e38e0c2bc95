/* outofbag.c - scores of rows by the trees that did not see them, the accuracy of each tree, and permuted importance.
 *
 *     map     rows of a micro-batch: each tree votes for the rows that it did not draw      part: sums, confusion, tree by tree
 *     merge   part a += part b
 *     update  the sums, and with --voting weighted the weights of the trees; then once more with these
 *
 * Importance of an input (Breiman, 2001): a row's value is replaced by that of another row, drawn among those that the tree did
 * not see; importance is the accuracy that is lost by it. */
#include <math.h>
#include <string.h>

#include "learn/forest/forest.h"

enum { PARTS = 64, PART_BYTES = 128 << 20 };

/* Elements of a part, all f64: sums, confusion [C][C], of each tree: rows, error, deviation; of each input: error added. */
struct layout {
    i64 confusion, tree, input, all;
};

struct outofbag {
    const struct tree_data *d;
    struct forest *f;
    const struct plan *plan;
    struct layout at;
    struct vote_tile *tile; /* [workers] */
    i32 workers;
    i32 *local;             /* [devices] worker of this rank */
    bool permute;
    f64 *model;             /* vote [ntree], then what the update makes of part 0 */
};

static f64 number_of(const struct outofbag *o, i64 row) {
    return o->d->target->low + o->d->target->unit * (f64)o->d->target->value[row];
}

/* ------------------------------------------------------------------ permuted importance ------------------------------------- */

static u32 leaf_with(const struct tree *t, const u8 *row, u32 input, u8 other) {
    u32 at = 0;
    for (;;) {
        const struct tree_node v = t->node[at];
        if (v.split == NODE_LEAF) return at;
        const u32 i = node_input(v);
        at = node_left(v, i == input ? other : row[i]) ? at + 1 : v.next;
    }
}

static u64 mix(u64 v) {
    v = (v ^ (v >> 32)) * 0xd6e8feb86659fd93u;
    v = (v ^ (v >> 32)) * 0xd6e8feb86659fd93u;
    return v ^ (v >> 32);
}

/* Another row that the tree did not see; the row itself after too many tries. */
static i64 other_row(const struct outofbag *o, u64 key, i64 row, u32 input) {
    u64 h = key ^ mix((u64)row * 0x9e3779b97f4a7c15u + input);
    for (i32 tries = 0; tries < 100; tries++) {
        h = mix(h + 0x9e3779b97f4a7c15u);
        const i64 r = (i64)((h >> 32) * (u64)o->d->rows >> 32);
        if (tree_weight(key, r) == 0) return r;
    }
    return row;
}

/* Error of a leaf for a row: 1 or 0, or the squared error. */
static f64 leaf_error(const struct outofbag *o, const struct tree *t, u32 leaf, i64 row) {
    const struct tree_node v = t->node[leaf];
    const i32 C = o->d->nclass;
    if (C == 0) {
        const f64 d = (f64)node_value(v) - number_of(o, row);
        return d * d;
    }
    u32 class = v.next;
    if (v.next & LEAF_SHARES) {
        const f32 *share = t->leaf + (i64)(v.next & ~LEAF_SHARES) * C;
        class = 0;
        for (i32 c = 1; c < C; c++)
            if (share[c] > share[class]) class = (u32)c;
    }
    return class != o->d->target->value[row];
}

/* The inputs on the path of a row, each once. */
static void permute_row(const struct outofbag *o, struct vote_tile *t, const struct tree *tree, u64 key, i64 row, i32 in_tile,
                        f64 *add) {
    const i32 M = o->d->ninput;
    const u8 *bins = t->bin + (i64)in_tile * M;
    u32 at = 0;
    memset(t->path, 0, sizeof *t->path * (size_t)(M / 64 + 1));
    const f64 before = leaf_error(o, tree, leaf_with(tree, bins, NODE_LEAF, 0), row);
    for (struct tree_node v; (v = tree->node[at]).split != NODE_LEAF; at = node_left(v, bins[node_input(v)]) ? at + 1 : v.next) {
        const u32 i = node_input(v);
        if (t->path[i / 64] >> (i % 64) & 1) continue;
        t->path[i / 64] |= (u64)1 << (i % 64);
        const u8 other = o->d->bin[o->d->rows * i + other_row(o, key, row, i)];
        if (other == bins[i]) continue;
        add[i] += leaf_error(o, tree, leaf_with(tree, bins, i, other), row) - before;
    }
}

/* ------------------------------------------------------------------ map ---------------------------------------------------- */

/* The votes of a tree for the rows [from, from + n) that it did not see. */
static void vote_tree(const struct outofbag *o, struct vote_tile *t, i32 tree, i64 from, i32 n, f64 *part) {
    const struct tree *v = &o->f->tree[tree];
    const u64 key = tree_key(o->f->spec.seed, tree);
    const i32 C = imax(1, o->d->nclass);
    f64 *sum = part + o->at.tree + 3 * (i64)tree;
    i32 m = 0;
    for (i32 k = 0; k < n; k++) {
        t->list[m] = k;
        m += tree_weight(key, from + k) == 0 && o->d->target->value[from + k] != NO_TARGET;
    }
    tile_leaves(t, o->d->ninput, v, m);
    for (i32 k = 0; k < m; k++) {
        const i64 row = from + t->list[k];
        vote_add(o->d->nclass, v, t->leaf[k], o->model[tree], t->vote + (i64)t->list[k] * C);
        t->seen[t->list[k]] += o->model[tree];
        sum[0]++;
        sum[1] += leaf_error(o, v, t->leaf[k], row);
        if (o->d->nclass == 0) sum[2] += (number_of(o, row) - o->f->common) * (number_of(o, row) - o->f->common);
        if (o->permute) permute_row(o, t, v, key, row, t->list[k], part + o->at.input);
    }
}

static void score_row(const struct outofbag *o, const f64 *vote, f64 seen, i64 row, f64 *part) {
    struct forest_score *s = (struct forest_score *)part;
    const i32 C = o->d->nclass;
    if (!(seen > 0)) return;
    if (C > 0) {
        s->rows++;
        const i32 truth = (i32)o->d->target->value[row], said = vote_argmax(vote, C);
        s->error += said != truth;
        s->naive += truth != (i32)o->f->common;
        part[o->at.confusion + (i64)truth * C + said]++;
        return;
    }
    forest_add_number(s, *vote / seen, number_of(o, row), o->f->common);
}

static void map_tile(const struct outofbag *o, struct vote_tile *t, i64 from, i32 n, f64 *part) {
    const i32 C = imax(1, o->d->nclass);
    tile_fill(t, o->d->bin + from, o->d->rows, o->d->ninput, n);
    memset(t->vote, 0, sizeof *t->vote * (size_t)n * (size_t)C);
    memset(t->seen, 0, sizeof *t->seen * (size_t)n);
    for (i32 k = 0; k < o->f->ntree; k++) vote_tree(o, t, k, from, n, part);
    for (i32 k = 0; k < n; k++) score_row(o, t->vote + (i64)k * C, t->seen[k], from + k, part);
}

static void map(void *self, const struct kernel_call *c) {
    const struct outofbag *o = self;
    const struct slice *box = &c->task->box;
    const i32 grain = o->plan->grain;
    for (i32 b = box->b0; b < box->b1; b += grain) {
        f64 *part = c->mem[map_part(b / grain)];
        const i32 end = imin(b + grain, box->b1);
        memset(part, 0, sizeof *part * (size_t)o->at.all);
        for (i32 from = b; from < end; from += TILE_ROWS)
            map_tile(o, &o->tile[o->local[c->task->device]], from, imin(TILE_ROWS, end - from), part);
    }
}

static void merge(void *self, const struct kernel_call *c) {
    (void)self;
    f64 *a = c->mem[map_part(c->task->node_a)];
    const f64 *b = c->mem[map_part(c->task->node_b)];
    for (i64 i = c->lo; i < c->hi; i++) a[i] += b[i];
}

/* Weight of a tree: its accuracy, or the part of the variance that it explains; then all are divided by their sum (PRF leaves the
 * sum of a regression as it is, which makes its forecasts too small). */
static void weigh(const struct outofbag *o, const f64 *part, f64 *vote) {
    f64 sum = 0;
    const i32 n = o->f->ntree;
    for (i32 k = 0; k < n; k++) {
        const f64 *t = part + o->at.tree + 3 * (i64)k;
        const f64 most = o->d->nclass > 0 ? t[0] : t[2];
        vote[k] = most > 0 ? dmax(0, 1 - t[1] / most) : 0;
        sum += vote[k];
    }
    for (i32 k = 0; k < n; k++) vote[k] = sum > 0 ? vote[k] / sum : 1.0 / n;
}

static void update(void *self, const struct kernel_call *c) {
    const struct outofbag *o = self;
    const f64 *part = c->mem[map_part(0)];
    f64 *model = c->mem[MAP_MODEL];
    memcpy(model + o->f->ntree, part, sizeof *part * (size_t)o->at.all);
    if (o->f->spec.weighted) weigh(o, part, model);
}

static struct exec_result result(void *self, void *const *mem) {
    (void)self, (void)mem;
    return (struct exec_result){.finite = true};
}

static const struct kernel kernels[MAP_NKERNEL] = {
    [MAP_MAP] = {.name = "out of bag", .run = map, .rows = true, .compute = true},
    [MAP_MERGE] = {.name = "merge", .run = merge, .blocks = true},
    [MAP_UPDATE] = {.name = "weights", .run = update, .commits = true},
};

/* ------------------------------------------------------------------ the run ------------------------------------------------ */

static struct layout layout_of(const struct forest *f, bool permute) {
    struct layout at = {.confusion = SCORE_SUMS};
    at.tree = at.confusion + (i64)f->nclass * f->nclass;
    at.input = at.tree + 3 * (i64)f->ntree;
    at.all = at.input + (permute ? f->bins.n : 0);
    return at;
}

static err new_work(struct outofbag *o, const struct machine *m) {
    o->workers = imax(1, m->ndevice);
    NEW(o->tile, o->workers);
    NEW(o->local, m->ndevice);
    for (i32 k = 0; k < o->workers; k++) TRY(tile_new(o->d->ninput, o->d->nclass, &o->tile[k]));
    for (i32 k = 1; k < m->ndevice; k++)
        o->local[k] = m->device[k].rank == m->device[k - 1].rank ? o->local[k - 1] + 1 : 0;
    NEW(o->model, o->f->ntree + o->at.all);
    for (i32 k = 0; k < o->f->ntree; k++) o->model[k] = 1.0 / o->f->ntree;
    return 0;
}

static void keep(const struct outofbag *o) {
    struct forest *f = o->f;
    const f64 *part = o->model + f->ntree;
    memcpy(f->vote, o->model, sizeof *f->vote * (size_t)f->ntree);
    memcpy(&f->oob, part, sizeof f->oob);
    for (i64 i = 0; i < (i64)f->nclass * f->nclass; i++) f->confusion[i] = (i64)part[o->at.confusion + i];
    f64 rows = 0;
    for (i32 k = 0; k < f->ntree; k++) rows += part[o->at.tree + 3 * (i64)k];
    for (i32 i = 0; o->permute && i < f->bins.n; i++) f->permuted[i] = part[o->at.input + i] / dmax(1, rows);
}

static err run(const struct learn_job *job, struct outofbag *o) {
    const struct machine *m = map_run_machine(&job->use);
    const i32 parts = (i32)lmax(1, lmin(PARTS, PART_BYTES / (o->at.all * 8)));
    const i32 grain = map_run_microbatch(o->d->rows, parts);
    struct map_run r;
    TRY(new_work(o, m));
    const struct map_job map_job = {
        .use = &job->use,
        .request = {.rows = (i32)o->d->rows,
                    .microbatch = grain,
                    .row_bytes = o->d->ninput,
                    .part = o->at.all,
                    .model_bytes = (o->f->ntree + o->at.all) * 8,
                    .element = ELEMENT_F64},
        .kernel = kernels,
        .self = o,
        .result = result,
        .rows = (void *)(uintptr_t)o->d->bin,
        .model = o->model,
    };
    err e = map_run_open(&map_job, &r);
    o->plan = r.plan;
    for (i32 k = 0; e >= 0 && k < (o->f->spec.weighted ? 2 : 1); k++) e = map_run_step(&r, NULL);
    if (e >= 0) e = exec_quiet(r.exec);
    map_run_close(&r);
    return e;
}

err forest_out_of_bag(const struct learn_job *job, const struct tree_data *d, struct forest *f) {
    struct outofbag o = {.d = d, .f = f, .permute = f->spec.permutation, .at = layout_of(f, f->spec.permutation)};
    err e = run(job, &o);
    if (e >= 0) keep(&o);
    for (i32 k = 0; o.tile && k < o.workers; k++) tile_free(&o.tile[k]);
    mem_free(o.tile);
    mem_free(o.local);
    mem_free(o.model);
    return e;
}
