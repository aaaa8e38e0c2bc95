/* load.c - measures the seconds of row tasks per queue, and slows a process down for tests. */
#include "exec/load.h"


#include "base/clock.h"
#include "base/fault.h"
#include "exec/bound.h"

#define NAP_S 2e-4 /* shorter sleeps would take twice as long: they are accumulated */

err load_begin(struct exec *x) {
    struct load *e = &x->load;
    if (!x->comm) return 0;
    if (e->steps == 0) {
        i32 b0, b1;
        exec_rows(x, &b0, &b1);
        e->rows = b1 - b0;
        TRY(fault_slow(comm_rank(x->comm), &e->from, &e->factor));
    }
    e->slow = e->factor > 1 && x->number >= e->from;
    return 0;
}

/* Sleeps until the debt is paid; time that a sleep takes too long is credited. */
static void nap(struct queue *q, f64 more) {
    q->debt += more;
    if (q->debt < NAP_S) return;
    const f64 t0 = clock_now();
    clock_sleep(q->debt);
    q->debt -= clock_now() - t0;
}

void load_task(const struct exec *x, struct queue *q, const struct task *t, f64 t0) {
    const struct client *c = &x->client;
    const f64 waited = c->waited ? c->waited(c->self, t) : 0;
    if (x->load.slow) nap(q, (x->load.factor - 1) * (clock_now() - t0 - waited));
    if (c->kernel[t->kind].rows && !x->space) q->busy += clock_now() - t0 - waited;
}

/* Ignores the first steps: cold caches and untouched pages. */
void load_end(struct exec *x) {
    struct load *e = &x->load;
    f64 busy = 0;
    for (u32 w = 0; w < x->nqueue; w++) {
        busy += x->queue[w].busy;
        x->queue[w].busy = 0;
    }
    if (e->rows == 0 || ++e->steps <= LOAD_WARM) return;
    e->row[e->steps % LOAD_LAST] = busy / e->rows;
}

f64 exec_row_seconds(const struct exec *x) {
    const struct load *e = &x->load;
    f64 v[LOAD_LAST];
    i32 n = 0;
    if (e->steps < LOAD_KNOWN) return 0;
    for (i32 k = 0; k < LOAD_LAST; k++) {
        i32 at = n;
        if (e->row[k] <= 0) continue;
        for (; at > 0 && v[at - 1] > e->row[k]; at--) v[at] = v[at - 1];
        v[at] = e->row[k];
        n++;
    }
    return n > 0 ? v[n / 2] : 0;
}
