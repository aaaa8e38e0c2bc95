/* balance.c - moves one micro-batch at a time from the device that ends last to the one that would then end first. */
#include "step/balance.h"

#include <string.h>

bool plan_grains(const struct plan *p, i32 *grains) {
    bool others = false;
    memset(grains, 0, (size_t)p->ndevice * sizeof *grains);
    if (!netplan(p)->train) return false;
    for (u32 i = 0; i < p->ntask; i++) { /* one task per piece */
        const struct task *t = &p->task[i];
        if (task_zeroes_part(p, t)) return false; /* a stage of a pipeline: its rows are those of the others */
        if (t->kind == TASK_ZERO) grains[t->device] += ceil_div(t->box.b1, p->grain) - t->box.b0 / p->grain;
    }
    for (i32 d = 0; d < p->ndevice; d++) {
        if (grains[d] == 0) return false;
        others = others || p->place[d].rank != p->place[0].rank;
    }
    return others;
}

static u32 next_update(const struct plan *p, u32 from) {
    while (from < p->ntask && p->task[from].kind != TASK_UPDATE) from++;
    return from;
}

bool plan_same_updates(const struct plan *a, const struct plan *b) {
    u32 i = next_update(a, 0), k = next_update(b, 0);
    while (i < a->ntask && k < b->ntask) {
        const struct task *t = &a->task[i], *u = &b->task[k];
        if (t->lo != u->lo || t->hi != u->hi || a->place[t->device].rank != b->place[u->device].rank) return false;
        i = next_update(a, i + 1);
        k = next_update(b, k + 1);
    }
    return i == a->ntask && k == b->ntask;
}

static i32 last_to_end(i32 n, const i32 *grains, const f64 *seconds) {
    i32 last = 0;
    for (i32 i = 1; i < n; i++)
        if (grains[i] * seconds[i] > grains[last] * seconds[last]) last = i;
    return last;
}

f64 balance_end(i32 n, const i32 *grains, const f64 *seconds) {
    const i32 last = last_to_end(n, grains, seconds);
    return grains[last] * seconds[last];
}

/* If several devices end last together, the end gets earlier only after a move for each of them, so such a move counts. */
static bool move_one(i32 n, i32 *grains, const f64 *seconds) {
    const i32 from = last_to_end(n, grains, seconds);
    i32 to = from;
    f64 best = grains[from] * seconds[from];
    for (i32 i = 0; i < n; i++) {
        const f64 end = (grains[i] + 1) * seconds[i];
        if (i == from || end >= best) continue;
        to = i;
        best = end;
    }
    if (to == from || grains[from] < 2) return false;
    grains[from]--;
    grains[to]++;
    return true;
}

i32 balance_move(i32 n, i32 *grains, const f64 *seconds, i32 most, f64 worth) {
    i32 best[MACHINE_DEVICES], moved = 0;
    memcpy(best, grains, (size_t)n * sizeof *best);
    while (move_one(n, best, seconds)) {
    }
    const f64 end = balance_end(n, grains, seconds);
    if (balance_end(n, best, seconds) >= (1 - worth) * end) return 0;
    while ((moved < most || balance_end(n, grains, seconds) >= end) && move_one(n, grains, seconds)) moved++;
    return moved;
}

f64 balance_reached(i32 n, const i32 *grains, const f64 *seconds) {
    f64 speed = 0;
    i32 all = 0;
    for (i32 i = 0; i < n; i++) {
        speed += 1 / seconds[i];
        all += grains[i];
    }
    return all / speed / balance_end(n, grains, seconds);
}
