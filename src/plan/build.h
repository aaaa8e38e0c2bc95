/* build.h - a plan under construction: buffers, tasks, and the uses of each task.
 *
 * Call order: build_begin, build_buffer*, (build_task, build_use*)*, build_end.  Edges follow from the uses at the end.
 * One caller.  After an error, build_drop frees everything. */
#ifndef STRETTO_PLAN_BUILD_H
#define STRETTO_PLAN_BUILD_H

#include "plan/plan.h"

enum { PBUF_NONE = 0xffffffffu, BUILD_TASKS = 1 << 20 };

struct builder {
    struct plan *plan; /* NULL before build_begin and after build_end */
    i64 cap_task, cap_use, cap_buf;
};

/* An empty plan named `name` on the first ndevice devices of the machine. */
err build_begin(struct builder *b, const char *name, const struct machine *m, i32 ndevice);
/* Adds a buffer; its index is *out, PBUF_NONE where it has no bytes.  b.repeat 0 counts as 1. */
err build_buffer(struct builder *b, struct pbuf buf, u32 *out);
/* Adds a task without uses.  E401 beyond BUILD_TASKS tasks. */
err build_task(struct builder *b, struct task t);
/* Adds a use to the last task.  Nothing happens where the buffer is PBUF_NONE or the range is empty. */
err build_use(struct builder *b, struct use u);
/* Derives the edges and moves all arrays into the arena of the plan, which b->plan still points to. */
err build_end(struct builder *b);
void build_drop(struct builder *b);

#endif
