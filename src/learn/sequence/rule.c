/* rule.c - the plain row beside the model: ridge regression (ridge.h) on a few numbers of each sequence.
 *
 *     sequence: mean, deviation, slope of every channel       step: the values of its channels */
#include <math.h>
#include <string.h>

#include "learn/sequence/ridge.h"
#include "learn/sequence/sequence.h"

enum { RULE_INPUTS = 1024 };

/* Mean, deviation and slope (over the sequence) of one channel. */
static void summary(const f32 *z, i64 ld, i32 n, f64 *u) {
    f64 sum = 0, square = 0, lean = 0, time = 0;
    for (i32 i = 0; i < n; i++) sum += (f64)z[i * ld];
    const f64 mean = sum / n;
    for (i32 i = 0; i < n; i++) {
        const f64 v = (f64)z[i * ld] - mean, t = (i - 0.5 * (n - 1)) / n;
        square += v * v;
        lean += v * t;
        time += t * t;
    }
    u[0] = mean;
    u[1] = sqrt(square / n);
    u[2] = time > 0 ? lean / time : 0;
}

/* Inputs of label i of a sequence. */
static void inputs(const struct sequence_model *m, const struct sequence_data *d, i64 sequence, i32 i, f64 *u) {
    const i32 C = m->nchannel;
    const f32 *z = d->z + d->s->first[sequence] * C;
    for (i32 c = 0; c < C; c++) {
        f64 all[3];
        if (m->per_step)
            u[c] = (f64)z[(i64)i * C + c];
        else
            summary(z + c, C, d->s->length[sequence], all);
        if (!m->per_step) memcpy(u + m->rule.per * c, all, sizeof *all * (size_t)m->rule.per);
    }
}

static bool known(const struct sequence_model *m, const struct sequence_data *d, i64 place) {
    return m->regress ? !isnan(d->y[place]) : d->class[place] >= 0;
}

static void add_label(const struct sequence_model *m, const struct sequence_data *d, i64 sequence, i32 i, struct ridge_sums *q) {
    const i64 place = d->s->first[sequence] + i;
    if (!known(m, d, place)) return;
    inputs(m, d, sequence, i, q->u);
    for (i32 k = 0; k < q->K; k++) q->y[k] = m->regress ? (f64)d->y[place] : d->class[place] == k;
    ridge_sums_add(q);
}

err sequence_rule_fit(struct sequence_model *m, const struct sequence_data *d, i64 records) {
    struct ridge_sums q;
    const i32 K = sequence_outputs(m);
    m->rule.per = !m->per_step && 3 * m->nchannel <= RULE_INPUTS ? 3 : 1;
    if (m->nchannel > RULE_INPUTS) return 0;
    m->rule.n = m->rule.per * m->nchannel;
    err e = ridge_sums_new(m->rule.n, K, &q);
    if (e >= 0 && !(m->rule.weight = arena_array(&m->arena, (i64)(m->rule.n + 1) * K, sizeof *m->rule.weight))) e = -E601;
    for (i64 k = 0; k < records && e >= 0; k++)
        for (i32 i = 0; i < sequence_labels(m, d->s, d->s->at[k]); i++) add_label(m, d, d->s->at[k], i, &q);
    if (e >= 0) ridge_sums_solve(&q, m->rule.weight);
    arena_free(&q.arena);
    return e;
}

void sequence_rule_apply(const struct sequence_model *m, const struct sequence_data *d, struct sequence_out *o) {
    f64 u[RULE_INPUTS];
    const i32 K = o->K, n = m->rule.n;
    for (i64 k = o->from; k < o->to; k++) {
        const i64 sequence = d->s->at[k];
        for (i32 i = 0; i < sequence_labels(m, d->s, sequence); i++) {
            f64 *p = o->p + (o->first[k - o->from] + i) * K;
            inputs(m, d, sequence, i, u);
            for (i32 j = 0; j < K; j++) {
                p[j] = m->rule.weight[(i64)n * K + j];
                for (i32 a = 0; a < n; a++) p[j] += u[a] * m->rule.weight[(i64)a * K + j];
                if (m->regress) p[j] = m->y_mean + m->y_deviation * p[j];
            }
        }
    }
}
