/* direction.c - the two loops of L-BFGS on products of the history; see train.h. */
#include "learn/crf/train.h"

/* The two loops of Nocedal on products instead of vectors.  Pairs without curvature are left out. */
void crf_direction(const struct crf_run *r, const f64 *dots, struct crf_direction *out) {
    f64 alpha[CRF_HISTORY] = {0}, cs[CRF_HISTORY] = {0};
    i32 order[CRF_HISTORY], n = 0; /* newest first */
    *out = (struct crf_direction){.gamma = 1};
    for (i32 k = 0; k < r->n; k++) {
        const i32 i = (r->slot - k + r->s->history) % r->s->history;
        if (dots[dot_sy(i, i)] > 1e-10 * dots[dot_yy(i, i)]) order[n++] = i;
    }
    for (i32 k = 0; k < n; k++) {
        const i32 i = order[k];
        f64 x = dots[dot_sq(i)];
        for (i32 j = 0; j < k; j++) x -= alpha[order[j]] * dots[dot_sy(i, order[j])];
        alpha[i] = x / dots[dot_sy(i, i)];
    }
    if (n > 0) out->gamma = dots[dot_sy(order[0], order[0])] / dots[dot_yy(order[0], order[0])];
    for (i32 k = n - 1; k >= 0; k--) {
        const i32 i = order[k];
        f64 x = dots[dot_yq(i)];
        for (i32 j = 0; j < n; j++) x -= alpha[order[j]] * dots[dot_yy(i, order[j])];
        x *= out->gamma;
        for (i32 j = n - 1; j > k; j--) x += cs[order[j]] * dots[dot_sy(order[j], i)];
        cs[i] = alpha[i] - x / dots[dot_sy(i, i)];
    }
    for (i32 k = 0; k < n; k++) {
        out->cs[order[k]] = cs[order[k]];
        out->cy[order[k]] = -alpha[order[k]];
    }
}
