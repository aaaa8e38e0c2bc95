/* split.c - counts of a node by bin, and the best split of an input; see tree.h.
 *
 *     bins 1 2 3 | 4 5 ..     left: bins up to 3, right: the rest; the missing cells go to either side, tried one after the other
 *
 * Both ways to search (by counts, by sorted entries) try the same splits in the same order with the same integers. */
#include <math.h>
#include <string.h>

#include "learn/forest/tree.h"

/* ------------------------------------------------------------------ counts -------------------------------------------------- */

i64 counts_bytes(i32 nclass) { return nclass > 0 ? (i64)BINS * nclass * 4 : (i64)BINS * 12; }

struct counts counts_at(void *memory, i32 nclass) {
    if (nclass > 0) return (struct counts){.count = memory};
    return (struct counts){.sum = memory, .count = (i32 *)((i64 *)memory + BINS)};
}

void counts_add(const struct tree_data *d, i32 input, const struct entry *e, i64 n, struct counts to) {
    const u8 *bin = d->bin + d->step * input;
    const u32 C = (u32)d->nclass;
    if (C == 0) {
        for (i64 i = 0; i < n; i++) {
            const u32 b = bin[e[i].row], w = entry_weight(e[i]);
            to.count[b] += (i32)w;
            to.sum[b] += (i64)w * entry_value(e[i]);
        }
        return;
    }
    for (i64 i = 0; i < n; i++) to.count[bin[e[i].row] * C + entry_value(e[i])] += (i32)entry_weight(e[i]);
}

void totals_of(const struct tree_data *d, const struct entry *e, i64 n, struct totals *out) {
    const u32 first = n > 0 ? entry_value(e[0]) : 0;
    bool pure = true;
    out->weight = out->sum = out->phi = 0;
    if (d->nclass > 0) memset(out->class, 0, sizeof *out->class * (size_t)d->nclass);
    for (i64 i = 0; i < n; i++) {
        const u32 w = entry_weight(e[i]), v = entry_value(e[i]);
        out->weight += w;
        pure &= v == first;
        if (d->nclass > 0) out->class[v] += (i32)w;
        else out->sum += (i64)w * v;
    }
    out->pure = pure;
    for (i32 k = 0; k < d->nclass; k++)
        out->phi += d->xlogx ? d->xlogx[out->class[k]] : (i64)out->class[k] * out->class[k];
}

/* ------------------------------------------------------------------ one sweep over the bins --------------------------------- */

struct sweep {
    const struct tree_data *d;
    const struct forest_spec *q;
    const struct totals *all;
    i32 *left, *right;          /* [nclass] */
    i64 weight[2], phi[2], sum[2]; /* of the two sides; sum: about the mean of the node */
    i64 mean;
    f64 base;                   /* score of the whole node */
    f64 best, ratio;
    i32 last;                   /* the bin before the best split, until the next one is known */
    bool pending, missing_left;
    struct node_split out;
};

static f64 xlog(f64 v) { return v > 0 ? v * log2(v) : 0; }

/* Classes with weights: sums over the classes in order. */
static f64 side_score(const struct sweep *s, const i32 *count, f64 *weight) {
    f64 phi = 0, w = 0;
    for (i32 k = 0; k < s->d->nclass; k++) {
        const f64 v = s->d->class_weight[k] * count[k];
        phi += s->q->criterion == CRITERION_GINI ? v * v : xlog(v);
        w += v;
    }
    *weight = w;
    if (!(w > 0)) return 0;
    return s->q->criterion == CRITERION_GINI ? phi / w : phi - xlog(w);
}

static const f64 LOG_UNIT = 1.0 / (1 << XLOG_BITS);

/* The score of the two sides; *info: weight of the node * SplitInfo. */
static f64 score_of(const struct sweep *s, f64 *info) {
    const i64 l = s->weight[0], r = s->weight[1];
    *info = 0;
    if (s->d->nclass == 0) {
        const f64 a = (f64)s->sum[0], b = (f64)s->sum[1];
        return a * a / (f64)l + b * b / (f64)r;
    }
    if (s->d->class_weight) {
        f64 a, b;
        const f64 score = side_score(s, s->left, &a) + side_score(s, s->right, &b);
        *info = xlog(a + b) - xlog(a) - xlog(b);
        return score;
    }
    if (!s->d->xlogx) return (f64)s->phi[0] / (f64)l + (f64)s->phi[1] / (f64)r;
    const i64 both = s->d->xlogx[l] + s->d->xlogx[r];
    *info = (f64)(s->d->xlogx[l + r] - both) * LOG_UNIT;
    return (f64)(s->phi[0] + s->phi[1] - both) * LOG_UNIT;
}

static f64 base_of(const struct sweep *s) {
    f64 w;
    if (s->d->nclass == 0) return (f64)s->sum[1] * (f64)s->sum[1] / (f64)s->all->weight;
    if (s->d->class_weight) return side_score(s, s->all->class, &w);
    if (!s->d->xlogx) return (f64)s->all->phi / (f64)s->all->weight;
    return (f64)(s->all->phi - s->d->xlogx[s->all->weight]) * LOG_UNIT;
}

/* All on the right. */
static void begin(struct sweep *s, bool missing_left) {
    const i32 C = s->d->nclass;
    s->missing_left = missing_left;
    s->pending = false;
    s->weight[0] = s->phi[0] = s->sum[0] = 0;
    s->weight[1] = s->all->weight;
    s->phi[1] = s->all->phi;
    s->sum[1] = s->all->sum - s->all->weight * s->mean;
    if (C == 0) return;
    memset(s->left, 0, sizeof *s->left * (size_t)C);
    memcpy(s->right, s->all->class, sizeof *s->right * (size_t)C);
}

static struct sweep sweep_of(const struct tree_data *d, const struct forest_spec *q, i32 input, const struct totals *all,
                             i32 *side) {
    struct sweep s = {.d = d, .q = q, .all = all, .left = side, .right = side + d->nclass, .best = -INFINITY};
    if (d->nclass == 0) s.mean = all->sum / all->weight;
    s.out.input = input;
    begin(&s, false);
    s.base = base_of(&s);
    return s;
}

/* Before the entries of a bin move: the best split lies halfway between its two bins. */
static void next_bin(struct sweep *s, i32 bin) {
    if (!s->pending) return;
    s->pending = false;
    s->out.bin = s->last == 0 ? 0 : (s->last + bin - 1) / 2;
}

/* After the entries of a bin have moved: the split behind it.  Of equal splits the first stays. */
static void try_bin(struct sweep *s, i32 bin, i64 missing) {
    f64 info;
    if (s->weight[0] < s->q->min_leaf || s->weight[1] < s->q->min_leaf) return;
    const f64 score = score_of(s, &info);
    if (!(score > s->best)) return;
    s->best = score;
    s->ratio = info;
    s->last = s->out.bin = bin;
    s->pending = true;
    s->out.found = true;
    s->out.missing_right = missing > 0 ? !s->missing_left : s->weight[1] > s->weight[0] && bin > 0;
}

static struct node_split end(struct sweep *s) {
    struct node_split out = s->out;
    if (!out.found) return out;
    out.gain = dmax(0, s->best - s->base);
    out.score = s->q->criterion != CRITERION_GAIN_RATIO || s->d->nclass == 0 ? out.gain
                : s->ratio > 0                                                ? out.gain / s->ratio
                                                                              : 0;
    return out;
}

/* ------------------------------------------------------------------ by counts ----------------------------------------------- */

/* Moves the entries of a bin to the left; returns their weight. */
static i64 move_counts(struct sweep *s, i32 bin, struct counts c) {
    const i32 C = s->d->nclass;
    i64 w = 0, grown = 0, shrunk = 0;
    if (C == 0) {
        const i64 v = c.sum[bin] - c.count[bin] * s->mean;
        s->sum[0] += v;
        s->sum[1] -= v;
        return c.count[bin];
    }
    const i32 *h = c.count + (i64)bin * C;
    if (s->d->xlogx) {
        for (i32 k = 0; k < C; k++) {
            if (h[k] == 0) continue;
            grown += s->d->xlogx[s->left[k] + h[k]] - s->d->xlogx[s->left[k]];
            shrunk += s->d->xlogx[s->right[k]] - s->d->xlogx[s->right[k] - h[k]];
            s->left[k] += h[k];
            s->right[k] -= h[k];
            w += h[k];
        }
    } else {
        for (i32 k = 0; k < C; k++) {
            grown += (i64)h[k] * (2 * s->left[k] + h[k]);
            shrunk += (i64)h[k] * (2 * s->right[k] - h[k]);
            s->left[k] += h[k];
            s->right[k] -= h[k];
            w += h[k];
        }
    }
    s->phi[0] += grown;
    s->phi[1] -= shrunk;
    return w;
}

static i64 bin_weight(const struct tree_data *d, i32 bin, struct counts c) {
    i64 w = 0;
    if (d->nclass == 0) return c.count[bin];
    for (i32 k = 0; k < d->nclass; k++) w += c.count[(i64)bin * d->nclass + k];
    return w;
}

static void sweep_counts(struct sweep *s, i32 from, i32 nbin, i64 missing, struct counts c) {
    for (i32 b = from; b < nbin && s->weight[1] > 0; b++) {
        const i64 w = bin_weight(s->d, b, c);
        if (w == 0) continue;
        next_bin(s, b);
        move_counts(s, b, c);
        s->weight[0] += w;
        s->weight[1] -= w;
        try_bin(s, b, missing);
    }
    s->pending = false;
}

struct node_split split_counts(const struct tree_data *d, const struct forest_spec *q, i32 input, const struct totals *all,
                               struct counts c, i32 *side) {
    struct sweep s = sweep_of(d, q, input, all, side);
    const i64 missing = bin_weight(d, 0, c);
    begin(&s, true);
    sweep_counts(&s, missing > 0 ? 0 : 1, d->nbin[input], missing, c);
    if (missing > 0) {
        begin(&s, false);
        sweep_counts(&s, 1, d->nbin[input], missing, c);
    }
    return end(&s);
}

/* ------------------------------------------------------------------ by entries ---------------------------------------------- */

static void move_entry(struct sweep *s, u32 tag) {
    const i32 w = (i32)(tag >> 24), v = (i32)(tag & 0xffffff);
    s->weight[0] += w;
    s->weight[1] -= w;
    if (s->d->nclass == 0) {
        const i64 sum = w * (v - s->mean);
        s->sum[0] += sum;
        s->sum[1] -= sum;
        return;
    }
    const i32 l = s->left[v], r = s->right[v];
    if (s->d->xlogx) {
        s->phi[0] += s->d->xlogx[l + w] - s->d->xlogx[l];
        s->phi[1] -= s->d->xlogx[r] - s->d->xlogx[r - w];
    } else {
        s->phi[0] += (i64)w * (2 * l + w);
        s->phi[1] -= (i64)w * (2 * r - w);
    }
    s->left[v] = l + w;
    s->right[v] = r - w;
}

struct item {
    u32 bin, tag;
};

static void sort_few(struct item *v, i32 n) {
    for (i32 i = 1; i < n; i++) {
        const struct item x = v[i];
        i32 k = i;
        for (; k > 0 && v[k - 1].bin > x.bin; k--) v[k] = v[k - 1];
        v[k] = x;
    }
}

/* Items in order of bins. */
static void sort_items(const u8 *bin, i32 nbin, const struct entry *e, i32 n, struct item *out) {
    u16 at[BINS + 1];
    if (n <= 16) {
        for (i32 i = 0; i < n; i++) out[i] = (struct item){bin[e[i].row], e[i].tag};
        sort_few(out, n);
        return;
    }
    memset(at, 0, sizeof *at * (size_t)(nbin + 1));
    for (i32 i = 0; i < n; i++) at[bin[e[i].row] + 1]++;
    for (i32 b = 1; b < nbin; b++) at[b] = (u16)(at[b] + at[b - 1]);
    for (i32 i = 0; i < n; i++) out[at[bin[e[i].row]]++] = (struct item){bin[e[i].row], e[i].tag};
}

static void sweep_items(struct sweep *s, const struct item *v, i32 n, i64 missing) {
    for (i32 i = 0; i < n;) {
        const u32 b = v[i].bin;
        next_bin(s, (i32)b);
        for (; i < n && v[i].bin == b; i++) move_entry(s, v[i].tag);
        if (i < n || s->weight[1] > 0) try_bin(s, (i32)b, missing);
    }
    s->pending = false;
}

struct node_split split_entries(const struct tree_data *d, const struct forest_spec *q, i32 input, const struct totals *all,
                                const struct entry *e, i32 n, u32 *work, i32 *side) {
    struct sweep s = {.out = {.input = input}};
    struct item *v = (struct item *)(void *)work;
    i64 missing = 0;
    i32 m = 0;
    sort_items(d->bin + d->step * input, d->nbin[input], e, n, v);
    if (v[0].bin == v[n - 1].bin) return s.out;
    for (; m < n && v[m].bin == 0; m++) missing += v[m].tag >> 24;
    s = sweep_of(d, q, input, all, side);
    begin(&s, true);
    sweep_items(&s, v, n, missing);
    if (missing > 0) {
        begin(&s, false);
        sweep_items(&s, v + m, n - m, missing);
    }
    return end(&s);
}

/* ------------------------------------------------------------------ cutting ------------------------------------------------- */

i64 entries_split(const struct tree_data *d, const struct node_split *s, struct entry *e, i64 n, struct entry *spare) {
    const u8 *bin = d->bin + d->step * s->input;
    const u8 right = s->missing_right, most = (u8)(s->bin - right);
    i64 l = 0, r = 0;
    for (i64 i = 0; i < n; i++) {
        const struct entry x = e[i];
        const bool left = (u8)(bin[x.row] - right) <= most;
        e[l] = x;
        spare[r] = x;
        l += left;
        r += !left;
    }
    memcpy(e + l, spare, sizeof *e * (size_t)r);
    return l;
}
