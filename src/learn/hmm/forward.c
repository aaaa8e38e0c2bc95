/* forward.c - scaled forward and backward pass of a hidden Markov model in f64.
 *
 *     alpha[t][l] = P(label l at t | words 0..t)          scale[t] = P(word t | words 0..t-1)
 *     beta[t][l]  = P(words t+1.. | label l at t) / product of their scales
 *     P(label l at t | words) = alpha beta                log-likelihood = sum of log scale */
#include <math.h>
#include <string.h>

#include "learn/hmm/hmm.h"

/* to[j] = sum_i from[i] trans[i][j] */
static void times_trans(const struct hmm *h, const f64 *from, f64 *to) {
    const i32 L = h->L;
    memset(to, 0, (size_t)L * sizeof *to);
    for (i32 i = 0; i < L; i++) {
        const f64 f = from[i], *row = h->trans + (i64)i * L;
        for (i32 j = 0; j < L; j++) to[j] += f * row[j];
    }
}

/* Multiplies by the emission and normalizes; returns the sum before. */
static f64 emit(const struct hmm *h, i32 word, f64 *at) {
    const f64 *e = h->emit + (i64)word * h->L;
    f64 sum = 0;
    for (i32 l = 0; l < h->L; l++) sum += at[l] *= e[l];
    const f64 by = sum > 0 ? 1 / sum : 0;
    for (i32 l = 0; l < h->L; l++) at[l] *= by;
    return sum;
}

static f64 forward(const struct hmm *h, const i32 *word, i64 n, f64 *alpha, f64 *scale) {
    f64 sum = 0;
    memcpy(alpha, h->start, (size_t)h->L * sizeof *alpha);
    for (i64 t = 0; t < n; t++) {
        if (t > 0) times_trans(h, alpha + (t - 1) * h->L, alpha + t * h->L);
        scale[t] = emit(h, word[t], alpha + t * h->L);
        sum += log(scale[t]);
    }
    return sum;
}

/* From beta at t to beta at t - 1; adds the expected transitions between the two.  g: scratch. */
static void step_back(const struct hmm *h, const f64 *alpha, i32 word, f64 scale, f64 *beta, f64 *g, f64 *count) {
    const i32 L = h->L;
    const f64 *e = h->emit + (i64)word * L, by = scale > 0 ? 1 / scale : 0;
    for (i32 j = 0; j < L; j++) g[j] = e[j] * beta[j] * by;
    for (i32 i = 0; i < L; i++) {
        const f64 *row = h->trans + (i64)i * L, a = alpha[i];
        f64 *to = count + (i64)i * L, sum = 0;
        for (i32 j = 0; j < L; j++) {
            const f64 x = row[j] * g[j];
            to[j] += a * x;
            sum += x;
        }
        beta[i] = sum;
    }
}

f64 hmm_expect(const struct hmm *h, const i32 *word, i64 n, f64 *count, f64 *room) {
    const i32 L = h->L;
    f64 *alpha = room, *beta = alpha + n * L, *g = beta + L, *scale = g + L;
    if (n == 0) return 0;
    const f64 likelihood = forward(h, word, n, alpha, scale);
    if (!count) return likelihood;
    f64 *start = count, *trans = start + L, *emitted = trans + (i64)L * L;
    for (i32 l = 0; l < L; l++) beta[l] = 1;
    for (i64 t = n - 1; t >= 0; t--) {
        const f64 *a = alpha + t * L;
        f64 *to = emitted + (i64)word[t] * L;
        for (i32 l = 0; l < L; l++) to[l] += a[l] * beta[l];
        if (t > 0) step_back(h, a - L, word[t], scale[t], beta, g, trans);
    }
    for (i32 l = 0; l < L; l++) start[l] += alpha[l] * beta[l];
    return likelihood;
}
