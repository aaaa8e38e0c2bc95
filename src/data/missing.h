/* missing.h - words and numbers that mean a missing cell: READ_MISSING of table.h, and those of --na. */
#ifndef STRETTO_DATA_MISSING_H
#define STRETTO_DATA_MISSING_H

#include "base/arena.h"

enum { MISSING_WORDS = 64, MISSING_NUMBERS = 8 };

struct missing {
    bool first[256]; /* first bytes of the words */
    struct {
        const char *s;
        i64 n;
    } word[MISSING_WORDS];
    i32 nword, nnumber;
    f64 number[MISSING_NUMBERS]; /* words that are numbers: --na -999 means the number, in any notation */
};

/* Adds a comma-separated list (NULL is allowed); the words live in the arena.  E103: too many. */
err missing_add(struct missing *m, struct arena *a, const char *list);
bool missing_word(const struct missing *m, const char *s, i64 n); /* the empty cell too */

static inline bool missing_number(const struct missing *m, f64 v) {
    for (i32 i = 0; i < m->nnumber; i++)
        if (v == m->number[i]) return true;
    return false;
}

#endif
