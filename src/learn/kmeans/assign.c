/* assign.c - bounds, candidates and labels of blocks of points; see assign.h.
 *
 * All lengths are in the unit of the points' f: points and centers lie within 1 of the mean, so bounds are at most 2 and an
 * absolute margin serves.  Let e = 2^-24, the rounding of f32. */
#include "learn/kmeans/assign.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"

#define E 0x1p-24

/* Without the rules for NaN of fminf and fmaxf, which cost a call. */
static inline f32 low_of(f32 a, f32 b) { return a < b ? a : b; }
static inline f32 high_of(f32 a, f32 b) { return a > b ? a : b; }

enum { BLOCK = 48 }; /* points whose groups are opened together: a multiple of the rows of every tile */

struct assign_work {
    i32 stride;
    i32 active[BLOCK];         /* points with open groups, relative to the block */
    i32 nopen[BLOCK];          /* of each of them */
    i32 *open, *slot;          /* [BLOCK][stride] the groups, and the point's place in the group's products */
    i32 *count;                /* [groups] points that opened the group */
    const f32 **row;           /* [groups][BLOCK] */
    f32 *value, *least;        /* [groups][BLOCK][LANES], [groups][BLOCK] */
};

err assign_work_new(const struct centers *c, struct assign_work **out) {
    struct assign_work *w;
    NEW(w, 1);
    *out = w;
    w->stride = c->stride;
    NEW(w->open, BLOCK * c->stride);
    NEW(w->slot, BLOCK * c->stride);
    NEW(w->count, c->groups);
    NEW(w->row, (i64)c->groups * BLOCK);
    NEW(w->value, (i64)c->groups * BLOCK * LANES);
    NEW(w->least, (i64)c->groups * BLOCK);
    return 0;
}

void assign_work_free(struct assign_work *w) {
    if (!w) return;
    mem_free(w->open);
    mem_free(w->slot);
    mem_free(w->count);
    mem_free(w->row);
    mem_free(w->value);
    mem_free(w->least);
    mem_free(w);
}

err track_new(i64 n, const struct centers *c, struct track *out) {
    *out = (struct track){0};
    TRY(mem_check(n, sizeof *out->bound * (size_t)c->stride));
    NEW(out->label, n);
    NEW(out->upper, n);
    NEW(out->bound, n * c->stride);
    NEW(out->move, c->k);
    NEW(out->drift, c->stride);
    track_reset(out, n, c);
    return 0;
}

void track_free(struct track *t) {
    mem_free(t->label);
    mem_free(t->upper);
    mem_free(t->bound);
    mem_free(t->move);
    mem_free(t->drift);
    *t = (struct track){0};
}

void track_reset(struct track *t, i64 n, const struct centers *c) {
    for (i64 i = 0; i < n; i++) t->label[i] = -1;
    memset(t->bound, 0, sizeof *t->bound * (size_t)n * (size_t)c->stride);
    memset(t->move, 0, sizeof *t->move * (size_t)c->k);
    memset(t->drift, 0, sizeof *t->drift * (size_t)c->stride);
}

/* The margin covers the rounding of the sums in which moves are added to bounds of at most 4. */
void track_move(struct track *t, const struct centers *c, const struct points *p, const f64 *center) {
    memset(t->drift, 0, sizeof *t->drift * (size_t)c->stride);
    for (i32 k = 0; k < c->k; k++) {
        const f64 d2 = points_distance(c->d, c->c + (i64)k * c->d, center + (i64)k * c->d);
        const bool same = memcmp(c->c + (i64)k * c->d, center + (i64)k * c->d, sizeof *center * (size_t)c->d) == 0;
        t->move[k] = same ? 0 : (f32)(sqrt(d2) * p->unit * (1 + 16 * E) + 8 * E);
        t->drift[k / LANES] = high_of(t->drift[k / LANES], t->move[k]);
    }
}

/* ------------------------------------------------------------------ bounds -------------------------------------------------- */

/* Rounding of f64 in plain Lloyd's squared distances, as a share. */
static f64 plain_rounding(i32 d) { return (d + 8) * 0x1p-51; }

/* An upper bound of the distance to center k from the f32 copies. */
static f32 upper_bound(const struct centers *c, const struct points *p, i64 i, i32 k) {
    const f64 d2 = (f64)c->near->distance(c->d, p->f + i * c->d, c->row + (i64)k * c->d);
    return (f32)(sqrt(d2) * (1 + (c->d + 16) * E) + 4 * E * (sqrt((f64)p->norm[i]) + c->far) + 4 * E);
}

/* Groups of a point that may hold a nearer center, after the last moves; 0 = its label stays. */
static i32 open_groups(const struct centers *c, const struct points *p, struct track *t, i64 i, i32 *open) {
    f32 *bound = t->bound + i * c->stride;
    const i32 label = t->label[i];
    i32 n;
    if (label < 0 || t->upper[i] == INFINITY) {
        for (n = 0; n < c->groups; n++) open[n] = n;
        return n;
    }
    const f32 *half = c->half + (i64)label * c->stride;
    t->upper[i] += t->move[label];
    n = c->near->open(c->groups, t->upper[i], bound, t->drift, half, open);
    if (n > 0) {
        t->upper[i] = low_of(t->upper[i], upper_bound(c, p, i, label));
        n = c->near->open(c->groups, t->upper[i], bound, t->drift, half, open);
    }
    for (i32 g = 0; g < c->groups; g++) bound[g] = high_of(bound[g] - t->drift[g], 0);
    if (n == 0) return 0;
    for (i32 j = 0; j < n; j++)
        if (open[j] == label / LANES) return n;
    open[n] = label / LANES; /* the old center is a candidate, too */
    return n + 1;
}

/* ------------------------------------------------------------------ one point ----------------------------------------------- */

/* The open groups of a point, and the rounding errors. */
struct chosen {
    i32 n;
    const i32 *open, *slot;
    f64 product, norm;  /* error of a product; the same and that of the point's norm */
    f32 limit;          /* products above it are not candidates */
};

static const f32 *values(const struct assign_work *w, const struct chosen *q, i32 j) {
    return w->value + ((i64)q->open[j] * BLOCK + q->slot[j]) * LANES;
}

static f32 least(const struct assign_work *w, const struct chosen *q, i32 j) {
    return w->least[(i64)q->open[j] * BLOCK + q->slot[j]];
}

static void find_limit(const struct centers *c, const struct points *p, i64 i, const struct assign_work *w, struct chosen *q) {
    const f64 x = sqrt((f64)p->norm[i]);
    f32 low = INFINITY;
    for (i32 j = 0; j < q->n; j++) low = low_of(low, least(w, q, j));
    q->product = c->rounding * c->far * (c->far + 2 * x) + 1e-30;
    q->norm = q->product + 8 * E * x * x;
    q->limit = (f32)((f64)low + 2 * q->product + 4 * E * fabs((f64)low) + plain_rounding(c->d) * (x + c->far) * (x + c->far));
}

/* The lowest index of least f64 distance among the candidates.  Comparisons are such that NaN and infinity make candidates. */
static i32 nearest(const struct centers *c, const struct points *p, i64 i, const struct assign_work *w, const struct chosen *q) {
    i32 found = -1, candidates = 0;
    f64 best = 0;
    for (i32 j = 0; j < q->n; j++) {
        if (least(w, q, j) > q->limit) continue;
        const f32 *v = values(w, q, j);
        for (i32 s = 0; s < LANES; s++) {
            const i32 k = q->open[j] * LANES + s;
            if (v[s] > q->limit || k >= c->k) continue;
            if (candidates++ == 0) {
                found = k;
                continue;
            }
            const f64 *x = p->x + i * c->d;
            if (candidates == 2) best = points_distance(c->d, x, c->c + (i64)found * c->d);
            const f64 d2 = points_distance(c->d, x, c->c + (i64)k * c->d);
            if (d2 > best || (d2 == best && k > found)) continue;
            best = d2;
            found = k;
        }
    }
    return found;
}

static void set_bounds(const struct centers *c, const struct points *p, struct track *t, i64 i, const struct assign_work *w,
                       const struct chosen *q) {
    const i32 label = t->label[i];
    const f64 norm = (f64)p->norm[i], margin = 4 * E + plain_rounding(c->d);
    for (i32 j = 0; j < q->n; j++) {
        f32 low = least(w, q, j);
        if (q->open[j] == label / LANES) {
            const f32 *v = values(w, q, j);
            low = INFINITY;
            for (i32 s = 0; s < LANES; s++)
                if (s != label % LANES) low = low_of(low, v[s]);
            t->upper[i] = (f32)(sqrt(dmax(0, (f64)v[label % LANES] + norm + q->norm)) * (1 + 2 * E) + margin);
        }
        t->bound[i * c->stride + q->open[j]] = (f32)dmax(0, sqrt(dmax(0, (f64)low + norm - q->norm)) * (1 - 2 * E) - margin);
    }
}

static void settle(const struct centers *c, const struct points *p, struct track *t, i64 i, const struct assign_work *w, i32 at,
                   struct assign_count *count) {
    struct chosen q = {.n = w->nopen[at], .open = w->open + (i64)at * w->stride, .slot = w->slot + (i64)at * w->stride};
    find_limit(c, p, i, w, &q);
    const i32 label = nearest(c, p, i, w, &q);
    count->changed += label != t->label[i];
    t->label[i] = label;
    set_bounds(c, p, t, i, w, &q);
}

/* ------------------------------------------------------------------ blocks -------------------------------------------------- */

static i32 open_block(const struct centers *c, const struct points *p, struct track *t, struct assign_work *w, i64 from, i64 to) {
    i32 n = 0;
    memset(w->count, 0, sizeof *w->count * (size_t)c->groups);
    for (i64 i = from; i < to; i++) {
        i32 *open = w->open + (i64)n * w->stride, *slot = w->slot + (i64)n * w->stride;
        const i32 opened = open_groups(c, p, t, i, open);
        if (opened == 0) continue;
        for (i32 j = 0; j < opened; j++) {
            slot[j] = w->count[open[j]]++;
            w->row[(i64)open[j] * BLOCK + slot[j]] = p->f + i * c->d;
        }
        w->active[n] = (i32)(i - from);
        w->nopen[n++] = opened;
    }
    return n;
}

/* ------------------------------------------------------------------ one panel ----------------------------------------------- */

/* Where one panel holds all centers and rows are short, a row's products cost less than to look at its bounds. */
enum { SHORT = 32 };
static bool is_direct(const struct centers *c) { return c->groups == 1 && c->d <= SHORT; }

/* The lowest index of least f64 distance among the centers of a mask. */
static i32 nearest_of(const struct centers *c, const f64 *x, u32 mask) {
    i32 found = __builtin_ctz(mask);
    f64 best = points_distance(c->d, x, c->c + (i64)found * c->d);
    for (mask &= mask - 1; mask; mask &= mask - 1) {
        const i32 k = __builtin_ctz(mask);
        const f64 d2 = points_distance(c->d, x, c->c + (i64)k * c->d);
        if (!(d2 < best)) continue;
        best = d2;
        found = k;
    }
    return found;
}

void assign_margin(const struct centers *c, f32 *margin, f32 *share) {
    const f64 x = 1 + 4 * E, product = c->rounding * c->far * (c->far + 2 * x) + 1e-30;
    *margin = (f32)((2 * product + plain_rounding(c->d) * (x + c->far) * (x + c->far)) * (1 + 4 * E));
    *share = 8 * (f32)E;
}

static void assign_direct(const struct centers *c, const struct points *p, struct track *t, struct assign_work *w, i64 from,
                          i64 to, struct assign_count *count) {
    f32 margin, share;
    assign_margin(c, &margin, &share);
    const u32 all = c->k >= LANES ? 0xffff : (1u << c->k) - 1;
    u32 mask[BLOCK];
    for (; from < to; from += BLOCK) {
        const i32 n = (i32)lmin(BLOCK, to - from);
        for (i32 r = 0; r < n; r++) w->row[r] = p->f + (from + r) * c->d;
        c->near->product(n, c->d, w->row, c->panel, c->start, w->value, w->least);
        c->near->pick(n, w->value, w->least, margin, share, mask);
        for (i32 r = 0; r < n; r++) {
            const u32 m = mask[r] & all;
            const i32 label = (m & (m - 1)) == 0 ? __builtin_ctz(m) : nearest_of(c, p->x + (from + r) * c->d, m);
            count->changed += label != t->label[from + r];
            t->label[from + r] = label;
        }
        count->distances += (i64)n * c->k;
    }
}

void assign_rows(const struct centers *c, const struct points *p, struct track *t, struct assign_work *w, i64 from, i64 to,
                 struct assign_count *count) {
    if (is_direct(c)) {
        assign_direct(c, p, t, w, from, to, count);
        return;
    }
    for (; from < to; from += BLOCK) {
        const i32 n = open_block(c, p, t, w, from, lmin(to, from + BLOCK));
        for (i32 g = 0; g < c->groups; g++) {
            if (w->count[g] == 0) continue;
            c->near->product(w->count[g], c->d, w->row + (i64)g * BLOCK, c->panel + (i64)g * c->d * LANES, c->start + g * LANES,
                             w->value + (i64)g * BLOCK * LANES, w->least + (i64)g * BLOCK);
            count->distances += (i64)w->count[g] * imin(LANES, c->k - g * LANES);
        }
        for (i32 k = 0; k < n; k++) settle(c, p, t, from + w->active[k], w, k, count);
    }
}

/* ------------------------------------------------------------------ one row ------------------------------------------------- */

i32 assign_row(const struct centers *c, const struct points *p, struct assign_work *w, i64 i) {
    const f32 *row = p->f + i * c->d;
    for (i32 g = 0; g < c->groups; g++) {
        w->open[g] = g;
        w->slot[g] = 0;
        c->near->product(1, c->d, &row, c->panel + (i64)g * c->d * LANES, c->start + g * LANES, w->value + (i64)g * BLOCK * LANES,
                         w->least + (i64)g * BLOCK);
    }
    struct chosen q = {.n = c->groups, .open = w->open, .slot = w->slot};
    find_limit(c, p, i, w, &q);
    return nearest(c, p, i, w, &q);
}
