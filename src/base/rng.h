/* rng.h - counter-based random numbers, a pure function of (seed, stream, index): Philox4x32-10 (Salmon et al., SC 2011;
 * Random123).
 *
 * There is no state, so a resumed run, a recomputed slice and any number of threads or ranks see the same numbers. `stream`
 * separates independent uses. */
#ifndef STRETTO_BASE_RNG_H
#define STRETTO_BASE_RNG_H

#include "base/bits.h"

enum rng_stream {
    RNG_INIT = 1,
    RNG_SHUFFLE,
    RNG_DROPOUT,
    RNG_SAMPLE,
    RNG_TEST,
    RNG_TEACHER,
    RNG_PHASE,
    RNG_GUESS,
    RNG_WIRE,
    RNG_PLACE,
    RNG_FOREST,
    RNG_UNKNOWN,
    RNG_RANK,
    RNG_TREES,
    RNG_HEAD,
    RNG_PATHS,
    RNG_SEARCH
};

/* Four 32-bit words for counter (index, stream, extra) under the key seed. */
void rng_words(u64 seed, u32 stream, u32 extra, u64 index, u32 out[4]);

f32 rng_uniform(u64 seed, u32 stream, u32 extra, u64 index); /* [0,1), 24 bits */
f64 rng_normal(u64 seed, u32 stream, u32 extra, u64 index);  /* mean 0, deviation 1 */

/* Position of item `index` in a random permutation of n items: a bijection of [0,n), a pure function of (seed, epoch, index). */
i64 rng_shuffle(u64 seed, u32 epoch, i64 n, i64 index);

#endif
