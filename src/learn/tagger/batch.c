/* batch.c - sentences as rows of a batch: ids of each feature, tags, lengths; longest first, as the layers want them. */
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "learn/tagger/tagger.h"

#define KEEP_RARE 0.5f /* probability that training sees a word of one sentence as itself, not as an unknown word */

static err new_slot(struct tag_batcher *b, i32 slot) {
    struct tag_slot *s = &b->slot[slot];
    for (i32 i = 0; i < b->net->nbuf; i++)
        if (b->net->buf[i].input) ARENA_NEW(&b->arena, s->input[i], buf_floats(&b->net->buf[i], b->B));
    ARENA_NEW(&b->arena, s->sentence, b->B);
    ARENA_NEW(&b->arena, b->order[slot], (i64)b->B * LENGTH_GROUP);
    return 0;
}

err tag_batcher_new(const struct tagger *t, const struct token_set *s, const struct net *net, i32 B, i32 nslot,
                    struct tag_batcher *out) {
    *out = (struct tag_batcher){.t = t, .s = s, .net = net, .B = B, .T = net->op[0].T};
    for (i32 i = 0; i < nslot; i++) {
        const err e = new_slot(out, i);
        if (e >= 0) continue;
        tag_batcher_free(out);
        return e;
    }
    return 0;
}

void tag_batcher_free(struct tag_batcher *b) { arena_free(&b->arena); }

i32 tag_batch_steps(const struct tag_batcher *b, i64 sentence) {
    return sentence < 0 ? 0 : (i32)lmin(b->T, b->s->first[sentence + 1] - b->s->first[sentence]);
}

/* The word of a token, or the unknown one: training must know what an unknown word is like. */
static i32 word_or_unknown(const struct tag_batcher *b, i32 id, i64 token, u32 epoch) {
    return b->rare && b->rare[id] && rng_uniform(b->seed, RNG_UNKNOWN, epoch, (u64)token) >= KEEP_RARE ? 0 : id;
}

static void fill_row(struct tag_batcher *b, struct tag_slot *s, i32 r, u32 epoch) {
    const i64 sentence = s->sentence[r], first = sentence < 0 ? 0 : b->s->first[sentence];
    const i32 n = tag_batch_steps(b, sentence);
    for (i32 i = 0; i < b->net->nbuf; i++) {
        const struct buf *buf = &b->net->buf[i];
        i32 *to = (i32 *)(void *)s->input[i];
        if (!buf->input) continue;
        if (buf->role == TAGGER_LENGTH) to[r] = n;
        const i32 *from = buf->role == TAGGER_IDS ? b->ids + buf->item * b->s->ntoken : b->tag;
        for (i32 t = 0; t < buf->T && buf->role != TAGGER_LENGTH; t++) {
            i32 v = t < n && from ? from[first + t] : 0;
            if (t < n && buf->role == TAGGER_IDS && buf->item == 0) v = word_or_unknown(b, v, first + t, epoch);
            to[(i64)t * b->B + r] = v;
        }
    }
    s->tokens += n;
}

static void fill_rows(struct tag_batcher *b, i32 slot, u32 epoch) {
    b->slot[slot].tokens = 0;
    for (i32 r = 0; r < b->B; r++) fill_row(b, &b->slot[slot], r, epoch);
}

void tag_batch_rows(struct tag_batcher *b, i32 slot, const i64 *sentence, i32 n) {
    for (i32 r = 0; r < b->B; r++) b->slot[slot].sentence[r] = r < n ? sentence[r] : -1;
    fill_rows(b, slot, 0);
}

static i32 length_of(const void *batcher, i64 sentence) { return tag_batch_steps(batcher, sentence); }

void tag_batch_train(void *batcher, i64 k, i32 slot) {
    struct tag_batcher *b = batcher;
    const struct length_order order = {.seed = b->seed, .from = b->from, .to = b->to, .B = b->B, .length = length_of, .self = b};
    length_batch(&order, k, b->order[slot], b->slot[slot].sentence);
    fill_rows(b, slot, (u32)(k / length_batches(&order)));
}
