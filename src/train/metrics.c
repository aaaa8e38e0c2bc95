/* metrics.c - sums per (column, kind of sum, step), so that the inner loop over steps is plain arithmetic on rows of f64.
 *
 *     sum [col][SUM_N][H]        pin [col][nq][H]  below [col][nq][H]  inside [col][nq/2][H]
 *
 * Scaled sums are kept; what is linear or quadratic (e, e^2, y, y^2) turns into original units at the end with mean and dev of
 * the column, what is not (|y|, sMAPE) is summed in both. */
#include "train/metrics.h"

#include <math.h>

enum sum_kind { N, E, EE, AE, Y, YY, F, FF, YF, AY, SM, AY_RAW, SM_RAW, SUM_N };

struct metrics {
    i32 H, ncol, nq;
    f64 q[QUANTILES_MAX];
    f64 *mean, *dev, *scale; /* [ncol]; all arrays are in the block at mean */
    f64 *sum;                /* [ncol][SUM_N][H] */
    f64 *pin, *below;        /* [ncol][nq][H] */
    f64 *inside;             /* [ncol][nq/2][H] */
};

err metrics_new(const struct series *s, i32 ncol, i32 H, const f64 *q, i32 nq, struct metrics **out) {
    struct metrics *m;
    if (nq > QUANTILES_MAX) return FAIL(E103, "%d quantiles, at most %d are possible", nq, QUANTILES_MAX);
    NEW(m, 1);
    m->H = H;
    m->ncol = ncol;
    m->nq = q ? nq : 0;
    for (i32 i = 0; i < m->nq; i++) m->q[i] = q[i];
    const i64 per_quantile = (i64)ncol * m->nq * H, per_band = (i64)ncol * (m->nq / 2) * H, sums = (i64)ncol * SUM_N * H;
    const err e = mem_new((void **)&m->mean, 3 * (i64)ncol + sums + 2 * per_quantile + per_band, sizeof(f64));
    if (e < 0) {
        metrics_free(m);
        return e;
    }
    m->dev = m->mean + ncol;
    m->scale = m->dev + ncol;
    m->sum = m->scale + ncol;
    m->pin = m->sum + sums;
    m->below = m->pin + per_quantile;
    m->inside = m->below + per_quantile;
    for (i32 c = 0; c < ncol; c++) {
        m->mean[c] = s->mean ? s->mean[c] : 0;
        m->dev[c] = s->dev ? s->dev[c] : 1;
        m->scale[c] = NAN;
    }
    *out = m;
    return 0;
}

void metrics_free(struct metrics *m) {
    if (!m) return;
    mem_free(m->mean);
    mem_free(m);
}

void metrics_set_scale(struct metrics *m, i32 col, f64 scale) { m->scale[col] = scale; }

static void add_quantiles(struct metrics *m, i32 col, const f32 *y, const f32 *qf) {
    const i32 H = m->H, nq = m->nq;
    for (i32 h = 0; h < H; h++) {
        if (isnan(y[h])) continue;
        const f32 *at = qf + (i64)h * nq;
        for (i32 k = 0; k < nq; k++) {
            f64 d = (f64)y[h] - (f64)at[k];
            i64 cell = ((i64)col * nq + k) * H + h;
            m->pin[cell] += d >= 0 ? m->q[k] * d : (m->q[k] - 1) * d;
            m->below[cell] += y[h] <= at[k];
        }
        for (i32 k = 0; k < nq / 2; k++)
            m->inside[((i64)col * (nq / 2) + k) * H + h] += y[h] >= at[k] && y[h] <= at[nq - 1 - k];
    }
}

/* A value in original units. Values that differ from zero only by f32 rounding become zero; otherwise ND of a split that is all
 * zeros would be a large number instead of NaN. */
static f64 raw_value(f64 v, f64 dev, f64 mean) {
    const f64 raw = v * dev + mean;
    return fabs(raw) > 0x1p-23 * fabs(mean) ? raw : 0;
}

void metrics_add(struct metrics *m, i32 col, const f32 *y, const f32 *f, const f32 *qf) {
    const i32 H = m->H;
    const f64 mean = m->mean[col], dev = m->dev[col];
    f64 *s = m->sum + (i64)col * SUM_N * H;
    for (i32 h = 0; h < H; h++) {
        f64 on = isnan(y[h]) ? 0.0 : 1.0;
        f64 a = on != 0 ? (f64)y[h] : 0.0, b = on != 0 ? (f64)f[h] : 0.0;
        f64 d = a - b, ae = fabs(d), size = fabs(a) + fabs(b);
        f64 ra = raw_value(a, dev, mean), raw_size = fabs(ra) + fabs(raw_value(b, dev, mean));
        s[N * H + h] += on;
        s[E * H + h] += d;
        s[EE * H + h] += d * d;
        s[AE * H + h] += ae;
        s[Y * H + h] += a;
        s[YY * H + h] += a * a;
        s[F * H + h] += b;
        s[FF * H + h] += b * b;
        s[YF * H + h] += a * b;
        s[AY * H + h] += fabs(a);
        s[SM * H + h] += size > 0 ? ae / size : size; /* 0 / 0 counts as no error; NaN stays NaN */
        s[AY_RAW * H + h] += fabs(ra) * on;
        s[SM_RAW * H + h] += raw_size > 0 ? ae * dev / raw_size : raw_size;
    }
    if (qf && m->nq) add_quantiles(m, col, y, qf);
}

/* Sums of a range of steps of one column, scaled units, as metrics_add kept them. */
static void column_sums(const struct metrics *m, i32 h0, i32 h1, i32 col, f64 out[SUM_N]) {
    const f64 *s = m->sum + (i64)col * SUM_N * m->H;
    for (i32 k = 0; k < SUM_N; k++) {
        out[k] = 0;
        for (i32 h = h0; h < h1; h++) out[k] += s[(i64)k * m->H + h];
    }
}

static f64 correlation(const f64 s[SUM_N]) {
    f64 n = s[N], vy = s[YY] - s[Y] * s[Y] / n, vf = s[FF] - s[F] * s[F] / n, c = s[YF] - s[Y] * s[F] / n;
    return n > 1 && vy > 1e-12 * s[YY] && vf > 1e-12 * s[FF] ? c / sqrt(vy * vf) : NAN;
}

struct totals {
    f64 n, ee, ae, ay, sm, mean, rest, /* rest: squares about the mean of the targets */
        corr, ncorr, mase, nmase;
    f64 pin;
    f64 below[QUANTILES_MAX], inside[QUANTILES_MAX / 2];
};

/* The mean and the squares about it of one more column: nothing large is subtracted when the mean is far from zero. */
static void add_spread(struct totals *t, f64 n, f64 mean, f64 rest) {
    f64 all = t->n + n, d = mean - t->mean;
    t->rest += rest + d * d * t->n * n / all;
    t->mean += d * n / all;
}

static void add_column(const struct metrics *m, i32 h0, i32 h1, i32 col, bool original, struct totals *t) {
    f64 s[SUM_N], r;
    column_sums(m, h0, h1, col, s);
    if (s[N] == 0) return;
    const f64 dev = original ? m->dev[col] : 1, mean = original ? m->mean[col] : 0;
    add_spread(t, s[N], s[Y] / s[N] * dev + mean, (s[YY] - s[Y] * s[Y] / s[N]) * dev * dev);
    t->n += s[N];
    t->ee += s[EE] * dev * dev;
    t->ae += s[AE] * dev;
    t->ay += original ? s[AY_RAW] : s[AY];
    t->sm += original ? s[SM_RAW] : s[SM];
    r = correlation(s);
    if (!isnan(r)) t->corr += r, t->ncorr += 1;
    if (m->scale[col] > 0) t->mase += s[AE] * m->dev[col] / s[N] / m->scale[col], t->nmase += 1;
    for (i32 k = 0; k < m->nq; k++)
        for (i32 h = h0; h < h1; h++) {
            t->pin += m->pin[((i64)col * m->nq + k) * m->H + h] * dev;
            t->below[k] += m->below[((i64)col * m->nq + k) * m->H + h];
        }
    for (i32 k = 0; k < m->nq / 2; k++)
        for (i32 h = h0; h < h1; h++) t->inside[k] += m->inside[((i64)col * (m->nq / 2) + k) * m->H + h];
}

void metrics_score(const struct metrics *m, i32 step, i32 col, bool original, struct score *out) {
    struct totals t = {0};
    const i32 h0 = step < 0 ? 0 : step, h1 = step < 0 ? m->H : step + 1;
    for (i32 c = col < 0 ? 0 : col; c < (col < 0 ? m->ncol : col + 1); c++) add_column(m, h0, h1, c, original, &t);
    *out = (struct score){.n = (i64)t.n, .nquantile = m->nq, .nband = m->nq / 2};
    out->mse = t.ee / t.n;
    out->mae = t.ae / t.n;
    out->rmse = sqrt(out->mse);
    out->smape = 200 * t.sm / t.n;
    out->mase = t.nmase > 0 ? t.mase / t.nmase : NAN;
    out->nd = t.ay > 0 ? t.ae / t.ay : NAN;
    out->rse = sqrt(t.ee / t.rest);
    out->corr = t.ncorr > 0 ? t.corr / t.ncorr : NAN;
    out->wql = m->nq && t.ay > 0 ? 2 * t.pin / m->nq / t.ay : NAN;
    out->pinball = m->nq ? t.pin / m->nq / t.n : NAN;
    for (i32 k = 0; k < m->nq; k++) out->below[k] = t.below[k] / t.n;
    for (i32 k = 0; k < m->nq / 2; k++) out->coverage[k] = t.inside[k] / t.n;
}

f64 mase_scale(const struct series *s, i32 col, i32 season, i64 rows) {
    const f32 *x = series_col(s, col);
    f64 sum = 0, n = 0;
    for (i64 i = season; i < rows; i++) {
        if (!series_is_target(s, col, i) || !series_is_target(s, col, i - season)) continue;
        sum += fabs((f64)x[i] - (f64)x[i - season]);
        n += 1;
    }
    return n > 0 && sum > 0 ? sum / n * (s->dev ? s->dev[col] : 1) : NAN;
}
