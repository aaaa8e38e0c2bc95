/* family.c - the passes of a loss whose outputs are parameters of a distribution, value by value in f64, and the scores and
 * values of counts (family.h). */
#include <string.h>

#include "base/special.h"
#include "model/loss/family.h"
#include "model/loss/loss.h"

/* ------------------------------------------------------------------ the list ------------------------------------------------ */

extern const struct family family_normal, family_student_t, family_negative_binomial, family_poisson;

const struct family *family_find(const char *loss) {
    static const struct {
        const char *loss;
        const struct family *of;
    } all[] = {{"normal", &family_normal},
               {"student_t", &family_student_t},
               {"negative_binomial", &family_negative_binomial},
               {"poisson", &family_poisson}};
    for (size_t i = 0; i < COUNT(all); i++)
        if (strcmp(all[i].loss, loss) == 0) return all[i].of;
    return NULL;
}

/* ------------------------------------------------------------------ the pass ------------------------------------------------ */

err family_shape(struct net *n, struct op *op, const struct family *f) {
    TRY(layer_range(op, "number of parameters", op->spec.nquantile, f->nparam, f->nparam));
    return loss_shape(n, op);
}

f64 family_flops(const struct op *op, const struct net *n, i32 B, bool backward) {
    (void)n, (void)backward;
    return 100.0 * op->T * B * op->I; /* exp, log, gamma functions */
}

/* A value of row `at` = t*B + b: loss, and derivatives if d is given.  Missing targets have neither. */
static f64 value_of(const struct op *op, const struct run *r, i64 at, i32 j, const struct family *f, f64 *d) {
    const i64 Ip = round_up(op->I, LANES), Fp = round_up(op->F, LANES);
    const f32 *pred = run_in(op, r, 0) + at * Ip + j, y = run_in(op, r, 1)[at * Fp + j];
    f64 raw[FAMILY_PARAMS], own[FAMILY_PARAMS] = {0};
    f64 loss = 0;
    if (!isnan(y)) {
        const f64 base = op->spec.in[2] >= 0 ? (f64)run_in(op, r, 2)[at * Fp + j] : 0;
        for (i32 p = 0; p < f->nparam; p++) raw[p] = (f64)pred[(i64)p * op->F];
        loss = f->nll(raw, base, (f64)y, own);
    }
    if (d) memcpy(d, own, sizeof own);
    return loss;
}

/* Parts cover whole micro-batches; the parts of one micro-batch come in order of t. */
void family_fwd(const struct op *op, const struct run *r, struct part p, const struct family *f) {
    for (i32 g = grain_first(r, p); g < grain_end(r, p); g++) {
        const struct part q = part_grain(r, p, g);
        f64 total = p.t0 == 0 ? 0 : r->loss[g];
        for (i32 t = q.t0; t < q.t1; t++)
            for (i32 b = q.b0; b < q.b1; b++)
                for (i32 j = 0; j < op->F; j++) total += value_of(op, r, (i64)t * r->B + b, j, f, NULL);
        r->loss[g] = total;
    }
}

void family_bwd(const struct op *op, const struct run *r, struct part p, const struct family *f) {
    f32 *d = run_din(op, r, 0);
    const i64 Ip = round_up(op->I, LANES);
    if (!d) return;
    for (i32 t = p.t0; t < p.t1; t++)
        for (i32 b = p.b0; b < p.b1; b++) {
            const i64 at = (i64)t * r->B + b;
            f32 *to = d + at * Ip;
            for (i32 j = 0; j < op->F; j++) {
                f64 slope[FAMILY_PARAMS];
                value_of(op, r, at, j, f, slope);
                for (i32 k = 0; k < f->nparam; k++) to[(i64)k * op->F + j] = (f32)slope[k] * r->loss_scale;
            }
            memset(to + op->I, 0, (size_t)(Ip - op->I) * sizeof *d);
        }
}

/* ------------------------------------------------------------------ counts -------------------------------------------------- */

f64 family_step_score(const struct family_steps *s, f64 y, f64 v) {
    const f64 upto = s->upto(s->of, y), above = s->above(s->of, y);
    const f64 before = y >= 1 ? s->upto(s->of, y - 1) : 0, from = y >= 1 ? s->above(s->of, y - 1) : 1;
    const f64 low = before + v * (upto - before), high = above + (1 - v) * (from - above); /* shares below and above */
    const f64 least = special_normal_tail(FAMILY_FAR);
    if (low <= high) return special_normal_quantile(low > least ? low : least);
    return -special_normal_quantile(high > least ? high : least);
}

/* True if the distribution reaches the level of z at k. */
static bool reaches(const struct family_steps *s, f64 k, f64 z) {
    return z > 0 ? s->above(s->of, k) <= special_normal_tail(z) : s->upto(s->of, k) >= special_normal_tail(-z);
}

f64 family_step_value(const struct family_steps *s, f64 mean, f64 z) {
    f64 low = -1, high = ceil(mean); /* reaches(high), not reaches(low) */
    z = family_near(z);
    for (f64 step = 1; !reaches(s, high, z) && high < 0x1p52; step *= 2) { /* larger numbers have no neighbours one apart */
        low = high;
        high += step;
    }
    while (high - low > 1 && high <= 0x1p53) {
        const f64 middle = floor((low + high) / 2);
        if (reaches(s, middle, z))
            high = middle;
        else
            low = middle;
    }
    return high;
}
