/* space.c - the memory of a device: its heap, what a step copies when, and the order of lanes (space.h). */
#include "exec/space.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"

enum { ALIGN = 256 };

/* ------------------------------------------------------------------ binding ------------------------------------------------- */

static bool runs_on_host(const struct exec *x, const struct task *t) {
    return !x->client.on_device || !x->client.on_device(x->client.self, t);
}

/* Which side uses which buffer. */
static void find_sides(struct exec *x, bool *device) {
    struct space *s = x->space;
    const struct plan *p = x->plan;
    for (i32 pass = 0; pass < 2; pass++)
        for (u32 i = 0; i < p->ntask; i++) {
            const struct task *t = &p->task[i];
            if (!exec_is_ours(x, t)) continue;
            s->on_host[i] = runs_on_host(x, t);
            for (u32 k = t->use0; k < t->use0 + t->nuse; k++) {
                const u32 buf = p->use[k].buf;
                if (pass == 0)
                    device[buf] = device[buf] || !s->on_host[i];
                else
                    s->both[buf] = s->both[buf] || (s->on_host[i] && device[buf]);
                s->written[buf] = s->written[buf] || use_writes(&p->use[k]);
            }
        }
}

/* Bytes of a buffer in the heap: those of its range here. */
static i64 bytes_of(const struct exec *x, u32 buf) {
    const struct pbuf *b = &x->plan->buf[buf];
    const struct plan_range *u = &x->space->used[buf];
    if (b->in_part) return b->bytes / b->extent * (u->hi - u->lo);
    return b->by_row && x->client.room ? x->client.room(x->client.self, b, x->space->rows.places) : b->bytes;
}

static i64 before(const struct exec *x, u32 buf) {
    const struct pbuf *b = &x->plan->buf[buf];
    return b->in_part ? b->bytes / b->extent * x->space->used[buf].lo : 0;
}

static i64 lay_out(struct exec *x, const bool *device, char *heap) {
    i64 at = 0;
    for (u32 i = 0; i < x->plan->nbuf; i++) {
        if (!device[i] || x->space->used[i].hi == 0) continue;
        if (heap) x->space->mem[i] = heap + at - before(x, i);
        at += round_up64(bytes_of(x, i), ALIGN);
    }
    return at;
}

/* Marks of items, where another lane may wait for them. */
static err bind_marks(struct exec *x) {
    struct space *s = x->space;
    u32 most = 0;
    ARENA_NEW(&x->arena, s->mark, x->nqueue);
    ARENA_NEW(&x->arena, s->begin, x->nqueue);
    for (u32 q = 0; q < x->nqueue; q++) {
        most = most > x->queue[q].n ? most : x->queue[q].n;
        ARENA_NEW(&x->arena, s->mark[q], x->queue[q].n + 1);
        ARENA_NEW(&x->arena, s->begin[q], x->queue[q].n + 1);
    }
    ARENA_NEW(&x->arena, s->copies, x->nqueue + 1);
    for (u32 q = 0; q <= x->nqueue; q++) ARENA_NEW(&x->arena, s->copies[q].ring, COPY_RING);
    s->waits = x->nqueue > 1 || x->comm;
    s->can_time = 2 * most < GPU_SLOTS;
    if (!s->waits || most < GPU_SLOTS) return 0;
    return FAIL_AT(E401, "--device", "--parallel serial   or   fewer --grains",
                   "a step of %u tasks on a lane: at most %d can be waited for", most, GPU_SLOTS);
}

/* Items before the first one for which the host must see a result; all of them kernels on one lane. */
static u32 recordable(const struct exec *x) {
    const struct queue *q = &x->queue[0];
    if (x->nqueue > 1 || x->comm || x->space->rows.again || !gpu_records(x->space->gpu) || !x->client.constants) return 0;
    for (u32 i = 0; i < q->n; i++) {
        const struct task *t = &x->plan->task[q->item[i].task];
        if (x->space->on_host[q->item[i].task]) return 0;
        for (u32 k = t->use0; k < t->use0 + t->nuse; k++)
            if (x->plan->buf[x->plan->use[k].buf].seen && x->plan->use[k].mode == USE_R) return i;
    }
    return q->n;
}

static err may_run(const struct exec *x) {
    if (x->policy->delay)
        return FAIL_AT(E401, "--pipeline", "--pipeline overlap", "%s keeps two copies of the weights, which devices do not",
                       x->policy->name);
    if (x->rounds)
        return FAIL_AT(E401, "--device", "--parallel data   or   --device cpu",
                       "time slices of one sequence on the devices of several ranks are not possible");
    return 0;
}

/* Rows that messages carry stay where they are. */
static err bind_rows(struct exec *x) {
    bool still = !x->client.room;
    for (u32 i = 0; i < x->nmessage; i++) still = still || x->plan->buf[x->message[i].buf].by_row;
    return plan_rows(x->plan, x->comm ? x->runs : NULL, still, &x->arena, &x->space->rows);
}

err space_bind(struct exec *x, const struct plan_range *used) {
    const struct plan *p = x->plan;
    const struct device *d = &p->place[x->device0].device;
    bool *device;
    struct space *s;
    if (!x->dev->driver) return 0;
    TRY(may_run(x));
    ARENA_NEW(&x->arena, x->space, 1);
    s = x->space;
    s->used = used;
    ARENA_NEW(&x->arena, s->mem, p->nbuf + 1);
    ARENA_NEW(&x->arena, s->on_host, p->ntask + 1);
    ARENA_NEW(&x->arena, s->both, p->nbuf + 1);
    ARENA_NEW(&x->arena, s->written, p->nbuf + 1);
    ARENA_NEW(&x->arena, s->fresh, p->nbuf + 1);
    ARENA_NEW(&x->arena, device, p->nbuf + 1);
    find_sides(x, device);
    for (u32 i = 0; i < x->nmessage; i++) s->both[x->message[i].buf] = device[x->message[i].buf];
    TRY(bind_rows(x));
    s->agent = x->comm ? (i32)x->nqueue : -1;
    const struct gpu_driver *driver = gpu_driver_find(x->dev->driver);
    TRY(gpu_open(driver, d->card, (i32)x->nqueue + (x->comm ? 1 : 0), lay_out(x, device, NULL), &s->gpu));
    lay_out(x, device, gpu_heap(s->gpu));
    for (u32 i = 0; i < p->nbuf; i++) s->fresh[i] = p->buf[i].lent;
    TRY(bind_marks(x));
    if (x->client.heap) x->client.heap(x->client.self, s->mem, s->rows.places);
    s->replay.end = recordable(x);
    return 0;
}

void space_free(struct exec *x) {
    if (!x->space) return;
    if (x->space->gpu) gpu_drop(x->space->gpu, x->space->replay.graph);
    gpu_close(x->space->gpu);
}

/* ------------------------------------------------------------------ a step -------------------------------------------------- */

/* Ends what a thread did on a lane beside its own work, and goes back. */
static err leave(struct gpu_place was) {
    const err e = gpu_sync();
    gpu_enter(was.gpu, was.lane);
    return e;
}

enum { TRACED_STEPS = 64 };

err space_begin(struct exec *x) {
    struct space *s = x->space;
    if (!s) return 0;
    const struct gpu_place was = gpu_enter(s->gpu, 0);
    const bool traced = x->trace && (s->replay.end == 0 || x->serial < TRACED_STEPS); /* a replayed graph shows no items */
    s->timed = s->can_time && (x->comm || traced);
    for (u32 i = 0; i < x->plan->nbuf; i++) {
        if (!x->plan->buf[i].lent || (s->written[i] && !s->fresh[i])) continue;
        space_move_all(x, i, true);
        s->fresh[i] = false;
    }
    err e = 0;
    if (x->nqueue > 1 || x->comm) e = leave(was); /* other lanes read it too */
    else gpu_enter(was.gpu, was.lane);
    s->host_begin = clock_now();
    return e;
}

/* Adds the seconds of a lane's items, by the clock of the device: those of rows to the measured speed of the rank, all to the
 * trace. */
static void read_clock(struct exec *x, u32 lane) {
    const struct space *s = x->space;
    struct queue *q = &x->queue[lane];
    for (u32 i = 0; i < q->n; i += q->item[i].run) {
        const u32 task = q->item[i].task;
        const f64 took = gpu_between((i32)s->begin[lane][i], (i32)s->mark[lane][i]);
        const f64 after = gpu_between((i32)s->begin[lane][0], (i32)s->begin[lane][i]);
        if (took < 0 || after < 0) continue;
        if (x->comm && x->client.kernel[x->plan->task[task].kind].rows) q->busy += took;
        if (x->trace && q->ring) trace_add(x, q, task, s->host_begin + after, s->host_begin + after + took);
    }
}

err space_end(struct exec *x) {
    struct space *s = x->space;
    if (!s) return 0;
    for (i32 lane = gpu_lanes(s->gpu) - 1; lane >= 0; lane--) {
        const struct gpu_place was = gpu_enter(s->gpu, lane);
        for (u32 i = 0; lane == 0 && i < x->plan->nbuf; i++)
            if (x->plan->buf[i].seen) space_move_all(x, i, false);
        const err e = gpu_sync();
        if (e >= 0 && s->timed && lane < (i32)x->nqueue) read_clock(x, (u32)lane);
        gpu_enter(was.gpu, was.lane);
        TRY(e);
    }
    return 0;
}

void exec_host_wrote(struct exec *x) {
    for (u32 i = 0; x->space && i < x->plan->nbuf; i++)
        x->space->fresh[i] = x->space->fresh[i] || x->plan->buf[i].lent;
}

err exec_bring(struct exec *x) {
    struct space *s = x->space;
    if (!s) return 0;
    const struct gpu_place was = gpu_enter(s->gpu, 0);
    for (u32 i = 0; i < x->plan->nbuf; i++) {
        if (!x->plan->buf[i].lent || !s->written[i] || s->fresh[i]) continue;
        space_move_all(x, i, false);
        s->fresh[i] = true;
    }
    return leave(was);
}

/* Newest first, of each lane an equal number; those before the first span of a task lie outside of the picture. */
i32 exec_copies(const struct exec *x, f64 since, struct task_span *out, i32 max) {
    const struct space *s = x->space;
    i32 n = 0;
    for (u32 q = 0; s && q <= x->nqueue; q++) {
        const struct copies *c = &s->copies[q];
        const u32 most = (u32)imin(COPY_RING, max / (i32)(x->nqueue + 1)), count = c->n < most ? c->n : most;
        for (u32 i = c->n - count; i != c->n; i++) {
            const struct copy_record *r = &c->ring[i % COPY_RING];
            if (r->t0 < since) continue;
            out[n] = (struct task_span){.worker = (i32)q, .copy = true, .t0 = r->t0, .t1 = r->t1};
            snprintf(out[n++].name, sizeof out->name, "%s", r->to_device ? "put" : "get");
        }
    }
    return n;
}

err exec_look(struct exec *x, u32 buf) {
    struct space *s = x->space;
    if (!s || !s->mem[buf] || x->plan->buf[buf].lent) return 0;
    const struct gpu_place was = gpu_enter(s->gpu, 0);
    space_move_all(x, buf, false);
    return leave(was);
}

err exec_failed(const struct exec *x) { return x->space ? gpu_failed(x->space->gpu) : 0; }

/* ------------------------------------------------------------------ items --------------------------------------------------- */

void space_enter(struct exec *x, u32 queue) {
    if (x->space) gpu_enter(x->space->gpu, (i32)queue);
}
void space_leave(const struct exec *x) {
    if (x->space) gpu_enter(NULL, 0);
}

/* Recording costs about a step: from step 2 on, and not any more when the constants have changed some times. */
enum { CHANGES_MOST = 3 };

u32 space_replay(struct exec *x) {
    struct space *s = x->space;
    if (!s || s->replay.end == 0 || s->timed || x->serial < 2) return 0;
    const u64 key = x->client.constants(x->client.self);
    if (key == 0 || s->replay.changes > CHANGES_MOST) return 0;
    if (s->replay.graph && s->replay.key == key) {
        gpu_replay(s->replay.graph);
        return s->replay.end;
    }
    if (s->replay.graph) s->replay.changes++;
    gpu_drop(s->gpu, s->replay.graph);
    s->replay.graph = NULL;
    s->replay.key = key;
    s->replay.records = true;
    gpu_record();
    return 0;
}

void space_recorded(struct exec *x, u32 done) {
    struct space *s = x->space;
    if (!s || !s->replay.records || done < s->replay.end) return;
    s->replay.records = false;
    s->replay.graph = gpu_recorded();
    gpu_replay(s->replay.graph);
}

/* The lane of the thread runs behind these items of other lanes. */
static void wait_for_items(const struct space *s, const struct dev_wait *wait, u32 n) {
    for (u32 k = 0; k < n; k++) gpu_wait((i32)wait[k].queue, (i32)s->mark[wait[k].queue][wait[k].count - 1]);
}

void space_wait(struct exec *x, const struct item *it) {
    if (x->space) wait_for_items(x->space, x->wait + it->wait0, it->nwait);
}

static void copy_uses(struct exec *x, const struct task *t, bool to_device) {
    const struct space *s = x->space;
    for (u32 k = t->use0; k < t->use0 + t->nuse; k++) {
        const struct use *u = &x->plan->use[k];
        const bool wanted = to_device ? use_writes(u) : u->mode != USE_W;
        if (wanted && s->both[u->buf]) space_move(x, u, to_device);
    }
}

/* What the host sees of a buffer before a task on the device reads it: sums that decide about the update. */
static void show(struct exec *x, const struct task *t) {
    for (u32 k = t->use0; k < t->use0 + t->nuse; k++) {
        const struct use *u = &x->plan->use[k];
        if (x->plan->buf[u->buf].seen && u->mode == USE_R) space_move(x, u, false); /* of the rest messages may be on the way */
    }
}

void space_item(struct exec *x, const struct item *it) {
    const struct task *t = &x->plan->task[it->task];
    const struct kernel *k = &x->client.kernel[t->kind];
    i32 b0, b1;
    space_rows_in(x, it->task);
    if (x->space->on_host[it->task]) {
        copy_uses(x, t, false);
        gpu_sync();
        const struct kernel_call c = {
            .task = t, .mem = x->mem[0], .host = x->mem[0], .alone = x->alone, .lo = t->lo, .hi = t->hi};
        k->run(x->client.self, &c);
        copy_uses(x, t, true);
        space_rows_out(x, it->task);
        return;
    }
    for (u32 i = 0; i < it->run; i++) { /* `blocks` kernels have no cache to keep warm here */
        const struct task *own = &x->plan->task[it[i].task];
        const struct kernel_call c = {.task = own,
                                      .mem = x->space->mem,
                                      .host = x->mem[0],
                                      .row0 = plan_rows_of(x->plan, own, &b0, &b1) ? space_row0(x->space, b0) : 0,
                                      .on_device = true,
                                      .alone = x->alone,
                                      .lo = own->lo,
                                      .hi = own->hi};
        show(x, own);
        k->run(x->client.self, &c);
    }
    space_rows_out(x, it->task);
}

void space_start(struct exec *x, u32 queue, u32 item) {
    if (x->space && x->space->timed) x->space->begin[queue][item] = (u32)gpu_mark();
}

void space_done(struct exec *x, u32 queue, u32 item, u32 n) {
    if (!x->space || !(x->space->waits || x->space->timed)) return;
    const u32 slot = (u32)gpu_mark();
    for (u32 i = item; i < item + n; i++) x->space->mark[queue][i] = slot;
}

/* ------------------------------------------------------------------ messages ------------------------------------------------ */

/* The agent's lane runs behind the items that precede the message. */
static struct gpu_place enter_agent(struct exec *x, const struct link *l) {
    const struct gpu_place was = gpu_enter(x->space->gpu, x->space->agent);
    wait_for_items(x->space, l->ready, l->nready);
    return was;
}

static void move_message(struct exec *x, const struct plan_message *m, bool to_device) {
    space_move(x, &(struct use){.buf = m->buf, .t0 = m->t0, .t1 = m->t1, .lo = m->lo, .hi = m->hi}, to_device);
}

err space_send(struct exec *x, const struct link *l) {
    if (!x->space || l->plan.when >= MESSAGE_SETTLE) return 0; /* between two steps, from the host */
    const struct gpu_place was = enter_agent(x, l);
    move_message(x, &l->plan, false);
    return leave(was);
}

err space_receive(struct exec *x, const struct link *l) {
    struct space *s = x->space;
    if (!s) return 0;
    if (l->plan.when >= MESSAGE_SETTLE) { /* between two steps, to the host */
        s->fresh[l->plan.buf] = true;
        return 0;
    }
    const struct gpu_place was = enter_agent(x, l);
    move_message(x, &l->plan, true);
    return leave(was);
}
