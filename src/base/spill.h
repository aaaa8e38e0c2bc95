/* spill.h - arrays that grow with the rows of data: in memory, in a file where --memory sets a limit, or where other processes of
 * this host can map them.
 *
 *     no limit, or a small array        mem_new
 *     limit, from SPILL_FROM bytes on   in an unlinked file in $TMPDIR (else /var/tmp), mapped; pager.h keeps as many of its
 *                                       pages in memory as the limit leaves beside the heap
 *     no limit, within spill_share      in a file in memory (memfd), mapped
 *
 * All are zeroed, aligned to 64 bytes and freed by mem_free. The file holds its place on the disk before it is used, so a full
 * disk is an error here and no signal later; the system removes it when the process ends, however it ends. System calls cannot
 * read or write an array within a limit (pager_holds). */
#ifndef STRETTO_BASE_SPILL_H
#define STRETTO_BASE_SPILL_H

#include "base/mem.h"

enum { SPILL_FROM = 256 << 10 };

/* out = a zeroed array of n elements; fails the calling function with E601, E702 or E703. */
#define NEW_SPILL(out, n) TRY(spill_new((void **)&(out), (i64)(n), sizeof *(out)))
err spill_new(void **out, i64 n, size_t size);

/* Arrays of SPILL_FROM bytes and more that the process makes between spill_share(true) and spill_share(false) lie in a file. */
void spill_share(bool on);

/* Where an array lies in a file of a process. */
struct spill_place {
    i32 pid, fd;
    i64 offset, bytes; /* of its mapping */
};
/* False: it lies in the heap.  Else other processes may map it: its bytes stay until the last of them has freed it. */
bool spill_place_of(void *array, struct spill_place *out);
/* The array of another process, to be read alone; freed by mem_free. E601, or E701 if the system does not let this process open
 * it. */
err spill_map(const struct spill_place *at, void **out);
/* A file of another process, /proc/PID/fd/FD; -1 with errno. */
int spill_open(i32 pid, i32 fd);

#endif
