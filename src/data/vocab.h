/* vocab.h - words of a text column, numbered in the order in which they first appear.  One caller at a time. */
#ifndef STRETTO_DATA_VOCAB_H
#define STRETTO_DATA_VOCAB_H

#include "base/err.h"

struct vocab {
    i32 n;          /* words */
    char *bytes;    /* all words one after the other, each with a NUL */
    i64 fill, cap;  /* of bytes */
    i64 *at;        /* [n] place of a word in bytes */
    i32 at_cap;
    i32 *slot;      /* open addressing: number of a word + 1, 0 = free */
    u32 *hash;      /* [slots] */
    i32 slots;      /* a power of two, or 0 */
    i32 last;       /* the word found last: texts often repeat */
};

err vocab_code(struct vocab *v, const char *s, i64 n, i32 *code); /* number of a word, added when new */
const char *vocab_word(const struct vocab *v, i32 code);
void vocab_free(struct vocab *v);

#endif
