/* ridge.c - see ridge.h. */
#include "learn/sequence/ridge.h"

#include <string.h>

#include "bases/linear.h"

#define PENALTY 1.0

err ridge_sums_new(i32 n, i32 K, struct ridge_sums *q) {
    *q = (struct ridge_sums){.n = n, .K = K};
    ARENA_NEW(&q->arena, q->u, n);
    ARENA_NEW(&q->arena, q->y, K);
    ARENA_NEW(&q->arena, q->su, n);
    ARENA_NEW(&q->arena, q->sy, K);
    ARENA_NEW(&q->arena, q->uu, (i64)n * n);
    ARENA_NEW(&q->arena, q->uy, (i64)n * K);
    return 0;
}

void ridge_sums_add(struct ridge_sums *q) {
    q->count++;
    for (i32 a = 0; a < q->n; a++) {
        q->su[a] += q->u[a];
        for (i32 b = a; b < q->n; b++) q->uu[(i64)a * q->n + b] += q->u[a] * q->u[b];
        for (i32 k = 0; k < q->K; k++) q->uy[(i64)a * q->K + k] += q->u[a] * q->y[k];
    }
    for (i32 k = 0; k < q->K; k++) q->sy[k] += q->y[k];
}

/* About the means; the penalty of an input is that of its deviation. */
static void centre(struct ridge_sums *q) {
    const i32 n = q->n, K = q->K;
    for (i32 a = 0; a < n; a++) {
        for (i32 b = a; b < n; b++) q->uu[(i64)a * n + b] -= q->su[a] * q->su[b] / q->count;
        for (i32 k = 0; k < K; k++) q->uy[(i64)a * K + k] -= q->su[a] * q->sy[k] / q->count;
    }
    for (i32 a = 0; a < n; a++) {
        f64 *own = &q->uu[(i64)a * n + a];
        *own += dmax(PENALTY * *own / q->count, 1e-9);
    }
}

void ridge_sums_solve(struct ridge_sums *q, f64 *weight) {
    const struct algebra *g = algebra_best();
    const i32 n = q->n, K = q->K;
    memset(weight, 0, sizeof *weight * (size_t)(n + 1) * (size_t)K);
    if (q->count == 0) return;
    centre(q);
    if (cholesky(g, n, q->uu)) {
        cholesky_solve(g, n, q->uu, K, q->uy);
        memcpy(weight, q->uy, sizeof *weight * (size_t)n * (size_t)K);
    }
    for (i32 k = 0; k < K; k++) {
        f64 *constant = &weight[(i64)n * K + k];
        *constant = q->sy[k] / q->count;
        for (i32 a = 0; a < n; a++) *constant -= weight[(i64)a * K + k] * q->su[a] / q->count;
    }
}
