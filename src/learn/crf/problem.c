/* problem.c - what a training derives from its data: columns, gold pairs, and the grains that are cut by cost; see train.h. */
#include <string.h>

#include "base/mem.h"
#include "learn/crf/train.h"

/* Tokens of each attribute, by counting. */
static err index_columns(struct crf_problem *p) {
    const i64 n = p->f.at[p->ntoken];
    NEW(p->column_at, p->nattr + 2);
    NEW(p->column_token, n + CRF_AHEAD);
    for (i64 k = 0; k < n; k++) p->column_at[p->f.attribute[k] + 2]++;
    for (i64 a = 0; a < p->nattr; a++) p->column_at[a + 2] += p->column_at[a + 1];
    for (i64 t = 0; t < p->ntoken; t++)
        for (i64 k = p->f.at[t]; k < p->f.at[t + 1]; k++)
            p->column_token[p->column_at[p->f.attribute[k] + 1]++] = (i32)t;
    return 0;
}

static err count_pairs(struct crf_problem *p) {
    NEW(p->pair, (i64)p->Lp * p->Lp);
    for (i32 j = 0; j < p->nsentence; j++) {
        p->longest = imax(p->longest, (i32)(p->first[j + 1] - p->first[j]));
        for (i64 t = p->first[j] + 1; t < p->first[j + 1]; t++) p->pair[(i64)p->gold[t - 1] * p->Lp + p->gold[t]]++;
    }
    return 0;
}

/* Grains of rows of about equal cost: sums over tokens, and vector operations. */
static void cut_rows(struct crf_problem *p) {
    enum { VECTORS = 24 }; /* of a row in a step; a sum over a token costs one */
    const i64 all = p->f.at[p->ntoken] + VECTORS * p->nrow;
    i64 done = 0;
    i32 k = 1;
    p->ngrain = (i32)lmin(CRF_GRAINS, p->nrow);
    for (i64 row = 0; row < p->nrow; row++) {
        done += VECTORS + (row < p->nattr ? p->column_at[row + 1] - p->column_at[row] : 0);
        while (k < p->ngrain && done * p->ngrain >= all * k) p->row[k++] = (i32)row + 1;
    }
    while (k <= p->ngrain) p->row[k++] = (i32)p->nrow;
}

static void cut_sentences(struct crf_problem *p) {
    i32 k = 1;
    p->npass = imin(CRF_GRAINS, p->nsentence);
    for (i32 j = 0; j < p->nsentence; j++)
        while (k < p->npass && p->first[j + 1] * p->npass >= p->ntoken * k) p->sentence[k++] = j + 1;
    while (k <= p->npass) p->sentence[k++] = p->nsentence;
}

err crf_problem_index(struct crf_problem *p) {
    TRY(index_columns(p));
    TRY(count_pairs(p));
    cut_rows(p);
    cut_sentences(p);
    return 0;
}

void crf_problem_free(struct crf_problem *p) {
    features_free(&p->f);
    mem_free(p->column_at);
    mem_free(p->column_token);
    mem_free(p->gold);
    mem_free(p->pair);
    *p = (struct crf_problem){0};
}

void crf_add_pairs(i32 L, i32 Lp, const f32 *pair, const f32 *E, f64 *to) {
    for (i32 i = 0; i < L; i++)
        for (i32 j = 0; j < L; j++) to[i * Lp + j] += (f64)(pair[i * Lp + j] * E[i * Lp + j]);
}
