/* map.c - tasks and uses of map, merge and update; edges and messages follow from the uses. */
#include "plan/map.h"

#include "plan/build.h"
#include "plan/tree.h"

/* A buffer of the client.  One without bytes would shift the numbers of those after it, so each has at least one element. */
static err lent(struct builder *b, enum map_buffer kind, i32 home, i64 unit, i64 extent) {
    const struct pbuf buf = {
        .kind = (u8)kind, .element = ELEMENT_U8, .lent = true, .home = home, .bytes = unit * extent, .extent = extent};
    u32 at;
    return build_buffer(b, buf, &at);
}

static err buffers(const struct map_request *q, struct builder *b) {
    const i64 bytes = q->part * element_bytes((u8)q->element);
    u32 at;
    TRY(lent(b, MAP_ROWS, HOME_WRITER, lmax(1, q->row_bytes), q->rows));
    TRY(lent(b, MAP_MODEL, HOME_ALL, 1, lmax(1, q->model_bytes)));
    TRY(lent(b, MAP_STATE, HOME_WRITER, 1, lmax(1, q->state_bytes)));
    for (i32 k = 0; k < b->plan->ngrain; k++) {
        const struct pbuf part = {
            .kind = MAP_PART0, .element = (u8)q->element, .index = k, .home = HOME_WRITER, .bytes = bytes, .extent = q->part};
        TRY(build_buffer(b, part, &at));
    }
    return 0;
}

static err use(struct builder *b, u32 buf, enum use_mode mode, i64 lo, i64 hi) {
    return build_use(b, (struct use){.buf = buf, .mode = (u8)mode, .lo = lo, .hi = hi});
}

static err map(const struct map_request *q, struct builder *b, const struct slice *box, u32 device) {
    const struct plan *p = b->plan;
    TRY(build_task(
        b, (struct task){.kind = MAP_MAP, .device = device, .box = *box, .cost = (f32)(q->row_seconds * (box->b1 - box->b0))}));
    TRY(use(b, MAP_ROWS, USE_R, box->b0, box->b1));
    TRY(use(b, MAP_MODEL, USE_R, 0, p->buf[MAP_MODEL].extent));
    for (i32 k = box->b0 / p->grain; k * p->grain < box->b1; k++) TRY(use(b, map_part(k), USE_W, 0, q->part));
    return 0;
}

/* The device that mapped micro-batch a merges the pair: where its piece holds both parts, without waiting for another device. */
static err merge(const struct map_request *q, struct builder *b, const struct merge_pair *m, const u32 *device_of) {
    TRY(build_task(b,
                   (struct task){.kind = MAP_MERGE, .device = device_of[m->a], .node_a = m->a, .node_b = m->b, .hi = q->part}));
    TRY(use(b, map_part(m->a), USE_RW, 0, q->part));
    return use(b, map_part(m->b), USE_R, 0, q->part);
}

static err update(const struct map_request *q, struct builder *b, u32 device) {
    TRY(build_task(b, (struct task){.kind = MAP_UPDATE, .device = device, .box = {0, q->rows, 0, 1}}));
    TRY(use(b, map_part(0), USE_R, 0, q->part));
    TRY(use(b, MAP_MODEL, USE_RW, 0, b->plan->buf[MAP_MODEL].extent));
    return use(b, MAP_STATE, USE_RW, 0, b->plan->buf[MAP_STATE].extent);
}

static err tasks(const struct map_request *q, struct builder *b) {
    struct slice box[MACHINE_DEVICES];
    struct merge_pair pair[MACHINE_DEVICES];
    u32 device_of[MACHINE_DEVICES];
    const struct slice whole = {0, q->rows, 0, 1};
    const i32 n = slice_cut_count(whole, q->microbatch, b->plan->ndevice, box);
    for (i32 d = 0; d < n; d++) {
        TRY(map(q, b, &box[d], (u32)d));
        for (i32 k = box[d].b0 / q->microbatch; k * q->microbatch < box[d].b1; k++) device_of[k] = (u32)d;
    }
    const i32 npair = merge_pairs(b->plan->ngrain, pair);
    for (i32 i = 0; i < npair; i++) TRY(merge(q, b, &pair[i], device_of));
    return update(q, b, device_of[0]);
}

static err make(const struct map_request *q, struct builder *b) {
    const i32 microbatches = ceil_div(q->rows, q->microbatch);
    if (microbatches > MACHINE_DEVICES)
        return FAIL(E401, "%d rows in micro-batches of %d are %d parts, at most %d are possible", q->rows, q->microbatch,
                    microbatches, MACHINE_DEVICES);
    TRY(build_begin(b, "map", q->machine, imin(q->machine->ndevice, microbatches)));
    b->plan->exact = true;
    b->plan->B = q->rows;
    b->plan->grain = q->microbatch;
    b->plan->ngrain = microbatches;
    TRY(buffers(q, b));
    TRY(tasks(q, b));
    return build_end(b);
}

err plan_map(const struct map_request *q, struct plan **out) {
    struct builder b = {0};
    *out = NULL;
    const err e = make(q, &b);
    if (e < 0) {
        build_drop(&b);
        return e;
    }
    b.plan->predicted = plan_schedule(b.plan, NULL);
    *out = b.plan;
    return 0;
}
