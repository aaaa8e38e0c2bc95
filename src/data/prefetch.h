/* prefetch.h - one thread that fills the next batch while the present one is being trained on.
 *
 * fill(self, step, slot) must be a pure function of step: a resumed run, and a run without the thread, see the same batches. */
#ifndef STRETTO_DATA_PREFETCH_H
#define STRETTO_DATA_PREFETCH_H

#include "base/err.h"

struct prefetch;

enum { PREFETCH_SLOTS = 2 };

/* Slots are numbered 0 and 1 and owned by the caller.  threaded = false fills on demand. */
err prefetch_new(void (*fill)(void *self, i64 step, i32 slot), void *self, i64 first, i64 end, bool threaded,
                 struct prefetch **out);
/* The slot that holds the next step in order; stays untouched until the call after this one. */
i32 prefetch_next(struct prefetch *p);
void prefetch_free(struct prefetch *p); /* NULL is fine; stops and joins the thread */

#endif
