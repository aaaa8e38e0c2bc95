/* sent.c - bytes of a step's messages at most, from the micro-batches whose rows can touch a table. */
#include "step/sent.h"

#include "step/planner.h"

/* Micro-batches whose sum the vector of a message holds. */
static i32 grains_of(const struct plan *p, const struct plan_message *m) {
    const struct task *t = &p->task[m->after];
    if (t->kind != TASK_MERGE || t->node_a != p->buf[m->buf].index) return 1;
    return merge_grains(p, t, t->node_a) + merge_grains(p, t, t->node_b);
}

/* Largest size of a message in batch `part` of its step: the first vector accumulates what earlier batches have touched. */
static i64 most_of(const struct plan *p, const struct plan_message *m, i32 part) {
    const struct pbuf *b = &p->buf[m->buf];
    const i64 n = (m->hi - m->lo) / LANES, before = b->index == 0 ? (i64)part * p->ngrain : 0;
    const i32 grains = (i32)lmin(before + grains_of(p, m), INT32_MAX / p->grain);
    return lines_bytes(n, lines_sent(n, plan_touched_bytes(p, m->lo, m->hi, grains) / (LANES * 4)));
}

/* Adds a message that is sent after `parts` batches of a step. */
static void count(const struct plan *p, const struct plan_message *m, i32 parts, struct plan_sent *out) {
    const i64 floats = m->hi - m->lo, whole = plan_message_bytes(p, m);
    const i64 all = lines_bytes(floats / LANES, floats / LANES);
    i64 most = 0, now = 0;
    for (i32 k = 0; k < parts; k++) {
        if (!m->sparse)
            now = whole;
        else if (now < all)
            now = most_of(p, m, k);
        most += now;
    }
    out->messages += parts;
    out->most += most;
    out->whole += parts * whole;
    if (!m->sparse) return;
    out->lines_most += most;
    out->lines_whole += parts * whole;
}

err plan_sent(const struct plan *p, i32 parts, struct plan_sent *out) {
    struct arena a = {0};
    struct plan_message *m;
    u32 n;
    *out = (struct plan_sent){0};
    const err e = plan_exchange(p, &a, &m, &n);
    for (u32 i = 0; i < n && e >= 0; i++)
        if (m[i].when < MESSAGE_SETTLE) count(p, &m[i], m[i].when == MESSAGE_STEP ? parts : parts - 1, out);
    arena_free(&a);
    return e;
}

err plan_shares(const struct plan *p, struct arena *a, struct plan_share **out, i32 *n) {
    return plan_writers(p, netplan(p)->at.theta, a, out, n);
}
