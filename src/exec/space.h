/* space.h - memory of a device that is not that of the host: private to src/exec.
 *
 *     host  mem[buf]  <--gpu_get--  heap of the device, space->mem[buf]     during a step the copy in the heap is current
 *                     --gpu_put-->
 *
 * Tasks that the client lets run on the device work on the heap.  A task that runs on the host gets what it reads, and what it
 * writes is put back behind it; so are messages.  Buffers that only tasks of one side use are never copied.  Between steps the
 * host has lent buffers (inputs, weights, state) after exec_bring; the next step takes them again.
 *
 * The heap has places for the rows that are there at a time (plan/rows.h): of a rank its own rows, and of a plan with passes
 * those of a pass.  Then inputs are put in front of a pass, and what the host may read of its rows is got behind it. */
#ifndef STRETTO_EXEC_SPACE_H
#define STRETTO_EXEC_SPACE_H

#include "exec/bound.h"
#include "gpu/gpu.h"
#include "plan/rows.h"

enum { COPY_RING = 256 };
struct space {
    struct gpu *gpu;
    void **mem;                    /* [nbuf] addresses in the heap; NULL = no task on the device uses the buffer */
    bool *on_host;                 /* [ntask] the task runs on the host */
    bool *both;                    /* [nbuf] tasks of both sides use the buffer, or messages carry it */
    bool *written;                 /* [nbuf] a task of this rank writes it */
    struct row_map rows;           /* where rows of the batch lie in buffers with by_row */
    bool *fresh;                   /* [nbuf] lent buffers: the host's copy is the newer one */
    const struct plan_range *used; /* [nbuf] */
    u32 **mark, **begin; /* [nqueue][items] marks after and before each item: for queues that wait for it, and for its time */
    bool can_time;       /* a lane keeps the marks of a whole step */
    f64 host_begin;      /* clock when the step began */
    struct copies {
        struct copy_record {
            f64 t0, t1;
            bool to_device;
        } *ring;         /* [COPY_RING] the last ones of a lane while steps are timed for the trace */
        u32 n;
    } *copies;           /* [lanes] */
    bool waits, timed;   /* other lanes wait for marks; the device's clock is read (ranks measure their speed, traces) */
    struct {
        void *graph; /* the items before `end`, recorded; NULL = none */
        u64 key;     /* client.constants when it was recorded */
        u32 end;     /* 0 = nothing can be recorded */
        i32 changes; /* of the key so far */
        bool records;
    } replay;
    i32 agent;           /* lane of transfers for messages; -1 = there are none */
};

err space_bind(struct exec *x, const struct plan_range *used);
void space_free(struct exec *x);
err space_begin(struct exec *x); /* of a step: takes what the host has changed */
err space_end(struct exec *x);   /* waits for all lanes; buffers that the host sees are brought */

void space_enter(struct exec *x, u32 queue); /* the thread of a queue works on its lane; until space_leave */
void space_leave(const struct exec *x);
/* Items of the queue that need not be given to the device one by one, since a recorded graph has them.  Where there is none,
 * recording may begin here; it ends when so many items are done (space_recorded). */
u32 space_replay(struct exec *x);
void space_recorded(struct exec *x, u32 done);
void space_wait(struct exec *x, const struct item *it);
void space_start(struct exec *x, u32 queue, u32 item); /* the next thing given to the lane is this item */
void space_item(struct exec *x, const struct item *it);
void space_done(struct exec *x, u32 queue, u32 item, u32 n); /* n items from `item` on were given to the lane */

/* move.c, on the lane of the calling thread.  A range of a buffer that lies on both sides, of one run of rows; all of a buffer
 * that this rank uses; where rows take the places of others: the inputs of those that begin with this task, and what the host
 * may read of those that end with it. */
void space_move(const struct exec *x, const struct use *u, bool to_device);
void space_move_all(const struct exec *x, u32 buf, bool to_device);
void space_rows_in(const struct exec *x, u32 task);
void space_rows_out(const struct exec *x, u32 task);
static inline i32 space_row0(const struct space *s, i32 row) {
    return s->rows.again ? s->rows.run[s->rows.of[row]].row0 : s->rows.b0;
}

/* A range of a message, by the agent: behind the items that precede it. */
err space_send(struct exec *x, const struct link *l);
err space_receive(struct exec *x, const struct link *l);

#endif
