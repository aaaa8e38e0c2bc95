/* bind.c - memory for the buffers of a plan, and one queue of items per worker. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "dev/dev.h"
#include "exec/bound.h"
#include "exec/space.h"

enum { PAGE = 4096, LARGE = 1 << 18, ALIGN = 64 };

/* ------------------------------------------------------------------ memory -------------------------------------------------- */

/* Large buffers start at a page boundary, so the row ranges of two workers usually meet at one, too. The hardware
 * prefetcher stops there; otherwise it takes cache lines away that the other core is writing. */
static bool paged(i64 bytes) { return bytes >= LARGE; }

static i64 padded(i64 bytes) { return round_up64(bytes, ALIGN) + (paged(bytes) ? PAGE - ALIGN : 0); }

static i64 padded_line(i64 bytes) { return round_up64(bytes, ALIGN); }

static char *start(i64 bytes, char *at) { return paged(bytes) ? at + (-(uintptr_t)at & (PAGE - 1)) : at; }

/* The ranges of buffers that tasks of this rank use or that it receives, and the marks of their sparse rows. */
static void find_used(struct exec *x, struct plan_range *used) {
    const struct plan *p = x->plan;
    for (u32 i = 0; i < p->ntask; i++)
        if (exec_is_ours(x, &p->task[i])) plan_add_uses(p, &p->task[i], used);
    for (u32 i = 0; i < x->nmessage; i++)
        if (x->message[i].to == comm_rank(x->comm)) plan_range_add(&used[x->message[i].buf], x->message[i].lo, x->message[i].hi);
    for (u32 i = 0; i < p->nbuf; i++) {
        const struct pbuf *b = &p->buf[i];
        if (!b->in_part || x->policy->delay) plan_range_add(&used[i], 0, used[i].hi ? b->extent : 0);
        if (used[i].hi && b->sparse && b->marks != PLAN_NO_MARKS) plan_range_add(&used[b->marks], 0, p->buf[b->marks].extent);
    }
}

static i64 bytes_here(const struct exec *x, u32 buf, const struct plan_range *used) {
    const struct pbuf *b = &x->plan->buf[buf];
    if (b->lent || used[buf].hi == 0) return 0;
    if (b->in_part) return b->bytes / b->extent * (used[buf].hi - used[buf].lo);
    return x->client.room ? x->client.room(x->client.self, b, -1) : b->bytes;
}

/* The address of element 0, which may lie before the memory of the range that is held. */
static void *from_first(const struct exec *x, u32 buf, const struct plan_range *used, char *at) {
    const struct pbuf *b = &x->plan->buf[buf];
    return b->in_part ? at - b->bytes / b->extent * used[buf].lo : at;
}

static bool has_twin(const struct exec *x, u32 buf, const struct plan_range *used) {
    return x->policy->delay && x->plan->buf[buf].twin != TWIN_NONE && used[buf].hi;
}

/* Buffers of one block, in order. */
static void place_buffers(struct exec *x, const struct plan_range *used, const i64 *bytes) {
    char *at = x->block, *sent = x->sent_block, *twin = x->twin_block;
    for (u32 i = 0; i < x->plan->nbuf; i++) {
        const struct pbuf *b = &x->plan->buf[i];
        if (has_twin(x, i, used)) {
            x->mem[1][i] = twin;
            twin += padded_line(b->bytes);
        }
        if (bytes[i] == 0) continue;
        if (b->sent) {
            x->mem[0][i] = from_first(x, i, used, sent);
            sent += padded_line(bytes[i]);
        } else {
            x->mem[0][i] = from_first(x, i, used, start(bytes[i], at));
            at += padded(bytes[i]);
        }
    }
    for (u32 i = 0; i < x->plan->nbuf; i++)
        if (!x->mem[1][i]) x->mem[1][i] = x->mem[0][i];
}

static err bind_memory(struct exec *x, void *const *lent, struct plan_range **out) {
    const struct plan *p = x->plan;
    struct plan_range *used;
    i64 *bytes;
    ARENA_NEW(&x->arena, used, p->nbuf + 1);
    ARENA_NEW(&x->arena, bytes, p->nbuf + 1);
    ARENA_NEW(&x->arena, x->mem[0], p->nbuf + 1);
    x->mem[1] = x->mem[0];
    if (x->policy->delay) ARENA_NEW(&x->arena, x->mem[1], p->nbuf + 1);
    find_used(x, used);
    *out = used;
    for (u32 i = 0; i < p->nbuf; i++) {
        const struct pbuf *b = &p->buf[i];
        bytes[i] = bytes_here(x, i, used);
        if (b->sent) x->sent_bytes += padded_line(bytes[i]);
        else x->block_bytes += padded(bytes[i]);
        if (has_twin(x, i, used)) x->twin_bytes += padded_line(b->bytes);
        if (b->lent) x->mem[0][i] = lent ? lent[i] : NULL;
    }
    x->block = mem_alloc((size_t)x->block_bytes + ALIGN);
    if (x->sent_bytes) x->sent_block = comm_alloc(x->comm, (size_t)x->sent_bytes);
    if (x->twin_bytes) x->twin_block = mem_alloc((size_t)x->twin_bytes);
    if (!x->block || (x->sent_bytes && !x->sent_block) || (x->twin_bytes && !x->twin_block)) return -E601;
    place_buffers(x, used, bytes);
    return 0;
}

void exec_lend(struct exec *x, u32 buf, void *at) {
    x->mem[0][buf] = x->mem[1][buf] = at;
    if (x->space) x->space->fresh[buf] = true;
}

/* ------------------------------------------------------------------ queues -------------------------------------------------- */

static bool same_range(const struct exec *x, const struct task *a, const struct task *b) {
    return x->client.kernel[a->kind].blocks && a->kind == b->kind && a->lo == b->lo && a->hi == b->hi;
}

/* Tasks of a `blocks` kernel that follow each other over the same range, without a wait in between, run together block by
 * block. */
static void group_blocks(struct exec *x, struct queue *q) {
    for (u32 i = 0; i < q->n;) {
        u32 n = 1;
        const struct task *task = x->plan->task, *first = &task[q->item[i].task];
        for (const struct item *at = &q->item[i + 1]; i + n < q->n; at++, n++)
            if (at->nwait > 0 || at->nlink > 0 || !same_range(x, first, &task[at->task])) break;
        q->item[i].run = n;
        i += n;
    }
}

/* Waits of an item: for each other queue the last item that it depends on, unless this queue has already waited for that. */
static u32 waits_of(struct exec *x, u32 queue, const struct task *t, const u32 *place, u32 *need, u32 *have, u32 nwait) {
    const struct plan *p = x->plan;
    for (u32 w = 0; w < x->nlist; w++) need[w] = 0;
    for (u32 k = t->dep0; k < t->dep0 + t->ndep; k++) {
        u32 from = p->dep[k], w = exec_queue_of(x, &p->task[from]);
        if (!exec_is_ours(x, &p->task[from])) continue; /* its output arrives as a message */
        if (w != queue && place[from] + 1 > need[w]) need[w] = place[from] + 1;
    }
    u32 n = 0;
    for (u32 w = 0; w < x->nlist; w++) {
        if (need[w] <= have[w]) continue;
        have[w] = need[w];
        x->wait[nwait + n++] = (struct dev_wait){w, need[w]};
    }
    return n;
}

/* Number of devices of this rank, which are contiguous in the plan; sets device0 to the first. */
static i32 own_devices(struct exec *x) {
    i32 n = 0;
    for (i32 d = x->plan->ndevice - 1; d >= 0; d--) {
        if (x->comm && x->plan->place[d].rank != comm_rank(x->comm)) continue;
        x->device0 = (u32)d;
        n++;
    }
    return n;
}

static err bind_queue(struct exec *x, u32 w, const u32 *place, u32 *need, u32 *nwait) {
    const struct plan *p = x->plan;
    struct queue *q = &x->queue[w];
    u32 *have;
    ARENA_NEW(&x->arena, q->item, q->n + 1);
    ARENA_NEW(&x->arena, have, x->nlist);
    for (u32 i = 0; i < p->ntask; i++) {
        if (!exec_is_ours(x, &p->task[i]) || exec_queue_of(x, &p->task[i]) != w) continue;
        struct item *it = &q->item[place[i]];
        *it = (struct item){.task = i, .wait0 = *nwait, .run = 1};
        it->nwait = waits_of(x, w, &p->task[i], place, need, have, *nwait);
        *nwait += it->nwait;
        if (x->client.kernel[p->task[i].kind].compute) q->ncompute = place[i] + 1;
    }
    return 0;
}

/* True if the members of a team compute the same rows and so synchronize at every time step; members with rows of their own
 * do not. */
static bool in_step(const struct plan *p, u32 task) {
    const struct task *t = &p->task[task], *other = t->member > 0 ? t - 1 : t + 1;
    return t->members > 1 && !t->split && t->box.b0 == other->box.b0 && t->box.b1 == other->box.b1;
}

static void count_workers(struct exec *x, i32 slices) {
    const struct plan *p = x->plan;
    const i32 own = own_devices(x);
    x->nqueue = (u32)imax(1, imin(x->dev->workers(x->pool, own), own));
    x->rounds = x->comm && slices > 0;
    if (x->rounds && (i32)x->nqueue < own) x->nqueue = 1; /* what others' rows wait for is then done before */
    /* Two members in one queue would wait for each other forever; on a device their kernels have no way to wait. */
    x->alone = (i32)x->nqueue < own || x->dev->is_virtual || x->dev->driver;
    for (u32 i = 0; i < p->ntask; i++) {
        const struct task *t = &p->task[i];
        x->teams = x->teams || (!x->alone && in_step(p, i));
        x->all_commit = x->all_commit || (t->everywhere && x->client.kernel[t->kind].commits);
    }
    pace_begin(&x->pace);
}

static err bind_queues(struct exec *x) {
    const struct plan *p = x->plan;
    u32 *place, *need, nwait = 0;
    if (x->policy->bind) TRY(x->policy->bind(x));
    x->nlist = x->nqueue + (x->policy->defers ? 1 : 0);
    ARENA_NEW(&x->arena, x->queue, x->nlist);
    ARENA_NEW(&x->arena, place, p->ntask + 1);
    ARENA_NEW(&x->arena, need, x->nlist);
    i64 most = 0;
    for (u32 i = 0; i < p->ntask; i++) {
        if (exec_is_ours(x, &p->task[i])) place[i] = x->queue[exec_queue_of(x, &p->task[i])].n++;
        most += lmin(p->task[i].ndep, x->nlist);
    }
    ARENA_NEW(&x->arena, x->wait, most + 1);
    for (u32 w = 0; w < x->nlist; w++) TRY(bind_queue(x, w, place, need, &nwait));
    TRY(exchange_bind(x, place));
    for (u32 w = 0; w < x->nlist; w++) group_blocks(x, &x->queue[w]);
    return 0;
}

/* ------------------------------------------------------------------ the whole ----------------------------------------------- */

/* A second copy of the weights is moved whole: each rank must have all of them after a step.  Members of a split team on several
 * ranks hold parts of the gradient of the same rows. */
static err may_delay(const struct exec *x) {
    if (x->policy->delay && x->comm && plan_is_split(x->plan))
        return FAIL_AT(E401, "--pipeline", "--pipeline overlap   or   --parallel data",
                       "%s delays the update of all weights, but ranks of this plan hold units of a layer each", x->policy->name);
    for (u32 i = 0; i < x->nmessage && x->policy->delay; i++)
        if (x->message[i].when == MESSAGE_SETTLE)
            return FAIL_AT(E401, "--pipeline", "--pipeline overlap   or   --parallel data",
                           "%s delays the update of all weights, but ranks of this plan hold those of their own layers",
                           x->policy->name);
    return 0;
}

static err bind(struct exec *x, const struct exec_job *job) {
    const i32 ranks = x->comm ? comm_size(x->comm) : 1;
    TRY(policy_fits(x->policy, job->slices, ranks));
    for (u32 i = 0; i < x->plan->ntask; i++)
        if (x->plan->task[i].kind >= x->client.nkernel)
            return FAIL(E1, "task %u of the plan wants kernel %d, the client has %d", i, x->plan->task[i].kind,
                        x->client.nkernel);
    TRY(dev_of_rank(x->plan, x->comm ? comm_rank(x->comm) : x->plan->place[0].rank, &x->dev));
    if (x->comm) TRY(plan_runs(x->plan, comm_rank(x->comm), &x->arena, &x->runs));
    if (x->comm) TRY(plan_exchange(x->plan, &x->arena, &x->message, &x->nmessage));
    TRY(may_delay(x));
    struct plan_range *used;
    TRY(bind_memory(x, job->lent, &used));
    count_workers(x, job->slices);
    TRY(bind_queues(x));
    TRY(virtual_bind(x));
    if (x->client.bound) TRY(x->client.bound(x->client.self, x, x->mem[0]));
    return space_bind(x, used);
}

err exec_bind(const struct exec_job *job, struct exec **out) {
    *out = NULL;
    struct exec *x = mem_alloc(sizeof *x);
    if (!x) return -E601;
    x->plan = job->plan;
    x->client = job->client;
    x->policy = job->policy ? job->policy : &policy_overlap;
    x->pool = job->pool;
    x->comm = comm_size(job->comm) > 1 ? job->comm : NULL;
    const err e = bind(x, job);
    if (e < 0) {
        exec_free(x);
        return e;
    }
    x->epoch = clock_now();
    *out = x;
    return 0;
}

void exec_free(struct exec *x) {
    if (!x) return;
    space_free(x);
    for (u32 w = 0; x->queue && w < x->nqueue; w++) mem_free(x->queue[w].ring);
    if (x->sent_block) comm_release(x->comm, x->sent_block);
    mem_free(x->twin_block);
    mem_free(x->block);
    arena_free(&x->arena);
    mem_free(x);
}
