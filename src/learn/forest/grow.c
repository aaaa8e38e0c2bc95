/* grow.c - the bootstrap sample of a tree, the inputs drawn at a node, and subtrees that one worker grows; see tree.h. */
#include <string.h>

#include "base/rng.h"
#include "learn/forest/tree.h"

enum { LOCAL_BYTES = 2 << 20 };

/* ------------------------------------------------------------------ samples ------------------------------------------------- */

/* splitmix64 (Steele, Lea, Flood, 2014). */
static u64 mix(u64 v) {
    v = (v ^ (v >> 30)) * 0xbf58476d1ce4e5b9u;
    v = (v ^ (v >> 27)) * 0x94d049bb133111ebu;
    return v ^ (v >> 31);
}

u64 tree_key(u64 seed, i32 tree) {
    u32 w[4];
    rng_words(seed, RNG_FOREST, 0, (u64)tree, w);
    return (u64)w[0] << 32 | w[1];
}

u32 tree_weight(u64 key, i64 row) {
    /* 2^32 * P(weight <= k) of Poisson(1), k = 0.. */
    static const u32 upto[] = {1580030169u, 3160060337u, 3950075422u, 4213413783u, 4279248374u,
                               4292415292u, 4294609778u, 4294923276u, 4294962463u};
    const u32 u = (u32)(mix(key + (u64)row * 0x9e3779b97f4a7c15u) >> 32);
    u32 w = 0;
    for (size_t k = 0; k < COUNT(upto); k++) w += u >= upto[k];
    return w;
}

i64 tree_entries(const struct tree_data *d, u64 key, struct entry *out) {
    const u32 *target = d->target->value;
    i64 n = 0;
    for (i64 i = 0; i < d->rows; i++) {
        const u32 w = tree_weight(key, i);
        out[n] = (struct entry){(u32)i, w << 24 | (target[i] & 0xffffff)};
        n += w > 0 && target[i] != NO_TARGET;
    }
    return n;
}

/* ------------------------------------------------------------------ inputs -------------------------------------------------- */

i32 drawing_next(struct drawing *w) {
    const i32 k = w->drawn++;
    const u64 u = mix(w->key + (u64)w->drawn * 0x9e3779b97f4a7c15u) >> 32;
    const i32 j = k + (i32)(u * (u64)(w->n - k) >> 32), input = w->input[j];
    w->input[j] = w->input[k];
    w->input[k] = input;
    w->swaps[k] = j;
    return input;
}

void drawing_end(struct drawing *w) {
    while (w->drawn > 0) {
        const i32 k = --w->drawn, j = w->swaps[k], input = w->input[k];
        w->input[k] = w->input[j];
        w->input[j] = input;
    }
}

/* ------------------------------------------------------------------ leaves -------------------------------------------------- */

struct tree_node leaf_of(const struct tree_data *d, const struct totals *all, f32 *leaf, i32 *nleaf) {
    struct tree_node out = {.split = NODE_LEAF};
    f64 sum = 0;
    if (d->nclass == 0) {
        const f32 mean = (f32)(d->target->low + d->target->unit * ((f64)all->sum / (f64)all->weight));
        memcpy(&out.next, &mean, sizeof mean);
        return out;
    }
    for (i32 k = 0; k < d->nclass; k++) {
        if (all->class[k] > 0) out.next = (u32)k;
        sum += all->class[k] * (d->class_weight ? d->class_weight[k] : 1);
    }
    if (all->pure) return out;
    out.next = LEAF_SHARES | (u32)*nleaf;
    f32 *share = leaf + (i64)(*nleaf)++ * d->nclass;
    for (i32 k = 0; k < d->nclass; k++)
        share[k] = (f32)(all->class[k] * (d->class_weight ? d->class_weight[k] : 1) / sum);
    return out;
}

/* ------------------------------------------------------------------ subtrees ------------------------------------------------ */

err grower_new(const struct tree_data *d, const struct forest_spec *q, i64 room, struct grower *g) {
    *g = (struct grower){.d = d, .q = q, .room = room};
    NEW(g->spare, room + 1);
    NEW(g->entry, room + 1);
    NEW(g->work, 2 * (lmin(room, 32768) + 1));
    TRY(mem_new(&g->counts, counts_bytes(d->nclass), 1));
    NEW(g->side, 2 * d->nclass + 1);
    NEW(g->class, d->nclass + 1);
    NEW(g->input, d->ninput);
    NEW(g->swaps, d->ninput);
    NEW(g->node, 2 * room + 1);
    NEW(g->gain, lmax(2 * room + 1, d->ninput));
    NEW(g->stack, TREE_DEPTH + 2);
    NEW(g->local, lmin(LOCAL_BYTES, room * d->ninput));
    return 0;
}

void grower_free(struct grower *g) {
    mem_free(g->spare);
    mem_free(g->entry);
    mem_free(g->work);
    mem_free(g->counts);
    mem_free(g->side);
    mem_free(g->class);
    mem_free(g->input);
    mem_free(g->swaps);
    mem_free(g->node);
    mem_free(g->gain);
    mem_free(g->leaf);
    mem_free(g->stack);
    mem_free(g->local);
    *g = (struct grower){0};
}

static struct node_split best_of(struct grower *g, const struct entry *e, i64 n, i32 input, const struct totals *all) {
    const struct tree_data *d = g->d;
    if (split_is_few(d, input, n)) return split_entries(d, g->q, input, all, e, (i32)n, g->work, g->side);
    const struct counts c = counts_at(g->counts, d->nclass);
    const size_t nbin = (size_t)d->nbin[input];
    memset(c.count, 0, sizeof *c.count * nbin * (size_t)imax(1, d->nclass));
    if (d->nclass == 0) memset(c.sum, 0, sizeof *c.sum * nbin);
    counts_add(d, input, e, n, c);
    return split_counts(d, g->q, input, all, c, g->side);
}

/* The best split of mtry drawn inputs; more are drawn while none of them has a split. */
static struct node_split choose(struct grower *g, const struct entry *e, i64 n, const struct totals *all, struct drawing *w) {
    struct node_split best = {0};
    const i32 mtry = imin(g->q->mtry, w->n);
    while (w->drawn < w->n && (w->drawn < mtry || !best.found)) {
        const struct node_split s = best_of(g, e, n, drawing_next(w), all);
        if (s.found && (!best.found || s.score > best.score)) best = s;
    }
    drawing_end(w);
    return best;
}

/* Room for the shares of one more leaf. */
static err more_leaves(struct grower *g, i32 nleaf) {
    if (nleaf < g->leaf_room || g->d->nclass == 0) return 0;
    const i64 room = lmax(1024, 2 * g->leaf_room);
    f32 *leaf = mem_realloc(g->leaf, sizeof *leaf * (size_t)(room * g->d->nclass));
    if (!leaf) return -E601;
    g->leaf = leaf;
    g->leaf_room = room;
    return 0;
}

static err grow(struct grower *g, struct entry *e, struct grow_item root, i32 ninput, i32 *n, i32 *nleaf) {
    i32 top = 0;
    g->stack[top++] = root;
    *n = *nleaf = 0;
    while (top > 0) {
        const struct grow_item at = g->stack[--top];
        struct totals all = {.class = g->class};
        struct drawing w = {.n = ninput, .input = g->input, .swaps = g->swaps, .key = at.key};
        struct node_split s = {0};
        const i32 node = (*n)++;
        if (at.parent >= 0) g->node[at.parent].next = (u32)node;
        totals_of(g->d, e + at.lo, at.hi - at.lo, &all);
        if (!node_is_leaf(g->q, &all, at.depth)) s = choose(g, e + at.lo, at.hi - at.lo, &all, &w);
        g->gain[node] = s.gain;
        if (!s.found) {
            TRY(more_leaves(g, *nleaf));
            g->node[node] = leaf_of(g->d, &all, g->leaf, nleaf);
            continue;
        }
        const i64 mid = at.lo + entries_split(g->d, &s, e + at.lo, at.hi - at.lo, g->spare);
        g->node[node].split = (u32)s.input << 9 | (u32)s.missing_right << 8 | (u32)s.bin;
        g->stack[top++] = (struct grow_item){mid, at.hi, node_key(at.key, true), at.depth + 1, node};
        g->stack[top++] = (struct grow_item){at.lo, mid, node_key(at.key, false), at.depth + 1, -1};
    }
    return 0;
}

/* The bins of the entries side by side, so that the inputs drawn at a node are in the cache lines of its few rows.  Worth it
 * where more bins are read on the way down than are copied. */
static bool copy_rows(const struct grower *g, struct entry *e, i64 n, struct tree_data *own) {
    const i64 M = g->d->ninput, levels = 64 - __builtin_clzll((u64)n);
    if (n > g->room || n * M > LOCAL_BYTES || M > g->q->mtry * levels) return false; /* n > room: a large leaf */
    for (i64 i = 0; i < M; i++) {
        const u8 *from = g->d->bin + g->d->step * i;
        for (i64 k = 0; k < n; k++) g->local[k * M + i] = from[e[k].row];
    }
    for (i64 k = 0; k < n; k++) e[k].row = (u32)(k * M);
    *own = *g->d;
    own->bin = g->local;
    own->step = 1;
    return true;
}

static err grow_own(struct grower *g, struct entry *e, struct grow_item root, i32 ninput, struct subtree *out) {
    const struct tree_data *all = g->d;
    struct tree_data own;
    if (copy_rows(g, e, root.hi, &own)) g->d = &own;
    const err failed = grow(g, e, root, ninput, &out->n, &out->nleaf);
    g->d = all;
    return failed;
}

err subtree_grow(struct grower *g, struct entry *e, i64 n, u64 key, i32 depth, const i32 *input, i32 ninput,
                 struct subtree *out) {
    *out = (struct subtree){0};
    memcpy(g->input, input, sizeof *input * (size_t)ninput);
    TRY(grow_own(g, e, (struct grow_item){0, n, key, depth, -1}, ninput, out));
    NEW(out->node, out->n);
    NEW(out->gain, out->n);
    memcpy(out->node, g->node, sizeof *out->node * (size_t)out->n);
    memcpy(out->gain, g->gain, sizeof *out->gain * (size_t)out->n);
    const size_t shares = (size_t)out->nleaf * (size_t)g->d->nclass;
    if (shares == 0) return 0;
    NEW(out->leaf, shares);
    memcpy(out->leaf, g->leaf, sizeof *out->leaf * shares);
    return 0;
}

void subtree_free(struct subtree *t) {
    mem_free(t->node);
    mem_free(t->gain);
    mem_free(t->leaf);
    *t = (struct subtree){0};
}

void tree_free(struct tree *t) {
    mem_free(t->node);
    mem_free(t->leaf);
    *t = (struct tree){0};
}

bool tree_is_sound(const struct tree *t, i32 ninput, i32 nclass) {
    for (i32 i = 0; i < t->n; i++) {
        const struct tree_node v = t->node[i];
        if (v.split != NODE_LEAF) {
            if (node_input(v) >= (u32)ninput || v.next <= (u32)i + 1 || v.next >= (u32)t->n) return false;
            if ((v.split & 0x1ff) == 0x100) return false;
        } else if (nclass > 0) {
            const bool shares = v.next & LEAF_SHARES;
            if ((v.next & ~LEAF_SHARES) >= (u32)(shares ? t->nleaf : nclass)) return false;
        }
    }
    return true;
}
