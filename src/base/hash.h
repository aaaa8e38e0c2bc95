/* hash.h - FNV-1a over bytes (Fowler, Noll, Vo): short keys and file names, not against forgery. */
#ifndef STRETTO_BASE_HASH_H
#define STRETTO_BASE_HASH_H

#include <stddef.h>

#include "base/bits.h"

#define HASH_SEED ((u64)0xcbf29ce484222325u)

/* before: HASH_SEED, or a hash to continue. */
static inline u64 hash_bytes(u64 before, const void *data, size_t bytes) {
    const u8 *at = data;
    for (size_t i = 0; i < bytes; i++) before = (before ^ at[i]) * 0x100000001b3u;
    return before;
}

#endif
