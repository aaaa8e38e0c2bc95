/* copy.h - copies into memory that another core reads next, with non-temporal stores.
 *
 * Before a core writes a cache line that another core has read, it must take ownership, one line after another: 27 ns per line
 * between two cores of an EPYC, 2.4 GB/s, while it reads the other's data at 17 GB/s. Non-temporal stores need no ownership: 30
 * GB/s there, and the reader is no slower. Use it for data that the writer does not read again. Wider stores, `rep movsb` and
 * prefetchw do not change the 27 ns.
 *
 * Cores of an Intel Xeon with one last-level cache need 3 to 4 ns per line, non-temporal stores 5 ns, and the reader gets 15 GB/s
 * of plain stores, 9 GB/s of non-temporal ones: there shm.c copies plainly.
 *
 * Cores that share a cache need 5 to 7 ns per line. There, reading the sender's memory in place is 1.6 (1 MB) to 2.7 times (4
 * MB) as fast as copying through slots; between other cores it is 5 times slower. Virtual cores migrate between both cases, so
 * shm.c measures. */
#ifndef STRETTO_COMM_COPY_H
#define STRETTO_COMM_COPY_H

#include <string.h>

#include "base/err.h"

#if defined(__x86_64__)
#include <immintrin.h>

/* `to` is aligned to a cache line. The fence makes the copy visible before any later store. */
static inline void copy_out(void *to, const void *from, size_t bytes) {
    char *y = to;
    const char *x = from;
    size_t i = 0;
    for (; i + 64 <= bytes; i += 64)
        for (size_t k = 0; k < 64; k += 16)
            _mm_stream_si128((__m128i *)(void *)(y + i + k), _mm_loadu_si128((const __m128i *)(const void *)(x + i + k)));
    _mm_sfence();
    memcpy(y + i, x + i, bytes - i);
}
#else
static inline void copy_out(void *to, const void *from, size_t bytes) { memcpy(to, from, bytes); }
#endif

#endif
