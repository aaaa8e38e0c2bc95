/* map.h - the plan of a learner that needs no more than: map over micro-batches, merge along the fixed tree, update.
 *
 *     device 0   map rows 0..4  | merge 0 1 | merge 0 2 .. | update            part k: what the map makes of micro-batch k
 *     device 1   map rows 4..8  | merge 2 3 |                                  model: what the update makes of part 0
 *
 * The client writes three kernels (exec/client.h).  Threads, ranks, devices and equal bits on any number of them follow. */
#ifndef STRETTO_PLAN_MAP_H
#define STRETTO_PLAN_MAP_H

#include "plan/plan.h"

/* Kernel ids, as the client's table has them.  map: task.box rows [b0,b1), micro-batches b0 / plan->grain and up; it writes
 * mem[map_part(k)] of each of them whole.  merge (a `blocks` kernel): part node_a += part node_b over elements [lo,hi).  update:
 * from part 0 and the model to the model. */
enum map_kernel { MAP_MAP, MAP_MERGE, MAP_UPDATE, MAP_NKERNEL };

/* Buffers of the plan.  The client lends rows, model and state. */
enum map_buffer { MAP_ROWS, MAP_MODEL, MAP_STATE, MAP_PART0 };
static inline u32 map_part(i32 microbatch) { return MAP_PART0 + (u32)microbatch; }

struct map_request {
    const struct machine *machine;
    i32 rows;                     /* of the data, at least 1 */
    i32 microbatch;               /* rows of a micro-batch; a function of the data alone, never of the machine */
    i64 row_bytes;                /* of the data */
    i64 model_bytes, state_bytes; /* of the model; of what the update keeps on its rank (0 = nothing) */
    i64 part;                     /* elements of a partial result */
    enum element element;         /* of partial results */
    f64 row_seconds; /* predicted seconds of the map for a row on a device, for plans and virtual devices; 0 = bytes decide */
};

/* E401 where the rows give more than MACHINE_DEVICES micro-batches, E601 without memory.  The plan is the caller's. */
err plan_map(const struct map_request *q, struct plan **out);

#endif
