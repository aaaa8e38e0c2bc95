/* own.c - queries of a bound exec: the tasks of this rank, names of tasks and buffers, memory. */
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "exec/bound.h"

bool exec_is_ours(const struct exec *x, const struct task *t) {
    return !x->comm || x->runs[t - x->plan->task];
}

/* A task of another rank's device that runs everywhere goes to the queue with that device's number here. */
u32 exec_queue_of(const struct exec *x, const struct task *t) {
    if (x->policy->defers && x->policy->defers(x, t)) return x->nqueue;
    const u32 device = t->device;
    return (device >= x->device0 ? device - x->device0 : device) % x->nqueue;
}

const struct task *exec_team(const struct exec *x, const struct task *t, i32 *n) {
    const struct task *first = t - t->member, *end = first + imax(1, t->members);
    while (!exec_is_ours(x, first)) first++;
    for (*n = 0; first + *n < end && exec_is_ours(x, first + *n);) (*n)++;
    return first;
}

void exec_rows(const struct exec *x, i32 *b0, i32 *b1) {
    const struct plan *p = x->plan;
    *b0 = p->B;
    *b1 = 0;
    for (u32 i = 0; i < p->ntask; i++) {
        const struct task *t = &p->task[i];
        if (!x->client.kernel[t->kind].rows || !exec_is_ours(x, t)) continue;
        *b0 = imin(*b0, t->box.b0);
        *b1 = imax(*b1, t->box.b1);
    }
    *b0 = imin(*b0, *b1);
}

/* Does some rank get the buffer only when the exec settles?  A buffer that no task writes is not sent at all. */
static bool is_in_parts(const struct exec *x, u32 buf) {
    bool written = false;
    for (u32 i = 0; i < x->nmessage; i++)
        if (x->message[i].buf == buf && x->message[i].when == MESSAGE_SETTLE) return true;
    for (u32 k = 0; k < x->plan->nuse && !written; k++) written = x->plan->use[k].buf == buf && use_writes(&x->plan->use[k]);
    return !written;
}

static int by_begin(const void *a, const void *b) {
    const struct plan_range *r = a, *s = b;
    return r->lo < s->lo ? -1 : r->lo > s->lo;
}

/* Joins ranges that overlap or meet; returns how many are left. */
static i32 join(struct plan_range *r, i32 n) {
    i32 kept = 0;
    if (n > 0) qsort(r, (size_t)n, sizeof *r, by_begin);
    for (i32 i = 0; i < n; i++) {
        if (kept > 0 && r[i].lo <= r[kept - 1].hi) r[kept - 1].hi = lmax(r[kept - 1].hi, r[i].hi);
        else r[kept++] = r[i];
    }
    return kept;
}

err exec_held(const struct exec *x, u32 buf, struct arena *a, struct plan_range **out, i32 *n) {
    const struct plan *p = x->plan;
    const bool parts = is_in_parts(x, buf);
    *n = 0;
    ARENA_NEW(a, *out, parts ? p->nuse + 1 : 1);
    if (!parts) (*out)[(*n)++] = (struct plan_range){0, p->buf[buf].extent};
    for (u32 i = 0; parts && i < p->ntask; i++)
        for (u32 k = p->task[i].use0; k < p->task[i].use0 + p->task[i].nuse && exec_is_ours(x, &p->task[i]); k++)
            if (p->use[k].buf == buf) (*out)[(*n)++] = (struct plan_range){p->use[k].lo, p->use[k].hi};
    *n = join(*out, *n);
    return 0;
}

void exec_rest(struct exec *x) {
    mem_zero(x->block);
    comm_zero(x->comm, x->sent_block);
}

i64 exec_bytes(const struct exec *x) {
    i64 rings = 0;
    for (u32 w = 0; w < x->nqueue; w++) rings += x->queue[w].ring ? TRACE_RING * (i64)sizeof(struct record) : 0;
    return x->block_bytes + x->sent_bytes + x->twin_bytes + x->arena.used + (i64)sizeof *x + rings;
}

void exec_task_name(const struct exec *x, u32 task, char out[64]) {
    const struct task *t = &x->plan->task[task];
    if (x->client.task_name)
        x->client.task_name(x->client.self, task, out);
    else
        snprintf(out, 64, "%s b[%d,%d)", x->client.kernel[t->kind].name, t->box.b0, t->box.b1);
}

void exec_buffer_name(const struct exec *x, u32 buf, char out[COMM_NAME]) {
    if (x->client.buffer_name)
        x->client.buffer_name(x->client.self, buf, out);
    else
        snprintf(out, COMM_NAME, "buffer.%u", buf);
}

struct exec_sent exec_sent(const struct exec *x) {
    return x->sent;
}
void *exec_twin(const struct exec *x, u32 buf) { return x->policy->delay ? x->mem[1][buf] : NULL; }
void *const *exec_mem(const struct exec *x) { return x->mem[0]; }
void *const *exec_mem_summed(const struct exec *x) { return x->mem[1]; }
u64 exec_serial(const struct exec *x) { return x->serial; }
bool exec_alone(const struct exec *x) { return x->alone; }
struct comm *exec_comm(const struct exec *x) {
    return x->comm;
}
