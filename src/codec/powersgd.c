/* powersgd.c - a product of rank r for each matrix (PowerSGD, Vogels et al., NeurIPS 2019), with error feedback and warm start: r
 * = 4 is 100 times fewer bytes for 512 hidden units.
 *
 *     M += E;  P = M Q;  orthonormalize P;  Q = M^T P;  send P, Q;  E = M - P Q^T;  keep Q
 *
 * A range may cut a matrix. It becomes pieces, each a matrix of its own, with factors of its own:
 *
 *     panel    0     1     2     3     4
 *     rows   |     |   s |   a |   a |   h |       s  the rest of the first panel      h  the head of the last one
 *            |     |   s |   a |   a |     |       a  whole panels, as one matrix
 *
 * Rows that are cut, values outside of matrices, and pieces that are smaller than their factors go as f32, without residual.
 *
 *     packet:  f32 [n]  or  P f32 [r][rows], Q f32 [r][columns]  for each piece
 *     state:                E f32 [panels][rows][width], Q f32 [r][columns]  for each matrix */
#include "base/rng.h"
#include "codec/bytes.h"
#include "codec/codec.h"
#include "codec/loops.h"

#include <math.h>

/* A piece of the range: a matrix to be factored, or n plain values (shape.rank = 0). */
struct piece {
    i64 at, n; /* first float, from lo on; number of floats */
    struct wire_shape shape;
};

static i64 columns(const struct wire_shape *s) { return (i64)s->panels * s->width; }
static i64 factor_floats(const struct wire_shape *s) { return s->rank * (s->rows + columns(s)); }

/* The first matrix that ends behind x. */
static i32 matrix_after(const struct wire_layout *l, i64 x) {
    i32 lo = 0, hi = l ? l->n : 0;
    while (lo < hi) {
        const i32 mid = lo + (hi - lo) / 2;
        const struct wire_matrix *m = &l->matrix[mid];
        if (m->at + (i64)m->panels * m->rows * m->width <= x)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static struct piece plain(const struct wire_args *a, i64 x, i64 end) { return (struct piece){.at = x - a->lo, .n = end - x}; }

/* The piece that begins at element x, lo <= x < hi. */
static struct piece piece_from(const struct wire_args *a, i64 x) {
    const i32 i = matrix_after(a->layout, x), rank = (i32)a->choice.value;
    if (!a->layout || i == a->layout->n) return plain(a, x, a->hi);
    const struct wire_matrix *m = &a->layout->matrix[i];
    if (m->at > x) return plain(a, x, lmin(m->at, a->hi));
    const i64 from = x - m->at, end = lmin(a->hi, m->at + (i64)m->panels * m->rows * m->width);
    if (from % m->width) return plain(a, x, lmin(end, x + m->width - from % m->width));
    const i64 rows = (end - x) / m->width, k = from / m->width % m->rows;
    if (rows == 0) return plain(a, x, end);
    struct wire_shape s = {m->rows, (i32)(rows / m->rows), m->width, rank};
    if (k != 0 || s.panels == 0) s.rows = (i32)lmin(rows, m->rows - k), s.panels = 1;
    struct piece p = {x - a->lo, (i64)s.panels * s.rows * s.width, s};
    if (m->width % LANES != 0 || factor_floats(&s) >= p.n) p.shape.rank = 0;
    return p;
}

#define EACH_PIECE(p, a) \
    for (struct piece p = {0}; (a)->lo + p.at + p.n < (a)->hi && (p = piece_from(a, (a)->lo + p.at + p.n), true);)

static i64 floats_of(const struct piece *p) { return p->shape.rank ? factor_floats(&p->shape) : p->n; }

static i64 room(const struct wire_args *a) {
    i64 floats = 0;
    EACH_PIECE(p, a) floats += floats_of(&p);
    return 4 * floats;
}

static i64 state(const struct wire_args *a) {
    i64 floats = 0;
    EACH_PIECE(p, a) floats += p.shape.rank ? p.n + p.shape.rank * columns(&p.shape) : 0;
    return floats;
}

/* P of the largest piece. */
static i64 scratch_floats(const struct wire_args *a) {
    i64 floats = 0;
    EACH_PIECE(p, a) floats = lmax(floats, (i64)p.shape.rank * p.shape.rows);
    return floats;
}

/* Fills the columns of Q that are zero: all of them in the first round, later those of a rank that M did not have. */
static void start(const struct wire_shape *s, i64 at, f32 *q) {
    const i64 n = columns(s);
    for (i32 j = 0; j < s->rank; j++) {
        bool zero = true;
        for (i64 c = 0; c < n && zero; c++) zero = q[j * n + c] == 0;
        if (!zero) continue;
        for (i64 c = 0; c < n; c++) q[j * n + c] = rng_uniform((u64)at, RNG_WIRE, (u32)j, (u64)c) - 0.5f;
    }
}

static f64 dot(i64 n, const f32 *x, const f32 *y) {
    f64 s[LANES] = {0};
    i64 i = 0;
    for (; i + LANES <= n; i += LANES)
        for (i32 j = 0; j < LANES; j++) s[j] += (f64)x[i + j] * (f64)y[i + j];
    for (i32 j = 0; i + j < n; j++) s[j] += (f64)x[i + j] * (f64)y[i + j];
    for (i32 half = LANES / 2; half > 0; half /= 2)
        for (i32 j = 0; j < half; j++) s[j] += s[j + half];
    return s[0];
}

/* Modified Gram-Schmidt over the rank, each column twice: after one sweep nearly parallel columns are not orthogonal. A column
 * that depends on those before it, to rounding, becomes zero. */
static void orthonormalize(i32 rank, i64 n, f32 *p) {
    for (i32 j = 0; j < rank; j++) {
        f32 *x = p + j * n;
        const f64 before = dot(n, x, x);
        for (i32 i = 0; i < 2 * j; i++) {
            const f32 *y = p + i % j * n, f = (f32)dot(n, x, y);
            for (i64 k = 0; k < n; k++) x[k] -= f * y[k];
        }
        const f64 after = dot(n, x, x);
        const f32 scale = after > 1e-60 && after > 1e-10 * before ? (f32)(1 / sqrt(after)) : 0;
        for (i64 k = 0; k < n; k++) x[k] *= scale;
    }
}

static void fill_nan(i64 n, unsigned char *out) {
    for (i64 i = 0; i < n; i++) put32(out + 4 * i, 0x7fc00000u);
}

/* One matrix: v + e becomes P, Q in out; e and q are updated. */
static void factor(const struct piece *piece, i64 at, const f32 *v, f32 *e, f32 *p, unsigned char *out) {
    const struct wire_loops *l = wire_loops();
    const struct wire_shape *s = &piece->shape;
    const i64 np = (i64)s->rank * s->rows, nq = s->rank * columns(s);
    f32 *q = e + piece->n;
    l->add(piece->n, e, v);
    start(s, at, q);
    l->m_by_q(s, e, q, p);
    bool good = l->finite(np, p); /* no Q hides NaN or infinity in a row of M */
    if (good) {
        orthonormalize(s->rank, s->rows, p);
        l->mt_by_p(s, e, p, q);
        good = l->finite(nq, q);
    }
    if (good) {
        memcpy(out, p, (size_t)np * sizeof *p);
        memcpy(out + 4 * np, q, (size_t)nq * sizeof *q);
        l->p_by_q(s, out, out + 4 * np, e, true);
        good = l->finite(piece->n, e);
    }
    if (good) return;
    fill_nan(np + nq, out);
    memset(e, 0, (size_t)(piece->n + nq) * sizeof *e);
}

static u32 encode(const struct wire_args *a, const f32 *v, f32 *state_, f32 *scratch, unsigned char *out) {
    unsigned char *to = out;
    EACH_PIECE(p, a) {
        if (p.shape.rank) {
            factor(&p, a->lo + p.at, v + p.at, state_, scratch, to);
            state_ += p.n + p.shape.rank * columns(&p.shape);
        } else {
            memcpy(to, v + p.at, (size_t)p.n * sizeof *v);
        }
        to += 4 * floats_of(&p);
    }
    return (u32)(to - out);
}

static bool decode(const struct wire_args *a, const unsigned char *in, u32 bytes, f32 *v) {
    const struct wire_loops *l = wire_loops();
    if (bytes != room(a)) return false;
    EACH_PIECE(p, a) {
        if (p.shape.rank)
            l->p_by_q(&p.shape, in, in + 4 * (i64)p.shape.rank * p.shape.rows, v + p.at, false);
        else
            memcpy(v + p.at, in, (size_t)p.n * sizeof *v);
        in += 4 * floats_of(&p);
    }
    return true;
}

extern const struct wire_codec wire_powersgd;
const struct wire_codec wire_powersgd = {
    .name = "powersgd",
    .help = "each matrix as a product of low rank, with error feedback",
    .unit = "rank",
    .value = 4,
    .least = 1,
    .most = RANK_MAX,
    .whole = true,
    .room = room,
    .state = state,
    .scratch = scratch_floats,
    .encode = encode,
    .decode = decode,
};
