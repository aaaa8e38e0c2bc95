/* prefetch.h - a thread that fills the next batch while the current one is trained on.
 *
 * fill(self, step, slot) must be a pure function of step, so that resumed runs and runs without the thread see the same
 * batches. */
#ifndef STRETTO_DATA_PREFETCH_H
#define STRETTO_DATA_PREFETCH_H

#include "base/err.h"

struct prefetch;

enum { PREFETCH_SLOTS = 2 };

/* Slots are numbered 0 and 1 and owned by the caller.  threaded = false fills on demand. */
err prefetch_new(void (*fill)(void *self, i64 step, i32 slot), void *self, i64 first, i64 end, bool threaded,
                 struct prefetch **out);
/* Slot of the next step in order; valid until the next call. */
i32 prefetch_next(struct prefetch *p);
void prefetch_free(struct prefetch *p); /* NULL is allowed; stops and joins the thread */

#endif
