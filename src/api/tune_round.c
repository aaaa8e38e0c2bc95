/* tune_round.c - the fits of a round on the threads of every rank; the schedule runs on all ranks alike.
 *
 *     search_next --> tasks --task i to rank i % ranks--> threads take the next one --> results of all ranks --> search_next
 *
 * A fit has one thread: fits do not wait for each other, while the threads of one fit wait in every step. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "api/tune.h"
#include "base/clock.h"

enum { WORKERS_MOST = 256 };
#define POLL_S 0.02   /* between two looks at the clock and the stop flag */
#define SHOW_S 0.2    /* between two reports of progress */
#define WAIT_S 86400. /* ranks wait for the fits of others */
#define SLOW 0.2      /* share of --time-limit that one fit may take */

volatile int tune_stop;

/* ------------------------------------------------------------------ workers ------------------------------------------------- */

/* Every step of a fit, and long work several times a second, comes here on the thread of the fit. */
static void look_up(void *self, const struct event *e) {
    struct tune_worker *w = self;
    (void)e;
    if (atomic_load(&w->end)) w->stop = 1;
}

err tune_open_workers(struct tune *t) {
    const i32 cores = t->ctx.devices.n > 0 || t->ctx.use.nforward > 0 ? 1 : t->ctx.machine->ndevice;
    TRY(opt_copy(&t->alone, &t->o));
    err e = cores > 1 || t->ctx.machine->ndevice == 1 ? opt_set_id(&t->alone, OPT_threads, "1", &OPT_API) : 0;
    if (e >= 0) e = mem_new((void **)&t->worker, imin(cores, WORKERS_MOST), sizeof *t->worker);
    for (; e >= 0 && t->nworker < imin(cores, WORKERS_MOST); t->nworker++) {
        struct tune_worker *w = &t->worker[t->nworker];
        w->t = t;
        events_add(&w->events, (struct sink){look_up, w});
        e = run_context_open(&t->alone, NULL, &w->stop, false, &w->ctx);
    }
    return e;
}

void tune_close_workers(struct tune *t) {
    for (i32 i = 0; i < t->nworker; i++) run_context_close(&t->worker[i].ctx);
    mem_free(t->worker);
    t->worker = NULL;
    t->nworker = 0;
    opt_free(&t->alone);
}

/* ------------------------------------------------------------------ threads ------------------------------------------------- */

/* What the threads of a round share. */
struct round {
    struct tune *t;
    _Atomic i32 next, left;  /* the next task; threads that have not ended */
    _Atomic i32 finished;    /* tasks, for the display */
    pthread_mutex_t lock;    /* of the record and of `e` */
    err e;
    struct err_record why;
};

struct hand {
    struct round *r;
    struct tune_worker *w;
    pthread_t thread;
};

static void keep_result(struct round *r, struct tune_task *task) {
    struct tune *t = r->t;
    pthread_mutex_lock(&r->lock);
    err e = 0;
    if (!tune_silent(t)) e = record_add(&t->record, &t->search, &task->line, tune_elapsed(t, clock_now()));
    if (e < 0 && r->e >= 0) {
        r->e = e;
        r->why = *err_last();
    }
    pthread_mutex_unlock(&r->lock);
}

/* A failure before leaves the later fits of a trial without a use. */
static bool is_wanted(const struct tune *t, const struct tune_task *task) {
    const i32 i = (i32)(task - t->task);
    if (task->done || i % comm_size(t->ctx.comm) != comm_rank(t->ctx.comm)) return false;
    return !t->search.trial[task->trial].failed;
}

/* One fit.  False: it was stopped.  A slow one ends as a failure, so that the search goes on with others; the defaults may take
 * their time, for without them nothing can be compared. */
static bool fit_task(struct tune *t, struct tune_worker *w, struct tune_task *task) {
    task->line = (struct record_line){.trial = task->trial};
    if (task->trial > 0) atomic_store(&w->since, clock_now());
    const err e = tune_fit(t, w, &t->search.trial[task->trial].at, task->fit, &task->line);
    atomic_store(&w->since, 0);
    if (!atomic_exchange(&w->slow, false)) return e == 0;
    w->stop = 0;
    atomic_store(&w->end, 0);
    task->line.failed = e != 0;
    if (e != 0) snprintf(task->line.why, sizeof task->line.why, "a fit took more than %.0f %% of --time-limit", 100 * SLOW);
    return true;
}

static void *work(void *self) {
    const struct hand *h = self;
    struct round *r = h->r;
    struct tune *t = r->t;
    for (i32 i; !atomic_load(&h->w->end) && (i = atomic_fetch_add(&r->next, 1)) < t->ntask;) {
        struct tune_task *task = &t->task[i];
        if (!is_wanted(t, task)) continue;
        if (!fit_task(t, h->w, task)) break;
        keep_result(r, task);
        task->done = true;
        atomic_fetch_add(&r->finished, 1);
    }
    atomic_fetch_sub(&r->left, 1);
    return NULL;
}

/* ------------------------------------------------------------------ display ------------------------------------------------- */

static void show(struct tune *t, const struct round *r, f64 now) {
    char text[160];
    const f64 spent = tune_elapsed(t, now);
    struct search_choice c;
    search_choose(&t->search, &c);
    i32 n = snprintf(text, sizeof text, "tuning: %d trial%s", t->search.n, t->search.n == 1 ? "" : "s");
    if (t->search.most > 0) n = snprintf(text, sizeof text, "tuning: trial %d of %d", t->search.n, t->search.most);
    if (c.best > 0)
        snprintf(text + n, sizeof text - (size_t)n, ", best %+.1f %% error%s", -100 * c.gain, c.trial ? "" : " (may be chance)");
    const f64 share = t->limit > 0 ? spent / t->limit
                                   : (t->search.n - 1 + (f64)r->finished / imax(1, t->ntask)) / imax(1, t->search.most);
    event_emit(&t->events, &(struct event){.kind = EVENT_WORK, .text = text, .step = (i64)(1000 * dmin(0.999, share)),
                                           .steps = 1000, .seconds = spent, .left = t->limit > 0 ? dmax(0, t->limit - spent) : -1,
                                           .train = (f64)NAN, .valid = (f64)NAN});
}

static void end_slow(struct tune *t, f64 now) {
    for (i32 i = 0; i < t->nworker && t->limit > 0; i++) {
        struct tune_worker *w = &t->worker[i];
        const f64 since = atomic_load(&w->since);
        if (since <= 0 || now - since < SLOW * t->limit || atomic_exchange(&w->slow, true)) continue;
        atomic_store(&w->end, 1);
    }
}

static void watch(struct tune *t, struct round *r) {
    f64 shown = 0;
    while (atomic_load(&r->left) > 0) {
        const f64 now = clock_now();
        t->stopped = t->stopped || tune_stop;
        t->timed_out = t->timed_out || (t->limit > 0 && tune_elapsed(t, now) > t->limit);
        for (i32 i = 0; i < t->nworker && (t->stopped || t->timed_out || r->e < 0); i++)
            atomic_store(&t->worker[i].end, 1);
        end_slow(t, now);
        if (now - shown > SHOW_S) show(t, r, shown = now);
        clock_sleep(POLL_S);
    }
}

static err run_tasks(struct tune *t) {
    struct round r = {.t = t};
    struct hand hand[WORKERS_MOST];
    i32 n = 0;
    pthread_mutex_init(&r.lock, NULL);
    for (; n < t->nworker; n++) {
        hand[n] = (struct hand){.r = &r, .w = &t->worker[n]};
        atomic_fetch_add(&r.left, 1);
        if (pthread_create(&hand[n].thread, NULL, work, &hand[n]) == 0) continue;
        atomic_fetch_sub(&r.left, 1);
        break;
    }
    if (n > 0) watch(t, &r);
    for (i32 i = 0; i < n; i++) pthread_join(hand[i].thread, NULL);
    pthread_mutex_destroy(&r.lock);
    if (n == 0) return FAIL(E601, "no thread could be made for a trial");
    if (r.e < 0) err_put(&r.why);
    return r.e;
}

/* ------------------------------------------------------------------ ranks --------------------------------------------------- */

/* All ranks get the results of all; rank 0 records those of the others. */
static err exchange(struct tune *t) {
    struct comm *c = t->ctx.comm;
    const i32 size = comm_size(c), me = comm_rank(c);
    u8 end = t->stopped || t->timed_out, ends[COMM_RANKS];
    if (size == 1) return 0;
    TRY(comm_allgather(c, "end", &end, sizeof end, ends));
    for (i32 k = 0; k < size; k++) t->timed_out = t->timed_out || ends[k];
    for (i32 i = 0; i < t->ntask; i++) {
        struct tune_task *task = &t->task[i];
        if (task->known) continue;
        TRY(comm_broadcast_from(c, i % size, "trial", task, sizeof *task));
        if (task->done && me == 0 && i % size != 0)
            TRY(record_add(&t->record, &t->search, &task->line, tune_elapsed(t, clock_now())));
    }
    return 0;
}

/* ------------------------------------------------------------------ rounds -------------------------------------------------- */

static err add_task(struct tune *t, i32 trial, i32 fit) {
    GROW(t->task, t->ntask, t->cap_task);
    struct tune_task *task = &t->task[t->ntask++];
    const struct record_line *l = record_find(&t->record, trial, fit);
    *task = (struct tune_task){.trial = trial, .fit = fit, .done = l != NULL, .known = l != NULL};
    if (!l) return 0;
    task->line = *l;
    if (point_equal(&t->search.space, &l->at, &t->search.trial[trial].at)) return 0;
    return FAIL_AT(E705, NULL, "-o OTHER   or   remove trials.jsonl, which begins anew",
                   "trial %d of the record has other options than this search would try", trial);
}

/* The results are in the order of the tasks, independent of which thread or rank fitted them. */
static void take_results(struct tune *t) {
    for (i32 i = 0; i < t->ntask; i++) {
        const struct tune_task *task = &t->task[i];
        struct trial *trial = &t->search.trial[task->trial];
        if (!task->done || trial->failed || task->fit != trial->done) continue;
        trial->seconds += task->line.seconds;
        trial->failed = task->line.failed;
        snprintf(trial->why, sizeof trial->why, "%s", task->line.why);
        if (trial->failed) continue;
        memcpy(trial->error[task->fit], task->line.error, sizeof task->line.error);
        trial->done++;
    }
}

/* Without the defaults there is nothing to compare with. */
static err need_usual(const struct tune *t) {
    const struct trial *usual = &t->search.trial[0];
    if (!usual->failed) return 0;
    return FAIL(E301, "the defaults themselves cannot be trained on a part of these data: %s", usual->why);
}

static err one_round(struct tune *t, const struct search_job *job, i32 n) {
    t->ntask = 0;
    for (i32 k = 0; k < n; k++)
        for (i32 fit = t->search.trial[job[k].trial].done; fit < t->search.ladder.end[job[k].level]; fit++)
            TRY(add_task(t, job[k].trial, fit));
    TRY(run_tasks(t));
    TRY(exchange(t));
    take_results(t);
    return need_usual(t);
}

err tune_run(struct tune *t) {
    struct search_job job[SEARCH_JOBS];
    i32 n = 1;
    err e = 0;
    comm_set_deadline(t->ctx.comm, WAIT_S);
    while (e >= 0 && n > 0 && !t->stopped && !t->timed_out) {
        e = search_next(&t->search, t->width, job, &n);
        if (e >= 0 && n > 0) e = one_round(t, job, n);
    }
    search_choose(&t->search, &t->choice);
    return e;
}
