/* dropout_mask.h - dropout masks: 16 bits for each of 8 panels of 16 values.
 *
 * Panel p uses the 8 words of Philox at place + 2p and place + 2p + 1 (stream RNG_DROPOUT, extra = step). Bit i is set (kept)
 * if the i-th half word, low halves first, is >= drop. */
#ifndef STRETTO_MODEL_LAYER_DROPOUT_MASK_H
#define STRETTO_MODEL_LAYER_DROPOUT_MASK_H

#include "base/rng.h"

enum { MASK_PANELS = 8 };

struct dropout_kern {
    void (*mask)(u64 seed, u32 step, u64 place, u32 drop, u32 mask[MASK_PANELS]);
    /* y = x * scale if the value's bit is set, else 0, for n panels */
    void (*scale)(i64 n, const u32 *mask, f32 scale, const f32 *x, f32 *y);
};
extern const struct dropout_kern dropout_ref, dropout_base, dropout_avx2, dropout_avx512;

#endif
