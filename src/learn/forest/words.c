/* words.c - the order of words by their targets, and bins of words; see words.h. */
#include "learn/forest/words.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/vocab.h"
#include "learn/forest/bins.h"

enum { POWER_STEPS = 50 };

struct ranked {
    f64 score;
    i32 word;
};

static int by_score(const void *a, const void *b) {
    const struct ranked *p = a, *q = b;
    if (p->score < q->score) return -1;
    if (p->score > q->score) return 1;
    return p->word < q->word ? -1 : p->word > q->word;
}

struct ordering {
    i32 nword, nclass;
    f64 *count;    /* [nword] rows of a word */
    f64 *share;    /* [nword][max(1, nclass)] sum of targets, or rows of each class */
    f64 *axis;     /* [2][nclass] */
};

static void count_rows(const struct column *c, i64 rows, const u32 *target, struct ordering *o) {
    const i32 C = imax(1, o->nclass);
    for (i64 i = 0; i < rows; i++) {
        const i32 w = c->code[i];
        if (w < 0 || target[i] == NO_TARGET) continue;
        o->count[w]++;
        if (o->nclass == 0) o->share[w] += (f64)target[i];
        else o->share[(i64)w * C + target[i]]++;
    }
}

/* One power step of the weighted covariance of class shares: to = sum over words of n_w (p_w - p) ((p_w - p) . from). */
static void power_step(const struct ordering *o, const f64 *mean, const f64 *from, f64 *to) {
    const i32 C = o->nclass;
    f64 norm = 0;
    for (i32 k = 0; k < C; k++) to[k] = 0;
    for (i32 w = 0; w < o->nword; w++) {
        f64 dot = 0;
        if (!(o->count[w] > 0)) continue;
        for (i32 k = 0; k < C; k++) dot += (o->share[(i64)w * C + k] / o->count[w] - mean[k]) * from[k];
        for (i32 k = 0; k < C; k++) to[k] += dot * (o->share[(i64)w * C + k] - o->count[w] * mean[k]);
    }
    for (i32 k = 0; k < C; k++) norm += to[k] * to[k];
    for (i32 k = 0; k < C && norm > 0; k++) to[k] /= sqrt(norm);
}

/* axis[0 .. C): the first principal component; the start has no class twice, so that it is not at right angles to it by
 * symmetry. */
static void principal(const struct ordering *o, f64 *mean) {
    const i32 C = o->nclass;
    f64 all = 0;
    for (i32 w = 0; w < o->nword; w++) {
        all += o->count[w];
        for (i32 k = 0; k < C; k++) mean[k] += o->share[(i64)w * C + k];
    }
    for (i32 k = 0; k < C; k++) {
        mean[k] = all > 0 ? mean[k] / all : 0;
        o->axis[k] = C == 2 ? k : 1.0 / (1 + k);
    }
    for (i32 s = 0; s < POWER_STEPS && C > 2; s++) power_step(o, mean, o->axis + (s & 1) * C, o->axis + (1 - (s & 1)) * C);
}

static f64 score_of(const struct ordering *o, i32 w) {
    f64 s = 0;
    if (o->nclass == 0) return o->share[w] / o->count[w];
    for (i32 k = 0; k < o->nclass; k++) s += o->axis[k] * o->share[(i64)w * o->nclass + k];
    return s / o->count[w];
}

/* Bins in the order of the scores; more words than bins share the bins evenly. */
static i32 deal_bins(struct ranked *place, i32 n, u8 *bin) {
    qsort(place, (size_t)n, sizeof *place, by_score);
    for (i32 k = 0; k < n; k++) bin[place[k].word] = (u8)(1 + (n <= CUTS_MOST + 1 ? k : (i64)k * (CUTS_MOST + 1) / n));
    return imin(n, CUTS_MOST + 1) - 1;
}

static err order(const struct column *c, i64 rows, const u32 *target, struct ordering *o, struct arena *a, u8 *bin, i32 *cuts) {
    struct ranked *place;
    f64 *mean;
    i32 n = 0;
    ARENA_NEW(a, o->count, o->nword + 1);
    ARENA_NEW(a, o->share, (i64)(o->nword + 1) * imax(1, o->nclass));
    ARENA_NEW(a, o->axis, 2 * o->nclass + 1);
    ARENA_NEW(a, mean, o->nclass + 1);
    ARENA_NEW(a, place, o->nword + 1);
    count_rows(c, rows, target, o);
    if (o->nclass > 0) principal(o, mean);
    for (i32 w = 0; w < o->nword; w++)
        if (o->count[w] > 0) place[n++] = (struct ranked){score_of(o, w), w};
    *cuts = deal_bins(place, n, bin);
    if (*cuts <= 0) *cuts = c->missing > 0 && n > 0 ? 0 : -1;
    return 0;
}

err words_order(const struct column *c, i64 rows, const u32 *target, i32 nclass, u8 **bin, i32 *cuts) {
    struct ordering o = {.nword = c->nword, .nclass = nclass};
    struct arena a = {0};
    NEW(*bin, c->nword + 1);
    const err e = order(c, rows, target, &o, &a, *bin, cuts);
    arena_free(&a);
    return e;
}

static err look_up(const struct column *c, const char *const *word, const u8 *word_bin, i32 n, struct vocab *v, u8 *bin) {
    i32 code;
    for (i32 k = 0; k < n; k++) TRY(vocab_code(v, word[k], (i64)strlen(word[k]), &code));
    for (i32 w = 0; w < c->nword; w++) {
        code = vocab_find(v, c->word[w], (i64)strlen(c->word[w]));
        bin[w] = code < 0 ? 0 : word_bin[code];
    }
    return 0;
}

err words_bins(const struct column *c, const char *const *word, const u8 *word_bin, i32 n, u8 **bin) {
    struct vocab v = {0};
    NEW(*bin, c->nword + 1);
    const err e = look_up(c, word, word_bin, n, &v, *bin);
    vocab_free(&v);
    if (e >= 0) return 0;
    mem_free(*bin);
    *bin = NULL;
    return e;
}
