/* virtual.c - describes the queues of a step to the device type; for a virtual clock also the bytes that each task uses. */
#include "base/float_mode.h"
#include "exec/bound.h"

/* Items of `blocks` kernels that run together count as the first of them; their seconds add up. */
static u32 item_at(void *exec, u32 queue, u32 at, struct dev_item *out) {
    const struct exec *x = exec;
    const struct queue *q = &x->queue[queue];
    if (at >= q->n) return 0;
    const struct item *it = &q->item[at];
    const struct plan *p = x->plan;
    *out =
        (struct dev_item){.device = &p->place[p->task[it->task].device].device, .wait = &x->wait[it->wait0], .nwait = it->nwait};
    for (u32 k = 0; k < it->run; k++) {
        const struct task_bytes *b = &x->bytes[it[k].task];
        out->seconds += (f64)p->task[it[k].task].cost;
        out->bytes += b->used;
        out->moved += b->moved;
        out->across = out->across || b->across;
    }
    return at + it->run;
}

static void run_item(void *exec, u32 queue, u32 at, f64 t0, f64 t1) {
    struct exec *x = exec;
    struct queue *q = &x->queue[queue];
    const struct item *it = &q->item[at];
    const u64 mode = float_mode_fast();
    exec_item(x, it, x->mem[0]);
    float_mode_back(mode);
    if (x->trace) trace_add(x, q, it->task, x->epoch + x->virtual_epoch + t0, x->epoch + x->virtual_epoch + t1);
    atomic_store_explicit(&q->done, x->serial << 32 | (at + it->run), memory_order_release);
}

/* Bytes of a use that `from` wrote. */
static f64 written(const struct plan *p, const struct use *u, const struct task *from) {
    f64 sum = 0;
    for (u32 k = from->use0; k < from->use0 + from->nuse; k++) {
        const struct use *w = &p->use[k];
        if (w->buf != u->buf || !use_writes(w) || !use_meets(u, w)) continue;
        sum += pbuf_bytes(&p->buf[u->buf], lmax(u->lo, w->lo), lmin(u->hi, w->hi));
    }
    return sum;
}

/* Bytes that a task reads from other devices: from the last writer, over the link if that is on another rank. */
static void count_bytes(struct exec *x, u32 task) {
    const struct plan *p = x->plan;
    const struct task *t = &p->task[task];
    struct task_bytes *b = &x->bytes[task];
    for (u32 k = t->use0; k < t->use0 + t->nuse; k++) {
        const struct use *u = &p->use[k];
        b->used += pbuf_bytes(&p->buf[u->buf], u->lo, u->hi);
        for (u32 d = t->dep0; d < t->dep0 + t->ndep && u->mode != USE_W; d++) {
            const struct task *from = &p->task[p->dep[d]];
            const f64 bytes = from->device == t->device || from->everywhere ? 0 : written(p, u, from);
            b->moved += bytes;
            b->across = b->across || (bytes > 0 && p->place[from->device].rank != p->place[t->device].rank);
        }
    }
}

static err room(const struct exec *x) {
    i64 *bytes;
    NEW(bytes, x->plan->ndevice + 1);
    err e = plan_device_bytes(x->plan, bytes);
    for (i32 d = 0; d < x->plan->ndevice && e >= 0; d++)
        e = x->dev->fits(&x->plan->place[d].device, x->plan->place[d].name, bytes[d]);
    mem_free(bytes);
    return e;
}

err virtual_bind(struct exec *x) {
    struct dev_work *w = &x->work;
    *w = (struct dev_work){.pool = x->pool, .nqueue = x->nqueue, .arg = x, .run_queue = exec_work};
    if (!x->dev->is_virtual) return 0;
    if (x->comm)
        return FAIL_AT(E401, "--machine", "one process, and a machine text such as host*2(sim*4)",
                       "%s devices share one virtual clock: they belong to one process", x->dev->name);
    TRY(room(x));
    w->item = item_at;
    w->run_item = run_item;
    w->link_bytes = x->plan->link_gbytes * 1e9;
    w->link_seconds = x->plan->link_us * 1e-6;
    for (u32 q = 0; q < x->nqueue; q++) w->longest = w->longest > x->queue[q].n ? w->longest : x->queue[q].n;
    ARENA_NEW(&x->arena, w->finish, (i64)x->nqueue * (w->longest + 1));
    ARENA_NEW(&x->arena, x->bytes, x->plan->ntask + 1);
    for (u32 i = 0; i < x->plan->ntask; i++) count_bytes(x, i);
    return 0;
}

f64 exec_virtual_seconds(const struct exec *x) { return x->virtual_seconds; }
