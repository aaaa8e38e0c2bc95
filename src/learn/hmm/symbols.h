/* symbols.h - a long sequence of words from a file, as rows of the emissions in the fewest bytes. */
#ifndef STRETTO_LEARN_HMM_SYMBOLS_H
#define STRETTO_LEARN_HMM_SYMBOLS_H

#include "learn/hmm/hmm.h"

struct hmm_symbols {
    void *at;       /* [n] u8, u16 or i32 */
    i32 bytes;      /* of each: 1, 2, 4 */
    i64 n, cap;
    i64 unknown;    /* words that the training has not seen */
    char first[64]; /* the first of these */
};

/* Words separated by blanks and line ends; the file may be packed (gzip, zstd).  Reads a plain file piece by piece.  E201 without
 * words, E202 where it is no text, E806. */
err hmm_symbols_read(const struct hmm *h, const char *path, const struct resources *use, struct hmm_symbols *out);
void hmm_symbols_free(struct hmm_symbols *s);

#endif
