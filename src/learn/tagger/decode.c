/* decode.c - the best tags of each sentence: scores by the net, then Viterbi's algorithm (IEEE Trans. Inf. Theory, 1967) with the
 * transitions of the CRF.  Equal scores go to the tag with the lower number. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "learn/crf/kernel.h"
#include "learn/tagger/tagger.h"
#include "model/layer.h"

enum { DECODE_ROWS = 64, DECODE_STEPS = 256 };

/* Best paths by the kernel of the learner crf (crf/kernel.h), for sentences of at most T tokens. */
struct path {
    const struct crf_kern *kern;
    const struct op *crf;
    const f32 *a, *start, *end; /* transitions [L][Lp], [L], [L] */
    i32 L, Lp;
    f32 *u, *v; /* [T][Lp] scores of a sentence, [2][Lp] */
    i32 *from;  /* [T][Lp] */
};

static const f32 *tensor_at(const struct op *crf, const f32 *theta, i32 tensor) {
    return theta + crf->theta0 + crf->layer->place(crf, tensor, 0, 0);
}

static err path_new(struct arena *a, const struct engine *e, enum kern_arch arch, struct path *out) {
    const struct op *crf = &e->net->op[e->net->nop - 1];
    const f32 *theta = e->store.theta;
    *out = (struct path){.kern = crf_kern_for((i32)arch), .crf = crf, .L = crf->I, .Lp = round_up(crf->I, LANES)};
    out->a = tensor_at(crf, theta, 0);
    out->start = tensor_at(crf, theta, 1);
    out->end = tensor_at(crf, theta, 2);
    ARENA_NEW(a, out->u, (i64)crf->T * out->Lp);
    ARENA_NEW(a, out->v, 2 * (i64)out->Lp);
    ARENA_NEW(a, out->from, (i64)crf->T * out->Lp);
    return 0;
}

/* score: of step t at score + t * step.  tag: [n] out. */
static void best_path(const struct path *p, i32 n, const f32 *score, i64 step, i32 *tag) {
    for (i32 t = 0; t < n; t++) memcpy(p->u + (i64)t * p->Lp, score + t * step, sizeof *p->u * (size_t)p->Lp);
    for (i32 y = 0; y < p->L; y++) {
        p->u[y] += p->start[y];
        p->u[(i64)(n - 1) * p->Lp + y] += p->end[y];
    }
    p->kern->decode(p->u, p->a, p->L, p->Lp, n, p->from, p->v, tag);
}

static err decode_batch(struct tag_batcher *b, struct engine *e, const struct path *p, const i64 *sentence, i32 n, i32 *out) {
    struct exec_result r;
    tag_batch_rows(b, 0, sentence, n);
    TRY(step_run(e->forward, &(struct step_args){.input = b->slot[0].input, .loss_scale = 0}, &r));
    const f32 *u = step_buf(e->forward, p->crf->spec.in[0]);
    TRY(step_failed(e->forward));
    for (i32 k = 0; k < n; k++) {
        const i32 length = tag_batch_steps(b, sentence[k]);
        if (length > 0) best_path(p, length, u + (i64)k * p->Lp, (i64)b->B * p->Lp, out + b->s->first[sentence[k]]);
    }
    return 0;
}

/* Sentences by length, so that little of a batch is empty. */
static err by_length(struct arena *a, const struct token_set *s, i64 from, i64 to, struct length_ranked **out) {
    struct length_ranked *row;
    ARENA_NEW(a, row, to - from + 1);
    for (i64 i = from; i < to; i++) row[i - from] = (struct length_ranked){(i32)(s->first[i + 1] - s->first[i]), i};
    qsort(row, (size_t)(to - from), sizeof *row, length_longest_first);
    *out = row;
    return 0;
}

/* n sentences in this order, with a bound net. */
static err decode_rows(struct arena *a, struct tag_batcher *b, struct engine *e, enum kern_arch arch,
                       const struct length_ranked *row, i64 n, i32 *out) {
    struct path p;
    i64 *sentence;
    TRY(path_new(a, e, arch, &p));
    ARENA_NEW(a, sentence, b->B);
    for (i64 i = 0; i < n; i += b->B) {
        const i32 here = (i32)lmin(b->B, n - i);
        for (i32 k = 0; k < here; k++) sentence[k] = row[i + k].sequence;
        TRY(decode_batch(b, e, &p, sentence, here, out));
    }
    return 0;
}

err tagger_decode_with(struct tag_batcher *b, struct engine *e, enum kern_arch arch, i64 from, i64 to, i32 *out) {
    struct arena a = {0};
    struct length_ranked *row;
    err got = by_length(&a, b->s, from, to, &row);
    if (got >= 0) got = decode_rows(&a, b, e, arch, row, to - from, out);
    arena_free(&a);
    return got;
}

/* A net as long as the first of these sentences, with so many rows. */
static err decode_group(const struct tagger *t, const struct token_set *s, const i32 *ids, const struct length_ranked *row, i64 n,
                        i32 rows, const struct resources *use, i32 *out) {
    struct tag_batcher b = {0};
    struct engine e = {0};
    struct arena a = {0};
    struct net *net;
    const struct resources whole = resources_whole(use);
    if (n == 0 || row[0].length == 0) return 0;
    ARENA_NEW(&a, net, 1);
    err got = tagger_net(t, row[0].length, net);
    const i32 B = got < 0 ? 1 : engine_forward_rows(net, (i32)lmin(rows, n));
    if (got >= 0) got = tag_batcher_new(t, s, net, B, 1, &b);
    if (got >= 0) got = engine_new(net, &whole, B, B, NULL, &e);
    b.ids = ids;
    if (got >= 0) memcpy(e.store.theta, t->theta, sizeof *t->theta * (size_t)net->ntheta);
    if (got >= 0) got = decode_rows(&a, &b, &e, use->kern->arch, row, n, out);
    engine_free(&e);
    tag_batcher_free(&b);
    arena_free(&a);
    return got;
}

/* Very long sentences take a net of their own, one row at a time: the memory of a batch follows its longest row. */
static err decode_file(const struct tagger *t, const struct token_set *s, i64 from, i64 to, const struct resources *use,
                       i32 *out) {
    struct arena a = {0};
    struct length_ranked *row;
    i32 *ids = NULL;
    i64 longer = 0;
    err e = by_length(&a, s, from, to, &row);
    if (e >= 0) e = features_ids(t, s, &ids);
    while (e >= 0 && longer < to - from && row[longer].length > DECODE_STEPS) longer++;
    if (e >= 0) e = decode_group(t, s, ids, row, longer, 1, use, out);
    if (e >= 0) e = decode_group(t, s, ids, row + longer, to - from - longer, DECODE_ROWS, use, out);
    mem_free(ids);
    arena_free(&a);
    return e;
}

err tagger_decode(const struct tagger *t, const struct token_set *s, i64 from, i64 to, const struct resources *use, i32 **out) {
    i32 *tag;
    TRY(mem_new((void **)&tag, s->ntoken + 1, sizeof *tag));
    for (i64 k = 0; k < s->ntoken; k++) tag[k] = -1;
    const err e = decode_file(t, s, from, to, use, tag);
    if (e < 0) {
        mem_free(tag);
        return e;
    }
    *out = tag;
    return 0;
}
