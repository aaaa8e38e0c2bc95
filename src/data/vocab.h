/* vocab.h - vocabulary of a text column: words numbered in order of first appearance. Not thread-safe. */
#ifndef STRETTO_DATA_VOCAB_H
#define STRETTO_DATA_VOCAB_H

#include "base/err.h"

struct vocab_slot {
    i32 word; /* number of the word + 1, 0 = free */
    u32 hash;
};

struct vocab {
    i32 n;          /* words */
    char *bytes;    /* all words one after the other, each with a NUL */
    i64 fill, cap;  /* of bytes */
    i64 *at;        /* [n] offset of a word in bytes */
    i64 at_cap;
    struct vocab_slot *slot; /* [slots] open addressing */
    i32 slots;      /* a power of two, or 0 */
    i32 last;       /* the last word found, since texts often repeat */
};

err vocab_code(struct vocab *v, const char *s, i64 n, i32 *code); /* number of a word; adds a new word */
i32 vocab_find(const struct vocab *v, const char *s, i64 n);      /* number of a word, -1 = not there */
const char *vocab_word(const struct vocab *v, i32 code);
void vocab_free(struct vocab *v);

#endif
