/* build.c - growing arrays while a plan is under construction; exact arrays in its arena afterwards. */
#include "plan/build.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"

err build_begin(struct builder *b, const char *name, const struct machine *m, i32 ndevice) {
    struct plan *p = mem_alloc(sizeof *p);
    if (!p) return -E601;
    *b = (struct builder){.plan = p};
    snprintf(p->strategy, sizeof p->strategy, "%s", name);
    p->ndevice = ndevice;
    p->nrank = m->nrank;
    p->link_gbytes = m->link_gbytes;
    p->link_us = m->link_us;
    p->waits = (struct plan_waits){.wake = PLAN_START_S, .seen = PLAN_SYNC_S};
    ARENA_NEW(&p->arena, p->place, ndevice);
    for (i32 i = 0; i < ndevice; i++) {
        p->place[i].rank = m->device[i].rank;
        p->place[i].device = m->device[i];
        machine_device_name(m, i, p->place[i].name);
    }
    return 0;
}

err build_buffer(struct builder *b, struct pbuf buf, u32 *out) {
    struct plan *p = b->plan;
    *out = PBUF_NONE;
    if (buf.bytes <= 0) return 0;
    GROW(p->buf, p->nbuf, b->cap_buf);
    buf.repeat = imax(1, buf.repeat);
    *out = p->nbuf;
    p->buf[p->nbuf++] = buf;
    return 0;
}

err build_task(struct builder *b, struct task t) {
    struct plan *p = b->plan;
    if (p->ntask >= BUILD_TASKS) return FAIL(E401, "the plan has more than %d tasks", BUILD_TASKS);
    GROW(p->task, p->ntask, b->cap_task);
    t.use0 = p->nuse;
    t.nuse = 0;
    if (t.members == 0) t.members = 1;
    p->task[p->ntask++] = t;
    return 0;
}

err build_use(struct builder *b, struct use u) {
    struct plan *p = b->plan;
    if (u.buf == PBUF_NONE || u.hi <= u.lo) return 0;
    GROW(p->use, p->nuse, b->cap_use);
    p->use[p->nuse++] = u;
    p->task[p->ntask - 1].nuse++;
    return 0;
}

/* The heap array becomes one of the arena, one element longer, so that none is empty. */
static err settle(struct arena *a, void **array, u32 n, i64 *cap, size_t size) {
    void *exact = arena_new(a, (n + 1) * size);
    if (!exact) return -E601;
    if (n > 0) memcpy(exact, *array, n * size);
    if (*cap > 0) mem_free(*array);
    *array = exact;
    *cap = 0;
    return 0;
}

err build_end(struct builder *b) {
    struct plan *p = b->plan;
    TRY(settle(&p->arena, (void **)&p->task, p->ntask, &b->cap_task, sizeof *p->task));
    TRY(settle(&p->arena, (void **)&p->use, p->nuse, &b->cap_use, sizeof *p->use));
    TRY(settle(&p->arena, (void **)&p->buf, p->nbuf, &b->cap_buf, sizeof *p->buf));
    return plan_deps(p);
}

void build_drop(struct builder *b) {
    if (b->cap_task) mem_free(b->plan->task);
    if (b->cap_use) mem_free(b->plan->use);
    if (b->cap_buf) mem_free(b->plan->buf);
    plan_free(b->plan);
    *b = (struct builder){0};
}
