/* scale.c - channels and labels as the net reads them: standardised by the training, or each sequence by itself. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "learn/sequence/sequence.h"

/* Mean and deviation of what is present; a constant has deviation 1. */
struct spread {
    f64 n, sum, square;
};

static void spread_add(struct spread *p, f64 v, f64 about) {
    if (isnan(v)) return;
    p->n++;
    p->sum += v - about;
    p->square += (v - about) * (v - about);
}

static void spread_take(const struct spread *p, f64 about, f64 *mean, f64 *deviation) {
    const f64 shift = p->n > 0 ? p->sum / p->n : 0, var = p->n > 0 ? p->square / p->n - shift * shift : 0;
    *mean = about + shift;
    *deviation = var > 1e-20 * (*mean * *mean) && var > 0 ? sqrt(var) : 1;
}

/* The sums are about the first value, so that large values with small changes keep their digits. */
static void channel_spread(const struct sequence_set *s, const i64 *sequence, i64 n, i32 c, f64 *mean, f64 *deviation) {
    struct spread p = {0};
    f64 about = 0;
    for (i64 k = 0; k < n; k++)
        for (i32 i = 0; i < s->length[sequence[k]]; i++) {
            const f64 v = sequence_value(s, sequence[k], i, c);
            if (p.n == 0 && !isnan(v)) about = v;
            spread_add(&p, v, about);
        }
    spread_take(&p, about, mean, deviation);
}

static int by_value(const void *a, const void *b) {
    const f64 x = *(const f64 *)a, y = *(const f64 *)b;
    return x < y ? -1 : x > y;
}

/* The error names the first sequence of the file that is trained on and has a label. */
static err one_label(const struct sequence_set *s, i64 records, const char *fix, const char *value) {
    char where[256];
    i64 first = s->set.nrow;
    for (i64 k = 0; k < records; k++)
        if (s->classes ? sequence_class(s, s->at[k], 0) >= 0 : !isnan(sequence_number(s, s->at[k], 0)))
            first = lmin(first, s->at[k]);
    sequence_where(s, first == s->set.nrow ? 0 : first, 0, where);
    return FAIL_AT(E212, where, fix, "the label \"%s\" is %s here and in all %lld sequences of the training",
                   s->t->col[s->target].name, value, (long long)records);
}

/* Mean, deviation and median of the labels. */
static err number_spread(struct sequence_model *m, const struct sequence_set *s, i64 records) {
    struct spread p = {0};
    f64 *all;
    i64 n = 0, labels = 0;
    for (i64 k = 0; k < records; k++) labels += sequence_labels(m, s, s->at[k]);
    NEW(all, labels + 1);
    for (i64 k = 0; k < records; k++)
        for (i32 i = 0; i < sequence_labels(m, s, s->at[k]); i++) {
            const f64 v = sequence_number(s, s->at[k], i);
            if (!isnan(v)) all[n++] = v;
        }
    for (i64 i = 0; i < n; i++) spread_add(&p, all[i], all[0]);
    spread_take(&p, n > 0 ? all[0] : 0, &m->y_mean, &m->y_deviation);
    qsort(all, (size_t)n, sizeof *all, by_value);
    m->y_median = n > 0 ? (all[(n - 1) / 2] + all[n / 2]) / 2 : 0;
    const bool constant = n == 0 || !(all[n - 1] > all[0]);
    mem_free(all);
    if (!constant) return 0;
    char value[40] = "missing";
    if (n > 0) str_print(value, sizeof value, "%.6g", m->y_mean);
    return one_label(s, records, "a file with different labels", value);
}

/* The classes are those of the training in order of appearance. */
static err choose_classes(struct sequence_model *m, const struct sequence_set *s, i64 records) {
    const struct column *c = &s->t->col[s->target];
    i64 *count, labels = 0;
    NEW(count, c->nword + 1);
    err e = 0;
    for (i64 k = 0; k < records && e >= 0; k++)
        for (i32 i = 0; i < sequence_labels(m, s, s->at[k]) && e >= 0; i++) {
            const i32 word = sequence_class(s, s->at[k], i);
            i32 code;
            if (word < 0) continue;
            e = vocab_code(&m->classes, c->word[word], (i64)strlen(c->word[word]), &code);
            count[e < 0 ? 0 : code]++;
            labels++;
        }
    if (e >= 0) m->share = arena_array(&m->arena, m->classes.n + 1, sizeof *m->share);
    for (i32 k = 0; k < m->classes.n && e >= 0 && m->share; k++) m->share[k] = (f64)count[k] / (f64)labels;
    mem_free(count);
    TRY(e);
    if (!m->share) return -E601;
    if (m->classes.n > 1) return 0;
    return one_label(s, records, "a file with at least two classes", m->classes.n == 1 ? vocab_word(&m->classes, 0) : "missing");
}

err sequence_scale_fit(struct sequence_model *m, const struct sequence_set *s, i64 records) {
    m->nchannel = s->nchannel;
    ARENA_NEW(&m->arena, m->channel, s->nchannel);
    ARENA_NEW(&m->arena, m->mean, s->nchannel);
    ARENA_NEW(&m->arena, m->deviation, s->nchannel);
    for (i32 c = 0; c < s->nchannel; c++) {
        TRY(arena_keep(&m->arena, &m->channel[c], s->t->col[s->channel[c]].name));
        m->deviation[c] = 1;
        if (m->scale == SCALE_TRAINING) channel_spread(s, s->at, records, c, &m->mean[c], &m->deviation[c]);
    }
    return m->regress ? number_spread(m, s, records) : choose_classes(m, s, records);
}

/* ------------------------------------------------------------------ data ---------------------------------------------------- */

static void take_channel(const struct sequence_model *m, struct sequence_data *d, i64 sequence, i32 c) {
    const struct sequence_set *s = d->s;
    f64 mean = m->mean[c], deviation = m->deviation[c];
    if (m->scale == SCALE_EACH) channel_spread(s, &sequence, 1, c, &mean, &deviation);
    for (i32 i = 0; i < s->length[sequence]; i++) {
        const f64 v = (sequence_value(s, sequence, i, c) - mean) / deviation;
        d->z[(s->first[sequence] + i) * s->nchannel + c] = isnan(v) ? 0 : (f32)v;
    }
}

static void take_numbers(const struct sequence_model *m, struct sequence_data *d, i64 sequence) {
    for (i32 i = 0; i < sequence_labels(m, d->s, sequence); i++)
        d->y[d->s->first[sequence] + i] = (f32)((sequence_number(d->s, sequence, i) - m->y_mean) / m->y_deviation);
}

static void take_classes(const struct sequence_model *m, struct sequence_data *d, i64 sequence, const i32 *code) {
    for (i32 i = 0; i < sequence_labels(m, d->s, sequence); i++) {
        const i32 word = sequence_class(d->s, sequence, i);
        d->class[d->s->first[sequence] + i] = word < 0 ? -1 : code[word];
    }
}

static err take_labels(const struct sequence_model *m, struct sequence_data *d) {
    const struct sequence_set *s = d->s;
    const struct column *c = s->target < 0 ? NULL : &s->t->col[s->target];
    i32 *code = NULL;
    if (m->regress)
        NEW(d->y, s->t->nrow);
    else
        NEW(d->class, s->t->nrow);
    if (!m->regress && c) NEW(code, c->nword + 1);
    for (i32 w = 0; code && w < c->nword; w++) code[w] = vocab_find(&m->classes, c->word[w], (i64)strlen(c->word[w]));
    for (i64 k = 0; k < s->set.nrow; k++) {
        if (m->regress)
            take_numbers(m, d, k);
        else
            take_classes(m, d, k, code);
    }
    mem_free(code);
    return 0;
}

err sequence_data_new(const struct sequence_model *m, const struct sequence_set *s, struct sequence_data *out) {
    *out = (struct sequence_data){.s = s};
    err e = mem_new((void **)&out->z, s->t->nrow * s->nchannel, sizeof *out->z);
    if (e >= 0) e = take_labels(m, out);
    for (i64 k = 0; k < s->set.nrow && e >= 0; k++)
        for (i32 c = 0; c < s->nchannel; c++) take_channel(m, out, k, c);
    if (e < 0) sequence_data_free(out);
    return e;
}

void sequence_data_free(struct sequence_data *d) {
    mem_free(d->z);
    mem_free(d->class);
    mem_free(d->y);
    *d = (struct sequence_data){0};
}
