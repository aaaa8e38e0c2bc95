/* effort.c - seconds of tasks, added up by the lane that did them. */
#include "exec/effort.h"

#include <time.h>

#include "base/clock.h"
#include "base/fault.h"
#include "exec/bound.h"

#define NAP_S 2e-4  /* shorter sleeps would be late by as much as they last: they are saved up */

err effort_begin(struct exec *x) {
    struct effort *e = &x->effort;
    if (!x->comm) return 0;
    if (e->steps == 0) {
        i32 b0, b1;
        exec_rows(x, &b0, &b1);
        e->rows = b1 - b0;
        TRY(fault_slow(comm_rank(x->comm), &e->from, &e->factor));
    }
    e->slow = e->factor > 1 && x->step->step >= e->from;
    return 0;
}

/* Sleeps until the debt is paid; what a sleep lasts too long is counted against the next ones. */
static void nap(struct lane *l, f64 more) {
    l->debt += more;
    if (l->debt < NAP_S) return;
    const f64 t0 = clock_now();
    const struct timespec t = {(time_t)l->debt, (long)((l->debt - (f64)(time_t)l->debt) * 1e9)};
    nanosleep(&t, NULL);
    l->debt -= clock_now() - t0;
}

void effort_task(const struct exec *x, struct lane *l, const struct task *t, f64 t0) {
    const bool rows = t->kind == TASK_FWD || t->kind == TASK_BWD || t->kind == TASK_DW || t->kind == TASK_ZERO;
    const f64 waited = exec_waited(x, t);
    if (x->effort.slow) nap(l, (x->effort.factor - 1) * (clock_now() - t0 - waited));
    if (rows) l->busy += clock_now() - t0 - waited;
}

/* The first steps meet cold caches and pages that nobody has touched yet. */
void effort_end(struct exec *x) {
    struct effort *e = &x->effort;
    f64 busy = 0;
    for (u32 w = 0; w < x->nlane; w++) {
        busy += x->lane[w].busy;
        x->lane[w].busy = 0;
    }
    if (e->rows == 0 || ++e->steps <= EFFORT_WARM) return;
    e->row[e->steps % EFFORT_LAST] = busy / e->rows;
}

f64 exec_row_seconds(const struct exec *x) {
    const struct effort *e = &x->effort;
    f64 v[EFFORT_LAST];
    i32 n = 0;
    if (e->steps < EFFORT_KNOWN) return 0;
    for (i32 k = 0; k < EFFORT_LAST; k++) {
        i32 at = n;
        if (e->row[k] <= 0) continue;
        for (; at > 0 && v[at - 1] > e->row[k]; at--) v[at] = v[at - 1];
        v[at] = e->row[k];
        n++;
    }
    return n > 0 ? v[n / 2] : 0;
}
