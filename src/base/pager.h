/* pager.h - keeps the resident pages of large mappings within the memory limit of the process.
 *
 *     watched   |......|RRRR|......|RR|......|      R = resident run; the other pages have no access rights
 *     ring      oldest run -> ... -> newest run     a touch of another page raises SIGSEGV: the handler admits a run of pages,
 *                                                   and drops the oldest runs where the process would exceed the limit
 *
 * A program reads and writes watched memory like any other, from any thread.  A system call cannot: the kernel answers EFAULT
 * instead of raising a signal, so that bytes on their way to a file or a socket pass through a buffer (pager_holds).
 *
 * Dropped pages stay in the file of the mapping; the page cache of the system holds them as long as it has room. */
#ifndef STRETTO_BASE_PAGER_H
#define STRETTO_BASE_PAGER_H

#include <stddef.h>

#include "base/bits.h"

/* Resident bytes of the process, 0 = no limit.  *live: bytes of the heap that are or will be touched; read at every decision. */
void pager_limit(i64 bytes, const _Atomic i64 *live);
i64 pager_limited(void); /* the limit */

/* Watches the whole pages of `bytes` at `at`, a shared mapping of a file with these rights (PROT_READ, PROT_WRITE).
 * fd, offset: the file, which stays open; -1: pager_peek does not read it, and pager_drop cannot erase it.
 * False, and nothing is changed, without a limit or where the tables are full. */
bool pager_watch(void *at, size_t bytes, int rights, int fd, i64 offset);
/* Forgets a mapping that is about to be unmapped; no effect on another address.  erase: its part of the file is given back. */
void pager_drop(const void *at, bool erase);
bool pager_holds(const void *p); /* p lies in a watched mapping */
/* n bytes at p, to be read now: p itself, or `copy` [n] after reading the file, where p is watched and not resident.  For a few
 * bytes at a random place this is ten times as fast as a run that is admitted and dropped. */
const void *pager_peek(const void *p, i64 n, void *copy);
/* Drops all runs and takes the signal again: around the loading of libraries, which need memory and may replace the handler. */
void pager_restart(void);
void pager_trim(void); /* drops runs until the process is within the limit: the heap has grown */

struct pager_stats {
    i64 areas;           /* mappings watched */
    i64 bytes, resident; /* of them, and in memory */
    i64 faults;          /* runs admitted so far */
};
struct pager_stats pager_stats(void);

#endif
