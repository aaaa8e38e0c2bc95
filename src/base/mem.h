/* mem.h - the only heap allocator of the library.
 *
 * All allocations go through mem_alloc, so that tests can count them (a training step makes none) and fail the n-th one, and a
 * user can set a limit (--memory). Blocks are 64-byte aligned and zeroed.  Large blocks request huge pages, and
 * pages of them that nothing touches take no memory. */
#ifndef STRETTO_BASE_MEM_H
#define STRETTO_BASE_MEM_H

#include "base/err.h"

/* A zeroed block of `size` bytes, 64-byte aligned; size 0 is allowed. On failure sets E601 and returns NULL. */
void *mem_alloc(size_t size) __attribute__((malloc));
void *mem_realloc(void *p, size_t size); /* keeps the old bytes, new ones are undefined; on failure NULL, p stays valid */
char *mem_strdup(const char *s);
void mem_free(void *p); /* NULL is allowed */
void mem_zero(void *p); /* zeroes a whole block; the pages of a large one go back to the system until they are touched again */

/* Bytes [lo, hi) of a block are not needed as they are: whole pages of a large one go back to the system and are zero when they
 * are touched again; the rest stays. */
void mem_release(void *p, size_t lo, size_t hi);

/* A block of `size` bytes behind the first page of a mapping of `bytes`, which mem_free unmaps (spill.h); not counted as heap. */
void *mem_wrap(void *mapping, size_t bytes, size_t size);
/* Keeps the bytes of such a block in its file when it is freed, since other processes map them: the bytes of the mapping, which
 * begins a page before the block; 0, and nothing is changed, for a block of the heap. */
size_t mem_share(void *p);

/* out = a zeroed array of n elements of type; fails the calling function with E601. */
#define NEW(out, n) TRY(mem_new((void **)&(out), (i64)(n), sizeof *(out)))
err mem_new(void **out, i64 n, size_t size);
/* The heap array has room for element n, any one; it doubles until it has. *cap: elements that fit, 0 = no array yet. */
#define GROW(array, n, cap) TRY(mem_grow((void **)&(array), (i64)(n), &(cap), sizeof *(array)))
err mem_grow(void **array, i64 n, i64 *cap, size_t size);
err mem_check(i64 n, size_t size); /* E601 if n is negative or n * size overflows */

struct mem_stats {
    i64 live, peak;     /* bytes now, and the peak */
    i64 calls;          /* allocations so far */
};
struct mem_stats mem_stats(void);
void mem_reset_peak(void);
void mem_set_limit(i64 bytes);   /* 0 = none */
i64 mem_limit(void);
void mem_fail_nth(i64 n);        /* the n-th allocation from now fails (1 = the next); 0 = never.  Tests only. */

#endif
