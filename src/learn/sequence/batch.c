/* batch.c - sequences as rows of a batch: segments of scaled steps, labels, lengths; longest first, as the layers want them. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "learn/sequence/sequence.h"

static err new_slot(struct sequence_batcher *b, i32 slot) {
    struct sequence_slot *s = &b->slot[slot];
    for (i32 i = 0; i < b->net->nbuf; i++)
        if (b->net->buf[i].input) ARENA_NEW(&b->arena, s->input[i], buf_floats(&b->net->buf[i], b->B));
    ARENA_NEW(&b->arena, s->record, b->B);
    ARENA_NEW(&b->arena, b->order[slot], (i64)b->B * LENGTH_GROUP);
    return 0;
}

err sequence_batcher_new(const struct sequence_model *m, const struct sequence_data *d, const struct net *net, i32 B, i32 nslot,
                         struct sequence_batcher *out) {
    *out = (struct sequence_batcher){.m = m, .d = d, .net = net, .B = B, .T = net->buf[0].T};
    for (i32 i = 0; i < nslot; i++) {
        const err e = new_slot(out, i);
        if (e >= 0) continue;
        sequence_batcher_free(out);
        return e;
    }
    return 0;
}

void sequence_batcher_free(struct sequence_batcher *b) { arena_free(&b->arena); }

i32 sequence_batch_steps(const struct sequence_batcher *b, i64 record) {
    const struct sequence_set *s = b->d->s;
    return record < 0 ? 0 : (i32)lmin((i64)b->T * b->m->segment, s->length[s->at[record]]);
}

/* Segments of row r; the end of the last one, and those behind it, are zero. */
static void fill_steps(struct sequence_batcher *b, const struct buf *buf, f32 *to, i32 r, i64 first, i32 steps) {
    const i32 C = b->m->nchannel, S = b->m->segment;
    const i64 Fp = buf_fp(buf);
    for (i32 t = 0; t < buf->T; t++) {
        const i32 here = imax(0, imin(S, steps - t * S));
        f32 *row = to + ((i64)t * b->B + r) * Fp;
        if (here > 0) memcpy(row, b->d->z + (first + (i64)t * S) * C, (size_t)here * (size_t)C * sizeof *row);
        memset(row + here * C, 0, (size_t)(Fp - here * C) * sizeof *row);
    }
}

static void fill_labels(struct sequence_batcher *b, struct sequence_slot *s, i32 buf, i32 r, i64 first, i32 n) {
    i32 *class = (i32 *)(void *)s->input[buf];
    for (i32 t = 0; t < b->net->buf[buf].T; t++) {
        const i64 at = (i64)t * b->B + r;
        if (b->m->regress) {
            const f32 y = t < n ? b->d->y[first + t] : NAN;
            s->input[buf][at * LANES] = y;
            s->labels += !isnan(y);
        } else {
            class[at] = t < n ? b->d->class[first + t] : -1;
            s->labels += class[at] >= 0;
        }
    }
}

static void fill_row(struct sequence_batcher *b, struct sequence_slot *s, i32 r) {
    const struct sequence_set *set = b->d->s;
    const i64 record = s->record[r], first = record < 0 ? 0 : set->first[set->at[record]];
    const i32 steps = sequence_batch_steps(b, record);
    for (i32 i = 0; i < b->net->nbuf; i++) {
        const struct buf *buf = &b->net->buf[i];
        if (!buf->input) continue;
        if (buf->role == SEQUENCE_X)
            fill_steps(b, buf, s->input[i], r, first, steps);
        else if (buf->role == SEQUENCE_LENGTH)
            ((i32 *)(void *)s->input[i])[r] = sequence_segments(b->m, steps);
        else
            fill_labels(b, s, i, r, first, b->m->per_step ? steps : record >= 0);
    }
}

static void fill_rows(struct sequence_batcher *b, i32 slot) {
    b->slot[slot].labels = 0;
    for (i32 r = 0; r < b->B; r++) fill_row(b, &b->slot[slot], r);
}

void sequence_batch_rows(struct sequence_batcher *b, i32 slot, const i64 *record, i32 n) {
    for (i32 r = 0; r < b->B; r++) b->slot[slot].record[r] = r < n ? record[r] : -1;
    fill_rows(b, slot);
}

static i32 length_of(const void *batcher, i64 record) { return sequence_batch_steps(batcher, record); }

void sequence_batch_train(void *batcher, i64 k, i32 slot) {
    struct sequence_batcher *b = batcher;
    const struct length_order order = {.seed = b->seed, .from = b->from, .to = b->to, .B = b->B, .length = length_of, .self = b};
    length_batch(&order, k, b->order[slot], b->slot[slot].record);
    fill_rows(b, slot);
}
