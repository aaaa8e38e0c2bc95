/* hogwild.c - see hogwild.h: the workers, their tickets, and a leg of them. */
#include "learn/store/hogwild.h"

#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "learn/store/account.h"
#include "store/shared.h"

/* Padded: a worker counts on cache lines of its own. */
struct hogwild_worker {
    _Alignas(64) struct hogwild *h;
    struct engine own;      /* of workers 1..; worker 0 has that of the fit */
    struct batcher batches; /* likewise */
    struct step *exec;
    struct batcher *batch;
    struct pool *pool;    /* of one thread: the worker's own */
    i64 updates, refused; /* of the leg, as is what follows */
    f64 stale, loss, seconds;
    i64 bin[STALE_BINS]; /* updates by staleness */
    err e;
    struct err_record why;
};

struct hogwild {
    const struct train_job *job; /* of the training under way */
    const struct train_state *state;
    f64 deadline;           /* clock at which --time-limit ends the leg; 0 = never */
    bool stops;             /* at a gradient that is not finite */
    struct machine machine; /* of one device */
    i32 n;
    struct hogwild_worker *worker; /* [n] */
    struct shared *shared;
    i64 last;                      /* ticket that ends the leg */
    _Alignas(64) _Atomic i64 next; /* ticket */
    _Atomic bool ends;             /* a worker failed: nobody takes another ticket */
    struct store_record *record;   /* of the forecaster, for the report */
    /* account of the training */
    _Alignas(64) i64 updates, refused;
    f64 stale;
};

/* ------------------------------------------------------------------ life ---------------------------------------------------- */

static bool is_shared(const struct resources *use) { return use->store.choice.policy && use->store.choice.policy->shared; }

i32 hogwild_workers(const struct resources *use) {
    return is_shared(use) && comm_size(use->comm) == 1 ? pool_size(use->pool) : 1;
}

bool hogwild_used(const struct resources *use) { return hogwild_workers(use) > 1; }

static err refuse(const struct fit *t) {
    const struct resources *use = &t->job->use;
    if (comm_size(use->comm) > 1)
        return FAIL_AT(E401, "--store", "--store asp   or   one rank with --threads N",
                       "the threads of one process share a vector, this run has %d ranks", comm_size(use->comm));
    if (t->f->spec.cut.slices > 1)
        return FAIL_AT(E401, "--store", "--parallel serial   or   --store sync",
                       "%d time slices of a sequence train together, threads of hogwild each by themselves",
                       t->f->spec.cut.slices);
    return 0;
}

err hogwild_split(struct fit *t, struct resources *use) {
    struct hogwild *h;
    if (!is_shared(use) || (comm_size(use->comm) == 1 && !hogwild_used(use))) return 0;
    TRY(refuse(t));
    NEW(h, 1);
    t->hogwild = h;
    h->n = hogwild_workers(use);
    h->stops = use->store.stops;
    machine_copy(&h->machine, use->machine);
    h->machine.ndevice = 1;
    NEW(h->worker, h->n);
    for (i32 w = 0; w < h->n; w++) TRY(pool_new(1, &h->worker[w].pool));
    use->machine = &h->machine;
    use->pool = h->worker[0].pool;
    use->parallel = "auto";
    use->policy = NULL;
    return 0;
}

static err new_worker(struct fit *t, struct hogwild_worker *w) {
    struct resources use = t->job->use;
    use.machine = &w->h->machine;
    use.pool = w->pool;
    use.parallel = "auto";
    use.policy = NULL;
    use.steps = 0; /* worker 0 has measured kernels */
    use.trace = false;
    TRY(engine_share(&t->step.engine, &use, &w->own));
    TRY(batcher_new(t->f, t->step.net, &t->f->shape, t->series, use.kern, t->step.engine.B, 1, &w->batches));
    w->exec = w->own.exec;
    w->batch = &w->batches;
    return 0;
}

static err new_shared(struct fit *t, struct hogwild *h) {
    const struct store *st = &t->step.engine.store;
    const struct plan *p = t->step.engine.plan;
    struct shared_table table[NET_OPS];
    for (i32 k = 0; k < p->ntable; k++) table[k] = (struct shared_table){p->table[k].lo, p->table[k].hi};
    return shared_new(&(struct shared_job){.n = st->ntheta,
                                           .theta = st->theta,
                                           .state = {st->state[0], st->state[1]},
                                           .optim = st->optim,
                                           .workers = h->n,
                                           .stripes = (i32)t->job->use.store.choice.value,
                                           .table = table,
                                           .ntable = p->ntable},
                      &h->shared);
}

err hogwild_prepare(struct fit *t) {
    struct hogwild *h = t->hogwild;
    if (!h) return 0;
    if (!t->f->store) NEW(t->f->store, 1);
    h->record = t->f->store;
    h->record->shared = true;
    h->record->workers = h->n;
    store_spec_text(&t->job->use.store, h->record->name);
    for (i32 w = 0; w < h->n; w++) h->worker[w].h = h;
    h->worker[0].exec = t->step.engine.exec;
    h->worker[0].batch = &t->step.batch;
    for (i32 w = 1; w < h->n; w++) TRY(new_worker(t, &h->worker[w]));
    return new_shared(t, h);
}

void hogwild_drop(struct fit *t) {
    struct hogwild *h = t->hogwild;
    if (!h) return;
    for (i32 w = 0; w < h->n && h->worker; w++) {
        engine_free(&h->worker[w].own);
        batcher_free(&h->worker[w].batches);
        pool_free(h->worker[w].pool);
    }
    shared_free(h->shared);
    mem_free(h->worker);
    mem_free(h);
    t->hogwild = NULL;
}

i64 hogwild_bytes(const struct fit *t) {
    const struct store *st = &t->step.engine.store;
    const i64 common = (1 + st->optim->nstate) * st->ntheta * (i64)sizeof(f32);
    i64 sum = 0;
    for (i32 w = 1; t->hogwild && w < t->hogwild->n; w++)
        sum += step_bytes(t->hogwild->worker[w].exec) - common + t->hogwild->worker[w].batches.arena.used;
    return sum;
}

/* ------------------------------------------------------------------ a worker ------------------------------------------------ */

static bool stop_wanted(const struct hogwild *h) {
    return (h->job->stop && *h->job->stop) || (h->deadline > 0 && clock_now() > h->deadline);
}

/* The next ticket; false = the leg is over for this worker.  A stop ends it between two batches: all tickets of a batch that was
 * begun are taken. */
static bool take(struct hogwild *h, i64 *ticket) {
    i64 c = atomic_load(&h->next);
    do {
        if (c >= h->last || atomic_load(&h->ends)) return false;
        if (c % h->n == 0 && stop_wanted(h)) return false;
    } while (!atomic_compare_exchange_weak(&h->next, &c, c + 1));
    *ticket = c;
    return true;
}

/* A push is the share 1 / W of a batch, so its step is that share of the learning rate (store/apply.c). */
static err update(struct hogwild_worker *w, i64 step, i64 seen, const struct exec_result *r) {
    const struct train_job *j = w->h->job;
    struct shared_push p = {.grad = step_grad(w->exec), .mark = step_marks(w->exec), .hyper = j->hyper};
    TRY(step_failed(w->exec));
    p.hyper.lr = (f32)(train_rate(j, w->h->state, step) / w->h->n);
    p.hyper.grad_scale = (f32)optim_clip(j->clip, r->norm);
    const i64 late = shared_update(w->h->shared, (i32)(w - w->h->worker), &p) - seen;
    w->stale += (f64)late;
    w->bin[lmax(0, lmin(STALE_BINS - 1, late))]++;
    w->loss += r->loss;
    w->updates++;
    return 0;
}

static err one_ticket(struct hogwild_worker *w, i64 ticket) {
    struct hogwild *h = w->h;
    const struct batch_slot *slot = &w->batch->slot[0];
    const f64 t0 = clock_now();
    struct exec_result r;
    training_fill(w->batch, ticket, 0);
    TRY(batcher_failed(w->batch));
    const i64 seen = shared_count(h->shared);
    const struct step_args a = {.input = slot->input,
                                .loss_scale = slot->present > 0 ? 1.f / (f32)slot->present : 0.f,
                                .seed = (u64)h->job->seed,
                                .step = (u32)ticket,
                                .hyper = h->job->hyper,
                                .clip = h->job->clip,
                                .hold = true};
    TRY(step_run(w->exec, &a, &r));
    if (r.finite)
        TRY(update(w, ticket / h->n, seen, &r));
    else
        w->refused++;
    w->seconds += clock_now() - t0;
    if (!r.finite && h->stops) atomic_store(&h->ends, true);
    return 0;
}

static void work(void *hogwild, i32 worker) {
    struct hogwild *h = hogwild;
    struct hogwild_worker *w = &h->worker[worker];
    i64 ticket;
    while (w->e >= 0 && take(h, &ticket)) w->e = one_ticket(w, ticket);
    if (w->e >= 0) return;
    w->why = *err_last();
    atomic_store(&h->ends, true);
}

/* ------------------------------------------------------------------ a leg --------------------------------------------------- */

void hogwild_begin_run(struct fit *t, const struct train_job *j) {
    if (!t->hogwild) return;
    t->hogwild->job = j;
    t->hogwild->deadline = j->time_limit > 0 ? clock_now() + j->time_limit : 0;
}

/* What a member, or the refit, has of its own: its order of batches. */
static void begin_worker(const struct fit *t, struct hogwild_worker *w) {
    const struct batcher *from = &t->step.batch;
    w->updates = w->refused = 0;
    w->stale = w->loss = w->seconds = 0;
    memset(w->bin, 0, sizeof w->bin);
    w->e = 0;
    if (w->batch == from) return;
    w->batch->set = from->set;
    w->batch->scored = from->scored;
    w->batch->seed = from->seed;
    w->batch->nwin = from->nwin;
    w->batch->ready = from->ready;
    w->batch->nready = from->nready;
}

struct leg {
    i64 updates, refused;
    i32 by; /* the first worker with a gradient that was refused */
    f64 loss, seconds;
};

static err add_up(struct hogwild *h, struct leg *sum) {
    *sum = (struct leg){.by = -1};
    for (i32 k = 0; k < h->n; k++) {
        const struct hogwild_worker *w = &h->worker[k];
        if (w->e < 0) err_put(&w->why);
        TRY(w->e);
        if (w->refused > 0 && sum->by < 0) sum->by = k;
        sum->updates += w->updates;
        sum->refused += w->refused;
        sum->loss += w->loss;
        sum->seconds += w->seconds;
        h->stale += w->stale;
        for (i32 b = 0; b < STALE_BINS; b++) h->record->stale[b] += w->bin[b];
    }
    h->record->pushes += sum->updates;
    h->record->refused += sum->refused;
    h->updates += sum->updates;
    h->refused += sum->refused;
    return 0;
}

static err refusals(const struct fit *t, const struct leg *sum, i64 from, i64 to) {
    const i64 all = sum->updates + sum->refused;
    if (sum->refused == 0) return 0;
    if (t->hogwild->stops || sum->updates == 0)
        return FAIL_AT(E501, NULL, "--lr with a tenth of the value\n--on-nan skip   (goes on without such gradients)",
                       "a gradient of thread %d is not finite between steps %lld and %lld (%lld of %lld gradients)", sum->by,
                       (long long)from, (long long)to, (long long)sum->refused, (long long)all);
    event_note(t->job->use.events, EVENT_WARNING,
               "%lld of %lld gradients were not finite between steps %lld and %lld and were refused; the first was that of "
               "thread %d",
               (long long)sum->refused, (long long)all, (long long)from, (long long)to, sum->by);
    return 0;
}

err hogwild_leg(void *fit, struct train_state *s, i64 until) {
    struct fit *t = fit;
    struct hogwild *h = t->hogwild;
    const i64 from = s->step;
    struct leg sum;
    h->state = s;
    h->last = until * h->n;
    atomic_store(&h->next, from * h->n);
    atomic_store(&h->ends, false);
    shared_restart(h->shared, from * h->n);
    for (i32 w = 0; w < h->n; w++) begin_worker(t, &h->worker[w]);
    pool_run(t->job->use.pool, work, h);
    TRY(add_up(h, &sum));
    const i64 step = (atomic_load(&h->next) + h->n - 1) / h->n;
    TRY(refusals(t, &sum, from, step));
    s->loss_sum += sum.loss / (f64)lmax(1, sum.updates) * (f64)(step - from);
    s->loss_count += step - from;
    s->step_seconds += sum.seconds;
    s->step_count += sum.updates + sum.refused;
    s->step = step;
    return 0;
}

void hogwild_report(const struct fit *t) {
    const struct hogwild *h = t->hogwild;
    char name[160];
    if (!h || h->updates == 0) return;
    store_spec_text(&t->job->use.store, name);
    event_note(t->job->use.events, EVENT_NOTE,
               "store %s: %lld updates by %d threads, mean staleness %.2f updates, %lld gradients refused", name,
               (long long)h->updates, h->n, h->stale / (f64)h->updates, (long long)h->refused);
}
