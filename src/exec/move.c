/* move.c - copies of ranges of buffers between the host and the heap of a device, at whose places rows lie (space.h). */
#include "exec/space.h"

#include "base/clock.h"

/* A range of a buffer [repeat][extent]: n pieces of memory, of which one begins `pitch` bytes behind the other. */
struct range {
    i64 bytes, n, at, pitch, there, there_pitch; /* on the host; there: on the device */
};

/* Elements [lo,hi) of steps [t0,t1), t1 = 0: of all.  Rows: of one run, or of any where no row takes the place of another. */
static struct range range_of(const struct exec *x, const struct pbuf *b, const struct use *u) {
    const struct row_map *map = &x->space->rows;
    const i64 unit = b->bytes / b->extent / b->repeat, first = u->t1 > 0 ? u->t0 : 0;
    const i64 steps = u->t1 > 0 ? u->t1 - u->t0 : b->repeat;
    const i64 places = b->by_row ? map->places : b->extent, row0 = b->by_row ? space_row0(x->space, (i32)u->lo) : 0;
    const i64 pitch = b->extent * unit, there_pitch = places * unit;
    if (u->lo == 0 && u->hi == b->extent && places == b->extent)
        return (struct range){steps * pitch, 1, first * pitch, steps * pitch, first * pitch, steps * pitch};
    return (struct range){.bytes = (u->hi - u->lo) * unit,
                          .n = steps,
                          .at = first * pitch + u->lo * unit,
                          .pitch = pitch,
                          .there = first * there_pitch + (u->lo - row0) * unit,
                          .there_pitch = there_pitch};
}

/* The lane of the thread is one of this space's. */
static void record_copy(const struct exec *x, bool to_device) {
    const struct gpu_place at = gpu_enter(NULL, 0);
    struct copies *c = &x->space->copies[at.lane];
    f64 begin;
    gpu_enter(at.gpu, at.lane);
    const f64 end = gpu_copied(&begin);
    c->ring[c->n++ % COPY_RING] = (struct copy_record){begin - x->epoch, end - x->epoch, to_device};
}

void space_move(const struct exec *x, const struct use *u, bool to_device) {
    const struct range r = range_of(x, &x->plan->buf[u->buf], u);
    char *host = x->mem[0][u->buf], *device = x->space->mem[u->buf];
    if (!host || !device || u->hi <= u->lo) return;
    if (to_device)
        gpu_put(device + r.there, r.there_pitch, host + r.at, r.pitch, r.bytes, r.n);
    else
        gpu_get(host + r.at, r.pitch, device + r.there, r.there_pitch, r.bytes, r.n);
    if (x->space->timed && x->trace) record_copy(x, to_device);
}

/* ------------------------------------------------------------------ whole buffers ------------------------------------------- */

static void move_run(const struct exec *x, u32 buf, const struct row_run *r, bool to_device) {
    space_move(x, &(struct use){.buf = buf, .lo = r->b0, .hi = r->b1}, to_device);
}

/* Where rows take the places of others: only those of runs that keep theirs for the whole step. */
void space_move_all(const struct exec *x, u32 buf, bool to_device) {
    const struct row_map *map = &x->space->rows;
    const bool by_row = x->plan->buf[buf].by_row;
    const struct plan_range *used = &x->space->used[buf];
    if (!by_row || !map->again) {
        const i64 lo = by_row ? map->b0 : used->lo, hi = by_row ? map->b1 : used->hi;
        space_move(x, &(struct use){.buf = buf, .lo = lo, .hi = hi}, to_device);
        return;
    }
    for (i32 k = 0; k < map->nrun; k++)
        if (map->run[k].device == ROWS_SHARED) move_run(x, buf, &map->run[k], to_device);
}

/* ------------------------------------------------------------------ rows that come and go ----------------------------------- */

static const struct row_run *run_of_task(const struct exec *x, u32 task) {
    i32 b0, b1;
    if (!x->space->rows.again || !plan_rows_of(x->plan, &x->plan->task[task], &b0, &b1)) return NULL;
    const struct row_run *r = &x->space->rows.run[x->space->rows.of[b0]];
    return r->device == ROWS_SHARED ? NULL : r;
}

void space_rows_in(const struct exec *x, u32 task) {
    const struct row_run *r = run_of_task(x, task);
    for (u32 i = 0; r && r->first == task && i < x->plan->nbuf; i++)
        if (x->plan->buf[i].by_row && x->plan->buf[i].lent) move_run(x, i, r, true);
}

void space_rows_out(const struct exec *x, u32 task) {
    const struct row_run *r = run_of_task(x, task);
    for (u32 i = 0; r && r->last == task && i < x->plan->nbuf; i++)
        if (x->plan->buf[i].read_after) move_run(x, i, r, false);
}
