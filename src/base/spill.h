/* spill.h - arrays that grow with the rows of data: in memory, or in a file where --memory sets a limit.
 *
 *     no limit, or a small array        mem_new
 *     limit, from SPILL_FROM bytes on   in an unlinked file in $TMPDIR (else /var/tmp), mapped; pager.h keeps as many of its
 *                                       pages in memory as the limit leaves beside the heap
 *
 * Both are zeroed, aligned to 64 bytes and freed by mem_free. The file holds its place on the disk before it is used, so a full
 * disk is an error here and no signal later; the system removes it when the process ends, however it ends. System calls cannot
 * read or write such an array (pager_holds). */
#ifndef STRETTO_BASE_SPILL_H
#define STRETTO_BASE_SPILL_H

#include "base/mem.h"

enum { SPILL_FROM = 256 << 10 };

/* out = a zeroed array of n elements; fails the calling function with E601, E702 or E703. */
#define NEW_SPILL(out, n) TRY(spill_new((void **)&(out), (i64)(n), sizeof *(out)))
err spill_new(void **out, i64 n, size_t size);

#endif
