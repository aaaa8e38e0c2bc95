/* copy.h - copies into memory that another core reads.
 *
 * A line that another core has read must be taken from it before it is written again, and a core does that for one line after
 * another: 27 ns each on two cores of an EPYC, 2.4 GB/s, while it reads at 17 GB/s what the other has written.  Stores that go
 * past the caches ask nobody for the old line: 30 GB/s there, and the reader is no slower.  For what the writer does not look at
 * again.  Neither wider stores, `rep movsb` nor asking for the lines ahead (prefetchw) change the 27 ns.
 *
 * Between cores that share a cache a line takes 5 to 7 ns, and one that has gone to that cache 1.5; two cores of a virtual
 * machine are of one kind now and of the other a minute later.  There, what is read where it lies comes 1.6 times (sums of 1 MB)
 * to 2.7 times (4 MB) as fast as through slots, and elsewhere 5 times as slow: near.c takes samples. */
#ifndef STRETTO_COMM_COPY_H
#define STRETTO_COMM_COPY_H

#include <string.h>

#include "base/err.h"

#if defined(__x86_64__)
#include <immintrin.h>

/* `to` begins a line.  All of it is there for whoever sees what is stored after it. */
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
