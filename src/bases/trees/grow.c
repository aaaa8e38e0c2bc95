/* grow.c - one boosted tree, grown leaf by leaf on histograms of integer gradients; see trees.h.
 *
 *     entries (row, gradient * 2^24 + 1) of a leaf --bins of an input--> sum and count per bin --sweep--> best split
 *     [ ... leaf ... ] --split--> [ left | right ]     the smaller side is counted, the other is parent - smaller
 *
 * Workers share the inputs of a leaf. A sum of integers has no order, and the first of equal splits stays, so the tree does not
 * depend on the number of workers. */
#include <float.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/rng.h"
#include "bases/trees/trees.h"

enum { BINS = 256, COUNT_BITS = 24, GRADIENT_MOST = 32767, GROUP = 4, BLOCK = 4096 };
#define COUNT_MASK (((i64)1 << COUNT_BITS) - 1)

static inline i64 sum_of(i64 v) { return v >> COUNT_BITS; } /* floor, because the count below it is positive */
static inline i64 count_of(i64 v) { return v & COUNT_MASK; }

struct tree_split {
    i32 input, bin; /* input -1 = none */
    bool missing_right;
    f64 gain;
};

/* A node while the tree grows. */
struct grown {
    i64 lo, hi;              /* its entries */
    i64 total;               /* packed sum and count */
    i32 depth, slot;         /* histograms, while it is a leaf */
    i32 left, right;         /* -1 = leaf */
    struct tree_split split; /* the best one, or the one made */
    f32 value;
};

struct trees_grower {
    const struct trees_table *t;
    const struct trees_cuts *cuts;
    struct trees_growth q;
    struct pool *pool, *own;
    u32 *row, *row_spare; /* [rows] entries of the tree, leaf by leaf */
    i64 *grad, *grad_spare;
    f32 *rest;                /* [rows] residuals of a leaf's entries */
    i32 *input, ninput;       /* of the tree, ascending */
    i64 *hist;                /* [leaves][n][BINS] */
    struct tree_split *found; /* [2][n] best split of each input, for two nodes */
    struct grown *node;       /* [2 * leaves] */
    i32 nnode, number;
    /* what the workers do */
    i32 small, large; /* nodes to search; large -1 = none */
    struct trees_table *to;
    _Atomic i64 next;
};

void trees_grower_free(struct trees_grower *g) {
    if (!g) return;
    pool_free(g->own);
    mem_free(g->row);
    mem_free(g->row_spare);
    mem_free(g->grad);
    mem_free(g->grad_spare);
    mem_free(g->rest);
    mem_free(g->input);
    mem_free(g->hist);
    mem_free(g->found);
    mem_free(g->node);
    mem_free(g);
}

static err make(struct trees_grower *g) {
    const i64 rows = g->t->rows, n = g->t->n;
    if (rows > COUNT_MASK) return FAIL(E1, "trees: %lld rows", (long long)rows);
    if (!g->pool) TRY(pool_new(1, &g->own));
    if (!g->pool) g->pool = g->own;
    NEW(g->row, rows);
    NEW(g->row_spare, rows);
    NEW(g->grad, rows);
    NEW(g->grad_spare, rows);
    NEW(g->rest, rows);
    NEW(g->input, n);
    NEW(g->hist, (i64)g->q.leaves * n * BINS);
    NEW(g->found, 2 * n);
    NEW(g->node, 2 * (i64)g->q.leaves);
    return 0;
}

err trees_grower_new(const struct trees_table *t, const struct trees_cuts *cuts, const struct trees_growth *q, struct pool *pool,
                     struct trees_grower **out) {
    struct trees_grower *g;
    NEW(g, 1);
    g->t = t;
    g->cuts = cuts;
    g->q = *q;
    g->pool = pool;
    const err e = make(g);
    if (e < 0)
        trees_grower_free(g);
    else
        *out = g;
    return e;
}

/* ------------------------------------------------------------------ histograms ---------------------------------------------- */

static i64 *hist_of(const struct trees_grower *g, i32 node, i32 input) {
    return g->hist + ((i64)g->node[node].slot * g->t->n + input) * BINS;
}

/* Sums of up to GROUP inputs in one pass over the entries of a node. */
static void count_group(const struct trees_grower *g, i32 node, const i32 *input, i32 n) {
    const struct grown *q = &g->node[node];
    const u8 *bin[GROUP];
    i64 *hist[GROUP];
    for (i32 k = 0; k < GROUP; k++) {
        const i32 i = input[imin(k, n - 1)];
        bin[k] = g->t->bin + (i64)i * g->t->rows;
        hist[k] = hist_of(g, node, i);
        if (k < n) memset(hist[k], 0, sizeof *hist[k] * BINS);
    }
    if (n < GROUP) {
        for (i32 k = 0; k < n; k++)
            for (i64 e = q->lo; e < q->hi; e++) hist[k][bin[k][g->row[e]]] += g->grad[e];
        return;
    }
    for (i64 e = q->lo; e < q->hi; e++) {
        const i64 v = g->grad[e];
        const u32 r = g->row[e];
        hist[0][bin[0][r]] += v;
        hist[1][bin[1][r]] += v;
        hist[2][bin[2][r]] += v;
        hist[3][bin[3][r]] += v;
    }
}

/* ------------------------------------------------------------------ splits -------------------------------------------------- */

static inline f64 score_of(i64 v, f64 l2) {
    const f64 sum = (f64)sum_of(v);
    return sum * sum / ((f64)count_of(v) + l2);
}

/* Tries every split of ascending bins, the missing cells on the side of `left`. */
static void sweep(const struct trees_grower *g, const i64 *hist, i32 nbin, i64 total, bool missing_right,
                  struct tree_split *best) {
    i64 left = missing_right ? 0 : hist[0];
    for (i32 b = missing_right ? 1 : 0; b + 1 < nbin; b++) {
        if (b > 0) left += hist[b];
        const i64 right = total - left;
        if (count_of(left) < g->q.min_rows) continue;
        if (count_of(right) < g->q.min_rows) return;
        const f64 gain = score_of(left, g->q.l2) + score_of(right, g->q.l2);
        if (!(gain > best->gain)) continue;
        best->gain = gain;
        best->bin = b;
        best->missing_right = missing_right;
    }
}

static struct tree_split split_of(const struct trees_grower *g, i32 node, i32 input) {
    const i64 *hist = hist_of(g, node, input), total = g->node[node].total;
    const i32 nbin = g->cuts->ncut[input] + 2;
    const f64 base = score_of(total, g->q.l2);
    struct tree_split best = {.input = -1, .bin = -1, .gain = base * (1 + 1e-12) + 1e-12};
    if (count_of(hist[0]) > 0) sweep(g, hist, nbin, total, false, &best);
    sweep(g, hist, nbin, total, true, &best);
    if (best.bin < 0) return best;
    best.input = input;
    best.gain -= base;
    /* without missing cells in training, those to come follow the larger side */
    if (count_of(hist[0]) == 0) {
        i64 left = 0;
        for (i32 b = 1; b <= best.bin; b++) left += hist[b];
        best.missing_right = 2 * count_of(left) < count_of(total);
    }
    return best;
}

static void search_group(struct trees_grower *g, i32 from, i32 n) {
    const i32 *input = g->input + from;
    count_group(g, g->small, input, n);
    for (i32 k = 0; k < n; k++) {
        if (g->large >= 0) {
            const i64 *small = hist_of(g, g->small, input[k]);
            i64 *large = hist_of(g, g->large, input[k]); /* of the parent until now */
            for (i32 b = 0; b < g->cuts->ncut[input[k]] + 2; b++) large[b] -= small[b];
            g->found[g->t->n + from + k] = split_of(g, g->large, input[k]);
        }
        g->found[from + k] = split_of(g, g->small, input[k]);
    }
}

static void search(void *self, i32 worker) {
    struct trees_grower *g = self;
    (void)worker;
    for (i64 at; (at = GROUP * atomic_fetch_add(&g->next, 1)) < g->ninput;)
        search_group(g, (i32)at, imin(GROUP, g->ninput - (i32)at));
}

static struct tree_split best_of(const struct trees_grower *g, i32 node, const struct tree_split *found) {
    struct tree_split best = {.input = -1};
    if (g->node[node].depth >= g->q.depth) return best;
    for (i32 k = 0; k < g->ninput; k++)
        if (found[k].input >= 0 && (best.input < 0 || found[k].gain > best.gain)) best = found[k];
    return best;
}

/* Histograms and best splits of one node, or of two siblings, of which `large` still has the histograms of the parent. */
static void search_nodes(struct trees_grower *g, i32 small, i32 large) {
    g->small = small;
    g->large = large;
    atomic_store(&g->next, 0);
    pool_run(g->pool, search, g);
    g->node[small].split = best_of(g, small, g->found);
    if (large >= 0) g->node[large].split = best_of(g, large, g->found + g->t->n);
}

/* ------------------------------------------------------------------ entries ------------------------------------------------- */

/* Bins of a row to the left: those up to the bin of the split, but for missing cells where they go right. */
static inline bool goes_left(const struct tree_split *s, u8 bin) { return bin == 0 ? !s->missing_right : bin <= s->bin; }

/* Cuts the entries of a node, each side in order of rows; returns where the right side begins. */
static i64 cut_entries(struct trees_grower *g, const struct grown *q) {
    const u8 *bin = g->t->bin + (i64)q->split.input * g->t->rows;
    i64 l = q->lo, r = 0;
    for (i64 e = q->lo; e < q->hi; e++) {
        const u32 row = g->row[e];
        const i64 grad = g->grad[e];
        const bool left = goes_left(&q->split, bin[row]);
        g->row[l] = g->row_spare[r] = row;
        g->grad[l] = g->grad_spare[r] = grad;
        l += left;
        r += !left;
    }
    memcpy(g->row + l, g->row_spare, sizeof *g->row * (size_t)r);
    memcpy(g->grad + l, g->grad_spare, sizeof *g->grad * (size_t)r);
    return l;
}

/* The rows of the tree with their gradients. */
static i64 take_entries(struct trees_grower *g) {
    const struct trees_table *t = g->t;
    const u64 below = (u64)(g->q.rows_share * 0x1p32);
    u32 word[4] = {0};
    i64 n = 0;
    f32 most = 0;
    for (i64 r = 0; r < t->rows; r++) {
        if ((r & 3) == 0) rng_words(g->q.seed, RNG_TREES, (u32)g->number, (u64)r >> 2, word);
        if (word[r & 3] >= below) continue;
        g->row[n] = (u32)r;
        g->rest[n++] = t->y[r] - t->fit[r];
        most = fmaxf(most, fabsf(t->y[r] - t->fit[r]));
    }
    const f64 unit = most > 0 ? GRADIENT_MOST / (f64)most : 0;
    for (i64 e = 0; e < n; e++) {
        const f32 v = g->rest[e];
        const i64 whole = g->q.absolute ? (v > 0) - (v < 0) : llrint((f64)v * unit);
        g->grad[e] = whole * ((i64)1 << COUNT_BITS) + 1;
    }
    return n;
}

static i64 total_of(const struct trees_grower *g, i64 lo, i64 hi) {
    i64 total = 0;
    for (i64 e = lo; e < hi; e++) total += g->grad[e];
    return total;
}

/* ------------------------------------------------------------------ leaves -------------------------------------------------- */

/* The k-th smallest of v[0, n), which it reorders. */
static f32 select_kth(f32 *v, i64 n, i64 k) {
    i64 lo = 0, hi = n - 1;
    while (lo < hi) {
        const f32 a = v[lo], b = v[lo + (hi - lo) / 2], c = v[hi];
        const f32 pivot = fmaxf(fminf(a, b), fminf(fmaxf(a, b), c));
        i64 i = lo, j = hi;
        while (i <= j) {
            while (v[i] < pivot) i++;
            while (v[j] > pivot) j--;
            if (i > j) break;
            const f32 swap = v[i];
            v[i++] = v[j];
            v[j--] = swap;
        }
        if (k <= j)
            hi = j;
        else if (k >= i)
            lo = i;
        else
            return v[k];
    }
    return v[k];
}

/* Mean or median of the residuals, drawn to 0 as by l2 rows of residual 0. */
static f32 leaf_value(const struct trees_grower *g, const struct grown *q) {
    const struct trees_table *t = g->t;
    const i64 n = q->hi - q->lo;
    f32 *rest = g->rest + q->lo;
    f64 sum = 0;
    if (n == 0) return 0;
    for (i64 e = 0; e < n; e++) {
        const u32 r = g->row[q->lo + e];
        rest[e] = t->y[r] - t->fit[r];
        sum += (f64)rest[e];
    }
    if (g->q.absolute) sum = (f64)select_kth(rest, n, n / 2) * (f64)n;
    return (f32)(g->q.rate * sum / ((f64)n + g->q.l2));
}

static void give_values(void *self, i32 worker) {
    struct trees_grower *g = self;
    (void)worker;
    for (i64 i; (i = atomic_fetch_add(&g->next, 1)) < g->nnode;)
        if (g->node[i].left < 0) g->node[i].value = leaf_value(g, &g->node[i]);
}

static f32 leaf_at(const struct trees_grower *g, const struct trees_table *t, i64 row) {
    const struct grown *q = g->node;
    while (q->left >= 0) q = g->node + (goes_left(&q->split, t->bin[(i64)q->split.input * t->rows + row]) ? q->left : q->right);
    return q->value;
}

static void add_blocks(void *self, i32 worker) {
    struct trees_grower *g = self;
    struct trees_table *t = g->to;
    (void)worker;
    for (i64 from; (from = BLOCK * atomic_fetch_add(&g->next, 1)) < t->rows;)
        for (i64 r = from; r < lmin(from + BLOCK, t->rows); r++) t->fit[r] += leaf_at(g, t, r);
}

void trees_fit_add(struct trees_grower *g, struct trees_table *to) {
    g->to = to;
    atomic_store(&g->next, 0);
    pool_run(g->pool, add_blocks, g);
}

/* ------------------------------------------------------------------ the tree ------------------------------------------------ */

static i32 add_node(struct trees_grower *g, i64 lo, i64 hi, i32 depth) {
    g->node[g->nnode] = (struct grown){.lo = lo, .hi = hi, .depth = depth, .left = -1, .right = -1, .total = total_of(g, lo, hi)};
    return g->nnode++;
}

static void split_node(struct trees_grower *g, i32 at, i32 new_slot) {
    const i64 mid = cut_entries(g, &g->node[at]);
    const i32 depth = g->node[at].depth + 1;
    const i32 l = add_node(g, g->node[at].lo, mid, depth), r = add_node(g, mid, g->node[at].hi, depth);
    g->node[at].left = l;
    g->node[at].right = r;
    const bool left_small = mid - g->node[l].lo <= g->node[r].hi - mid;
    const i32 small = left_small ? l : r, large = left_small ? r : l;
    g->node[small].slot = new_slot;
    g->node[large].slot = g->node[at].slot;
    search_nodes(g, small, large);
}

/* The leaf with the largest gain; -1 = no leaf has a split. */
static i32 next_leaf(const struct trees_grower *g) {
    i32 best = -1;
    for (i32 i = 0; i < g->nnode; i++)
        if (g->node[i].left < 0 && g->node[i].split.input >= 0 && (best < 0 || g->node[i].split.gain > g->node[best].split.gain))
            best = i;
    return best;
}

/* Inputs of the tree: those that a random permutation puts in front. */
static void draw_inputs(struct trees_grower *g) {
    const i32 n = g->t->n, most = imax(1, (i32)ceil(g->q.inputs_share * n));
    g->ninput = 0;
    for (i32 i = 0; i < n; i++)
        if (most >= n || rng_shuffle(g->q.seed, (u32)g->number, n, i) < most) g->input[g->ninput++] = i;
}

static f32 cut_value(const struct trees_grower *g, const struct tree_split *s) {
    return s->bin == 0 ? -FLT_MAX : (f32)g->cuts->cut[(i64)s->input * CUTS_MOST + s->bin - 1];
}

/* Writes the subtree of a node in preorder; depth of the recursion: that of the tree. */
static void write_nodes(const struct trees_grower *g, i32 at, struct trees *to) {
    const struct grown *q = &g->node[at];
    const i32 here = to->nnode++;
    if (q->left < 0) {
        to->node[here] = (struct trees_node){.cut = q->value, .input = -1};
        return;
    }
    write_nodes(g, q->left, to);
    to->node[here] = (struct trees_node){.cut = cut_value(g, &q->split),
                                         .input = q->split.input,
                                         .right = to->nnode - here,
                                         .missing_right = q->split.missing_right};
    write_nodes(g, q->right, to);
}

void trees_grow(struct trees_grower *g, i32 number, struct trees *to) {
    g->number = number;
    g->nnode = 0;
    draw_inputs(g);
    const i64 n = take_entries(g);
    const i32 root = add_node(g, 0, n, 0);
    search_nodes(g, root, -1);
    for (i32 leaves = 1, at; leaves < g->q.leaves && (at = next_leaf(g)) >= 0; leaves++) split_node(g, at, leaves);
    atomic_store(&g->next, 0);
    pool_run(g->pool, give_values, g);
    to->root[to->ntree++] = to->nnode;
    write_nodes(g, root, to);
}
