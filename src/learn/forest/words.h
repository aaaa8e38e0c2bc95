/* words.h - words of an input as ordered bins; see bins.h. */
#ifndef STRETTO_LEARN_FOREST_WORDS_H
#define STRETTO_LEARN_FOREST_WORDS_H

#include "data/table.h"

/* bin [nword], from the heap: 1.. in the order of the mean target, 0 = a word of no row; *cuts: different bins - 1, -1 where the
 * input has one value alone.  target [rows] as in struct bin_target. */
err words_order(const struct column *c, i64 rows, const u32 *target, i32 nclass, u8 **bin, i32 *cuts);

/* bin [c->nword], from the heap: those of the n known words; 0 for words that the training has not seen. */
err words_bins(const struct column *c, const char *const *word, const u8 *word_bin, i32 n, u8 **bin);

#endif
