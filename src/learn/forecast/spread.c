/* spread.c - forecasts of many windows on several devices at once.
 *
 *     windows  0 ............................................. n      in rounds of ROUND
 *     dealer   | opencl:0 | cpu | opencl:0 | opencl:1 | cpu | ..      who is idle takes the next piece (deal/run.h)
 *     lane     its own engine on its device, and its own buffers (`made`); accept() copies a finished piece to `all`
 *     rows     go to the caller in order, round by round
 *
 * A lane that is left behind in a slow device ends after its batch; the end waits for it.  One that does not come back within
 * STRETTO_DEADLINE keeps the buffers of all lanes alive. */
#include <stdatomic.h>
#include <string.h>

#include "base/backoff.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/pool.h"
#include "deal/run.h"
#include "learn/forecast/runner.h"

enum { ROUND = 16384 };

/* Results of windows [first, first + ROUND), of one device or those that count. */
struct results {
    struct forecast_row *row; /* all but what the correction decides, and `base`, which follows from the place */
    f32 *base, *corr;         /* [ROUND][horizon], [ROUND][nq * horizon] */
};

struct lane {
    struct runner runner;
    struct pool *pool;
    struct results made;
    bool bound;
    i64 first;         /* window of its round */
    _Atomic bool lost; /* its device failed, was too slow, or could not be opened; the others do its work */
};

struct spread {
    struct window_set set;
    const struct events *events;
    i32 horizon, wide, n; /* wide: floats of a correction; n: devices */
    i64 first;            /* window of the round */
    struct lane *lane;    /* [n] */
    struct results all;
    struct row_out out;
    struct arena arena;
    _Atomic bool over;
    _Atomic i32 users; /* the caller, and a run that has not ended */
};

static void drop(struct spread *s) {
    if (atomic_fetch_sub(&s->users, 1) > 1) return;
    for (i32 d = 0; d < s->n; d++) {
        if (s->lane[d].bound) runner_free(&s->lane[d].runner);
        pool_free(s->lane[d].pool);
    }
    arena_free(&s->arena);
    mem_free(s);
}

static void ended(void *self) { drop(self); }

static err results_new(struct spread *s, struct results *r) {
    ARENA_NEW(&s->arena, r->row, ROUND);
    ARENA_NEW(&s->arena, r->base, (i64)ROUND * s->horizon);
    ARENA_NEW(&s->arena, r->corr, (i64)ROUND * s->wide);
    return 0;
}

static err lane_new(struct spread *s, const struct forecaster *f, const struct series *series, const struct resources *use, i32 d,
                    i32 rows) {
    struct lane *l = &s->lane[d];
    struct resources own = *use;
    TRY(pool_new(use->forward[d]->ndevice, &l->pool));
    own.machine = use->forward[d];
    own.ranks = NULL;
    own.comm = NULL;
    own.pool = l->pool;
    l->bound = true;
    TRY(runner_new(f, series, &own, rows, &l->runner));
    return results_new(s, &l->made);
}

static void tell(const struct spread *s, const char *device, const char *why) {
    event_note(s->events, EVENT_WARNING, "forecasts go on without %s: %s", device, why);
    err_clear();
}

/* A device that refuses memory or fails is left out, if another one opens. */
static err lanes_new(struct spread *s, const struct forecaster *f, const struct series *series, const struct resources *use,
                     i32 rows) {
    i32 left = 0;
    err e = 0;
    for (i32 d = 0; d < s->n; d++) {
        e = lane_new(s, f, series, use, d, rows);
        atomic_store(&s->lane[d].lost, e < 0);
        left += e >= 0;
        if (e < 0 && e != -E601 && e != -E831) return e;
        if (e < 0 && (d + 1 < s->n || left > 0)) tell(s, err_last()->where, err_last()->text);
    }
    return left > 0 ? 0 : e;
}

/* Copies rows [lo,hi) of a round. */
static void copy_results(const struct spread *s, const struct results *to, const struct results *from, i64 lo, i64 hi) {
    const size_t n = (size_t)(hi - lo);
    memcpy(to->row + lo, from->row + lo, n * sizeof *to->row);
    memcpy(to->base + lo * s->horizon, from->base + lo * s->horizon, n * (size_t)s->horizon * sizeof(f32));
    memcpy(to->corr + lo * s->wide, from->corr + lo * s->wide, n * (size_t)s->wide * sizeof(f32));
}

static void keep(struct spread *s, struct lane *l, i64 at, i32 b) {
    const struct forecast_row row = runner_row(&l->runner, b);
    l->made.row[at] = row;
    memcpy(l->made.base + at * s->horizon, row.base, (size_t)s->horizon * sizeof(f32));
    memcpy(l->made.corr + at * s->wide, l->runner.corr + (i64)b * s->wide, (size_t)s->wide * sizeof(f32));
}

static err piece(void *self, i32 device, i32 lane, const struct deal_piece *p) {
    struct spread *s = self;
    struct lane *l = &s->lane[device];
    (void)lane; /* one for each device */
    for (i64 at = p->lo; at < p->hi;) {
        i32 rows;
        if (atomic_load(&s->over) || atomic_load(&l->lost)) return -E831; /* nobody waits for it any more */
        const err e = runner_rows(&l->runner, &s->set, l->first + at, &rows);
        if (e < 0) return e == -E601 ? -E831 : e; /* its memory is there: a smaller piece would fail as well */
        for (i32 b = 0; b < rows && at < p->hi; b++, at++) keep(s, l, at, b);
    }
    return 0;
}

static err accept(void *self, i32 device, i32 lane, const struct deal_piece *p) {
    struct spread *s = self;
    (void)lane;
    copy_results(s, &s->all, &s->lane[device].made, p->lo, p->hi);
    return 0;
}

static err emit(struct spread *s, i64 n, forecast_row_fn *fn, void *self) {
    for (i64 i = 0; i < n; i++) {
        struct forecast_row row = s->all.row[i];
        row.base = s->all.base + i * s->horizon;
        TRY(row_out_emit(&s->out, row, s->all.corr + i * s->wide, fn, self));
    }
    return 0;
}

static i32 batch_of(const struct spread *s) {
    i32 rows = 1;
    for (i32 d = 0; d < s->n; d++)
        if (!atomic_load(&s->lane[d].lost)) rows = imax(rows, s->lane[d].runner.batch.B);
    return rows;
}

/* One round; *device: what was learned of them so far, for the next. */
static err round_of(struct spread *s, struct deal_device *device, i64 n) {
    const struct deal_part part = {n, 1};
    const struct deal_work work = {.nparts = 1, .part = &part, .grain = batch_of(s)};
    const struct deal_job job = {.self = s, .piece = piece, .accept = accept, .ended = ended};
    struct dealer *d;
    struct deal_ran ran;
    TRY(deal_new(device, s->n, &work, "auto", &d));
    for (i32 i = 0; i < s->n; i++) {
        if (atomic_load(&s->lane[i].lost)) deal_lost(d, i);
        else s->lane[i].first = s->first;
    }
    atomic_fetch_add(&s->users, 1);
    const err e = deal_run(d, &job, &ran);
    for (i32 i = 0; i < s->n; i++) {
        struct deal_report r;
        deal_report(d, i, &r);
        device[i] = r.as;
        if (r.status != DEAL_LOST || atomic_exchange(&s->lane[i].lost, true)) continue;
        if (e >= 0) tell(s, s->lane[i].runner.engine.forward_plan->place[0].name, "it failed, or took 20 times what it should");
    }
    deal_free(d);
    return e;
}

static err run(struct spread *s, const struct forecaster *f, const struct series *series, const struct resources *use,
               forecast_row_fn *fn, void *self) {
    const i64 n = window_origins(&s->set) * series->ntarget;
    struct deal_device *device;
    s->horizon = f->spec.horizon;
    s->wide = head_outputs(&f->spec) * f->spec.horizon;
    ARENA_NEW(&s->arena, s->lane, use->nforward);
    ARENA_NEW(&s->arena, device, use->nforward);
    s->n = use->nforward;
    TRY(lanes_new(s, f, series, use, (i32)lmin(n, RUNNER_ROWS)));
    TRY(results_new(s, &s->all));
    TRY(row_out_new(f, series, &s->arena, &s->out));
    for (s->first = 0; s->first < n; s->first += ROUND) {
        const i64 rows = lmin(ROUND, n - s->first);
        TRY(round_of(s, device, rows));
        TRY(emit(s, rows, fn, self));
    }
    return 0;
}

/* They read the forecaster and the series, which are the caller's. */
static void wait_for_lanes(const struct spread *s) {
    const f64 end = clock_now() + clock_deadline();
    for (struct backoff b = {0}; atomic_load(&s->users) > 1 && clock_now() < end;) backoff_pause(&b);
}

err spread_windows(const struct forecaster *f, const struct series *s, const struct window_set *set, const struct resources *use,
                   forecast_row_fn *fn, void *self) {
    struct spread *all;
    NEW(all, 1);
    all->set = *set;
    all->events = use->events;
    atomic_store(&all->users, 1);
    const err e = run(all, f, s, use, fn, self);
    atomic_store(&all->over, true);
    wait_for_lanes(all);
    drop(all);
    return e;
}
