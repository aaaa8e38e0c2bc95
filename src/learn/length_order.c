/* length_order.c - see length_order.h. */
#include "learn/length_order.h"

#include <stdlib.h>

#include "base/rng.h"

int length_longest_first(const void *a, const void *b) {
    const struct length_ranked *x = a, *y = b;
    return x->length != y->length ? (x->length < y->length ? 1 : -1) : (x->sequence > y->sequence) - (x->sequence < y->sequence);
}

void length_batch(const struct length_order *o, i64 k, struct length_ranked *room, i64 *out) {
    const i64 n = o->to - o->from, batches = length_batches(o), at = k % batches;
    const u32 epoch = (u32)(k / batches);
    const i64 group = at / LENGTH_GROUP, first = group * LENGTH_GROUP * o->B, end = lmin(n, first + (i64)LENGTH_GROUP * o->B);
    const i64 here = (end - first + o->B - 1) / o->B, mine = rng_shuffle(o->seed, epoch, here, at % LENGTH_GROUP);
    const i64 most = end - first;
    for (i64 i = 0; i < most; i++) {
        room[i].sequence = o->from + rng_shuffle(o->seed, epoch, n, first + i);
        room[i].length = o->length(o->self, room[i].sequence);
    }
    qsort(room, (size_t)most, sizeof *room, length_longest_first);
    for (i32 r = 0; r < o->B; r++) {
        const i64 from = mine * o->B + r;
        out[r] = from < most ? room[from].sequence : -1;
    }
}
