/* check_sequences.c - see check_sequences.h. */
#include "api/check_sequences.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "data/mend.h"

static void look_at_channel(const struct sequence_set *s, const struct column *c, const struct sequence_looks *to) {
    char fix[MEND_IGNORE], text[400];
    f64 value;
    if (!column_constant(c, s->t->nrow, &value)) return;
    snprintf(text, sizeof text, "channel \"%.200s\" is %.6g at every step: it adds nothing", c->name, value);
    to->add(to->self, s->t->path, mend_ignore(c->name, fix), text);
}

static err look_at_classes(const struct sequence_set *s, const struct sequence_looks *to) {
    const struct column *c = &s->t->col[s->target];
    char where[256], text[300];
    i64 *count, rare = 0, first = -1;
    NEW(count, c->nword + 1);
    for (i64 k = 0; k < s->set.nrow; k++) count[sequence_class(s, k, 0) + 1]++;
    for (i64 k = s->set.nrow - 1; k >= 0; k--)
        if (sequence_class(s, k, 0) >= 0 && count[sequence_class(s, k, 0) + 1] == 1) rare++, first = k;
    if (rare > 0) {
        sequence_where(s, first, 0, where);
        snprintf(text, sizeof text, "%lld of %d classes %s a single sequence, first \"%.100s\": nothing can be held out of them",
                 (long long)rare, c->nword, rare == 1 ? "has" : "have", c->word[sequence_class(s, first, 0)]);
        to->add(to->self, where, "more sequences of these classes, or one class for all of them", text);
    }
    mem_free(count);
    return 0;
}

struct hashed {
    u64 hash;
    i64 sequence;
};

static int by_hash(const void *a, const void *b) {
    const struct hashed *x = a, *y = b;
    if (x->hash != y->hash) return x->hash < y->hash ? -1 : 1;
    return x->sequence < y->sequence ? -1 : x->sequence > y->sequence;
}

/* Two of 64-bit hashes that agree by chance are not to be expected. */
static err find_repeats(const struct sequence_set *s, const struct sequence_looks *to) {
    struct hashed *all;
    char where[256], text[200];
    i64 repeats = 0, first = INT64_MAX;
    NEW(all, s->set.nrow);
    for (i64 k = 0; k < s->set.nrow; k++) {
        all[k] = (struct hashed){HASH_SEED, k};
        for (i32 i = 0; i < s->length[k]; i++)
            for (i32 c = 0; c < s->nchannel; c++) {
                const f64 v = sequence_value(s, k, i, c);
                all[k].hash = hash_bytes(all[k].hash, &v, sizeof v);
            }
    }
    qsort(all, (size_t)s->set.nrow, sizeof *all, by_hash);
    for (i64 k = 1; k < s->set.nrow; k++)
        if (all[k].hash == all[k - 1].hash) repeats++, first = lmin(first, all[k].sequence);
    mem_free(all);
    if (repeats == 0) return 0;
    sequence_where(s, first, 0, where);
    snprintf(text, sizeof text,
             "%lld sequence%s as one before, this is the first: copies in training and test part make scores too good",
             (long long)repeats, repeats == 1 ? " is the same" : "s are the same");
    to->add(to->self, where, "each sequence once, or a test file without copies", text);
    return 0;
}

err check_sequences(const struct sequence_set *s, const struct sequence_looks *to) {
    for (i32 k = 0; k < s->nchannel; k++) look_at_channel(s, &s->t->col[s->channel[k]], to);
    if (s->target >= 0 && s->classes && !s->per_step) TRY(look_at_classes(s, to));
    return find_repeats(s, to);
}
