/* output.c - what the net says of sequences: probabilities of classes or numbers, averaged over the members. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "learn/sequence/sequence.h"

enum { FORWARD_ROWS = 64, SHORTER = 4 }; /* a net takes sequences down to a SHORTER-th of its longest */

err sequence_out_new(const struct sequence_model *m, const struct sequence_set *s, i64 from, i64 to, struct sequence_out *out) {
    *out = (struct sequence_out){.from = from, .to = to, .K = sequence_outputs(m)};
    err e = mem_new((void **)&out->first, to - from + 1, sizeof *out->first);
    for (i64 k = from; k < to && e >= 0; k++) out->first[k - from + 1] = out->first[k - from] + sequence_labels(m, s, s->at[k]);
    if (e >= 0) e = mem_new((void **)&out->p, out->first[to - from] * out->K, sizeof *out->p);
    if (e < 0) sequence_out_free(out);
    return e;
}

void sequence_out_free(struct sequence_out *o) {
    mem_free(o->first);
    mem_free(o->p);
    *o = (struct sequence_out){0};
}

static void add_softmax(const f32 *u, i32 K, f64 by, f64 *p) {
    f32 most = u[0];
    f64 sum = 0;
    for (i32 k = 1; k < K; k++) most = u[k] > most ? u[k] : most;
    for (i32 k = 0; k < K; k++) sum += exp((f64)(u[k] - most));
    for (i32 k = 0; k < K; k++) p[k] += by * exp((f64)(u[k] - most)) / sum;
}

/* The rows of one run of the net. */
static void take_rows(const struct sequence_batcher *b, const f32 *u, i32 n, f64 by, struct sequence_out *o) {
    const struct sequence_model *m = b->m;
    const i64 Kp = round_up(o->K, LANES);
    for (i32 r = 0; r < n; r++) {
        const i64 record = b->slot[0].record[r], first = o->first[record - o->from];
        const i32 labels = m->per_step ? sequence_batch_steps(b, record) : 1;
        for (i32 t = 0; t < labels; t++) {
            const f32 *row = u + ((i64)t * b->B + r) * Kp;
            f64 *p = o->p + (first + t) * o->K;
            if (m->regress)
                *p += by * (m->y_mean + m->y_deviation * (f64)*row);
            else
                add_softmax(row, o->K, by, p);
        }
    }
}

static err by_length(const struct sequence_set *s, i64 from, i64 to, struct length_ranked **out) {
    NEW(*out, to - from + 1);
    for (i64 k = from; k < to; k++) (*out)[k - from] = (struct length_ranked){s->length[s->at[k]], k};
    qsort(*out, (size_t)(to - from), sizeof **out, length_longest_first);
    return 0;
}

/* n records in this order. */
static err run_records(struct sequence_batcher *b, struct engine *e, const struct length_ranked *row, i64 n, f64 by,
                       struct sequence_out *o) {
    i64 record[FORWARD_ROWS];
    const i32 head = e->net->op[e->net->nop - 1].spec.in[0];
    for (i64 i = 0; i < n; i += b->B) {
        const i32 here = (i32)lmin(b->B, n - i);
        struct exec_result r;
        for (i32 k = 0; k < here; k++) record[k] = row[i + k].sequence;
        sequence_batch_rows(b, 0, record, here);
        TRY(step_run(e->forward, &(struct step_args){.input = b->slot[0].input, .loss_scale = 0}, &r));
        const f32 *u = step_buf(e->forward, head);
        TRY(step_failed(e->forward));
        take_rows(b, u, here, by, o);
    }
    return 0;
}

err sequence_out_add(struct sequence_batcher *b, struct engine *e, f64 by, struct sequence_out *o) {
    struct length_ranked *row;
    TRY(by_length(b->d->s, o->from, o->to, &row));
    const err got = run_records(b, e, row, o->to - o->from, by, o);
    mem_free(row);
    return got;
}

/* A net as long as the first of these records. */
static err run_group(const struct sequence_model *m, const struct sequence_data *d, const struct length_ranked *row, i64 n,
                     const struct resources *use, struct sequence_out *o) {
    struct sequence_batcher b = {0};
    struct engine e = {0};
    struct net *net;
    const struct resources whole = resources_whole(use);
    NEW(net, 1);
    err got = sequence_net(m, sequence_segments(m, row[0].length), net);
    const i32 B = got < 0 ? 1 : engine_forward_rows(net, (i32)lmin(FORWARD_ROWS, n));
    if (got >= 0) got = sequence_batcher_new(m, d, net, B, 1, &b);
    if (got >= 0) got = engine_new(net, &whole, B, B, NULL, &e);
    for (i32 k = 0; k < m->members && got >= 0; k++) {
        memcpy(e.store.theta, m->theta + k * net->ntheta, sizeof *m->theta * (size_t)net->ntheta);
        got = run_records(&b, &e, row, n, 1.0 / m->members, o);
    }
    engine_free(&e);
    sequence_batcher_free(&b);
    mem_free(net);
    return got;
}

err sequence_predict(const struct sequence_model *m, const struct sequence_set *s, const struct resources *use,
                     struct sequence_out *o) {
    struct sequence_data d;
    struct length_ranked *row = NULL;
    const i64 all = o->to - o->from;
    TRY(sequence_data_new(m, s, &d));
    err e = by_length(s, o->from, o->to, &row);
    for (i64 i = 0, n; i < all && e >= 0; i += n) {
        for (n = 1; i + n < all && row[i + n].length >= row[i].length / SHORTER; n++) {
        }
        e = run_group(m, &d, row + i, n, use, o);
    }
    mem_free(row);
    sequence_data_free(&d);
    return e;
}
