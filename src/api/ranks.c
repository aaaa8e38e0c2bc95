/* ranks.c - training on several ranks: every rank has the data, options and weights, and computes its share of each step.
 *
 *     mpirun -n 4 stretto train ..     4 processes: each runs the whole program, rank 0 prints and writes
 *     stretto train .. --ranks 4       4 threads: one process, only the fit runs on each thread */
#include "api/ranks.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/rank_cores.h"
#include "api/shares.h"
#include "base/clock.h"
#include "base/mem.h"

/* Disables --heal, with a reason, where one death ends all ranks: ranks as threads of one process, and most launchers. */
static err may_heal(struct run_context *w) {
    const err e = w->comm ? comm_allow_recovery(w->comm) : FAIL(E803, "ranks are threads of one process here");
    w->use.heal = e >= 0;
    if (e >= 0 || err_last()->code != E803) return e;
    snprintf(w->no_heal, sizeof w->no_heal, "%.500s", err_last()->text);
    err_clear();
    return 0;
}

err ranks_join(const struct options *o, struct comm **comm) {
    if (o->ranks == 1 && o->meta[OPT_ranks].rank >= OPT_RANK_FLAG) return 0; /* the flag --ranks 1 ignores the launcher */
    TRY(comm_mpi(comm));
    const i32 size = comm_size(*comm);
    /* Only the flag must match: config.json of a resumed run may hold another number of ranks. */
    if (*comm && o->meta[OPT_ranks].rank >= OPT_RANK_FLAG && o->ranks != size)
        return FAIL_AT(E803, "--ranks", "the same number twice, or no --ranks",
                       "--ranks %lld, and the launcher started %d", (long long)o->ranks, size);
    return *comm ? comm_connect(*comm) : 0;
}

err ranks_recover(const struct options *o, struct run_context *w) { return o->heal ? may_heal(w) : 0; }

/* Number of ranks on this host: from the launcher's variables, otherwise counted. */
static i32 neighbours(const struct run_context *w) {
    static const char *const names[] = {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "SLURM_NTASKS_PER_NODE"};
    i32 here = 0;
    for (size_t i = 0; i < COUNT(names) && here == 0; i++) here = getenv(names[i]) ? (i32)strtol(getenv(names[i]), NULL, 10) : 0;
    return here > 0 ? here : comm_local_size(w->comm);
}

/* Cores available to each rank: all cores that the launcher has bound it to, otherwise an equal share of the host. */
static i32 cores_left(const struct options *o, const struct run_context *w, i32 cores) {
    if (!w->comm) return imax(1, cores / (i32)o->ranks);
    return cores < (i32)sysconf(_SC_NPROCESSORS_ONLN) ? cores : imax(1, cores / neighbours(w));
}

err ranks_threads(const struct options *o, struct run_context *w, i32 *threads) {
    i32 all[COMM_RANKS], mine;
    *threads = opt_is_auto(o, OPT_threads) ? 0 : (i32)o->threads;
    if (!w->comm && o->ranks <= 1) return 0;
    if (*threads == 0) {
        TRY(machine_host(0, w->machine));
        *threads = cores_left(o, w, w->machine->ndevice);
    }
    mine = *threads;
    TRY(comm_allgather(w->comm, "threads", &mine, sizeof mine, all));
    for (i32 k = 0; k < comm_size(w->comm); k++) *threads = imin(*threads, all[k]);
    return 0;
}

/* All ranks: with the devices of this one, or each with those that are its turn. */
static err machine_of_ranks(const struct run_context *w, i32 size) {
    if (w->devices.n == 0) return machine_ranks(w->machine, size, w->ranks);
    machine_copy(w->ranks, w->machine);
    w->ranks->ndevice = 0;
    for (i32 k = 0; k < size; k++) devices_add(&w->devices, k, w->host, w->ranks);
    return 0;
}

/* share: NULL = all alike. */
static err machine_for(struct run_context *w, i32 size, const f64 *share) {
    if (size <= 1) return 0;
    NEW(w->ranks, 1);
    TRY(machine_of_ranks(w, size));
    if (share) machine_set_shares(w->ranks, share);
    TRY(comm_broadcast(w->comm, "machine", w->ranks, (i64)machine_bytes(w->ranks)));
    return machine_trim(&w->ranks);
}

err ranks_machine(const struct options *o, struct run_context *w) {
    const i32 size = w->comm ? comm_size(w->comm) : imax((i32)o->ranks, w->devices.n);
    f64 share[COMM_RANKS];
    bool even;
    TRY(shares_of_ranks(o, w->comm, size, share, &even, &w->shares_from));
    return machine_for(w, size, even ? NULL : share);
}

err ranks_machine_left(struct run_context *w) { return machine_for(w, imax(1, w->devices.n), NULL); }

/* ------------------------------------------------------------------ before the first step ----------------------------------- */

/* Hashes names and values only: origins may be measurements, which differ between ranks. */
static err options_hash(const struct options *o, u64 *h) {
    struct str text = {0};
    opt_dump_json(o, 1u << VERB_train, &text);
    *h = comm_hash(COMM_HASH, str_text(&text), text.len);
    err e = str_ok(&text);
    str_free(&text);
    return e;
}

static err same_everywhere(const struct stretto_trainer *t, struct comm *c) {
    const u64 version = comm_hash(COMM_HASH, STRETTO_VERSION, sizeof STRETTO_VERSION);
    const char *kern = t->ctx.use.kern->name;
    u64 options;
    TRY(options_hash(&t->o, &options));
    TRY(comm_check_equal(c, "version", version, "the same program on every host"));
    TRY(comm_check_equal(c, "kernels", comm_hash(COMM_HASH, kern, strlen(kern)), "--kernel NAME of what every host has: avx2"));
    TRY(comm_check_equal(c, "options", options, "the same command and the same config file on every host"));
    TRY(comm_check_equal(c, "plan", comm_hash(COMM_HASH, str_text(&t->plan_text), t->plan_text.len), "the same --plan file"));
    return comm_check_equal(c, "data", t->data->set->kind->hash(t->data->set), "the same data file on every host");
}

/* ------------------------------------------------------------------ ranks as threads ---------------------------------------- */

struct rank_run {
    const struct learner *learner;
    struct learn_job job;
    struct model *m;
    struct machine *machine; /* its own, where ranks have unlike devices; NULL = that of all */
    struct rank_cores cores;
    struct status status;
    struct events events;
    err e;
    struct err_record why;
    pthread_t thread;
    bool started;
};

static err live(struct rank_run *r) {
    TRY(comm_connect(r->job.use.comm));
    return learner_fit(r->learner, &r->job, &r->m);
}

static void *on_a_thread(void *self) {
    struct rank_run *r = self;
    if (r->cores.has) cores_stay(&r->cores.share); /* binds the threads of the pool, too */
    err e = pool_new(r->job.use.machine->ndevice, &r->job.use.pool);
    if (e >= 0) e = live(r);
    if (e < 0) {
        r->why = *err_last();
        status_failed(&r->status, e);
        comm_abort(r->job.use.comm);
    }
    pool_free(r->job.use.pool);
    status_end(&r->status, e == STOP_SIGNAL ? "stopped" : "done", e == STOP_SIGNAL ? err_exit_status(-E802) : 0);
    r->e = e;
    return NULL;
}

/* Ranks > 0 print nothing, write only their status record and do no autotuning. */
static void silence(struct learn_job *job, const struct events *events) {
    job->use.events = events;
    job->use.wisdom = NULL;
    job->use.trace = false;
    job->use.nforward = 0; /* rank 0 forecasts */
}

/* For E801 and for deadlines: the last status record of a rank as text; returns its time, 0 = none. */
static f64 last_record(void *run_dir, i32 rank, char *text, size_t size) {
    struct status_record r;
    if (!run_dir || !status_read(run_dir, rank, &r)) return 0;
    snprintf(text, size, "last seen in phase %s at step %lld of %lld, %.0f s ago", r.phase, (long long)r.step, (long long)r.steps,
             dmax(0, clock_wall() - r.time));
    return r.time;
}

static err start(struct rank_run *r, i32 k, struct comm **comm, const struct learner *learner, const struct learn_job *job,
                 bool apart) {
    *r = (struct rank_run){.learner = learner, .job = *job};
    r->job.use.comm = comm[k];
    if (apart) TRY(devices_of_rank(job->use.ranks, k, job->use.machine, &r->machine));
    if (r->machine) r->job.use.machine = r->machine;
    comm_set_hint(comm[k], last_record, (void *)(uintptr_t)job->run_dir);
    comm_set_record_folder(comm[k], job->run_dir);
    if (!apart) rank_cores_of_thread(k, comm_size(comm[k]), job->use.machine->ndevice, &r->cores);
    if (k == 0) {
        if (job->use.events) r->events = *job->use.events;
        events_add(&r->events, comm_sink(comm[k]));
        r->job.use.events = &r->events;
        return 0;
    }
    if (job->run_dir && comm_watch_requested()) status_open(&r->status, job->run_dir, k, comm_size(comm[k]));
    events_add(&r->events, status_sink(&r->status));
    events_add(&r->events, comm_sink(comm[k]));
    silence(&r->job, &r->events);
    r->started = pthread_create(&r->thread, NULL, on_a_thread, r) == 0;
    return r->started ? 0 : FAIL(E601, "no thread could be made for rank %d", k);
}

/* apart: ranks have unlike devices. */
static err threads_fit(i32 size, const struct learner *learner, const struct learn_job *job, bool apart, struct model **out) {
    struct comm *comm[COMM_RANKS];
    struct rank_run *r;
    NEW(r, size);
    err e = comm_threads(size, comm);
    for (i32 k = 0; k < size && e >= 0; k++) e = start(&r[k], k, comm, learner, job, apart);
    rank_cores_go(&r[0].cores, job->use.pool); /* bind after creating threads: they inherit the affinity of their creator */
    if (e >= 0) e = live(&r[0]);
    rank_cores_leave(&r[0].cores, job->use.pool);
    if (e < 0) comm_abort(comm[0]);
    for (i32 k = 1; k < size; k++) {
        if (r[k].started) pthread_join(r[k].thread, NULL);
        model_free(r[k].m);
        mem_free(r[k].machine);
        if (r[k].e < 0 && (e >= 0 || (e == -E801 && r[k].e != -E801))) { /* E801 alone follows from what another rank has */
            err_put(&r[k].why);
            e = r[k].e;
        }
    }
    for (i32 k = 0; k < size; k++) comm_free(comm[k]);
    mem_free(r[0].machine);
    if (e < 0) model_free(r[0].m);
    *out = e < 0 ? NULL : r[0].m;
    mem_free(r);
    return e;
}

/* Warns if there are more threads than cores. A launcher that binds ranks has chosen their cores. */
static void note_crowd(const struct stretto_trainer *t, i32 size) {
    const struct run_context *w = &t->ctx;
    const i32 here = w->comm ? neighbours(w) : size, cores = w->machine->ncore, threads = here * w->machine->ndevice;
    if (w->devices.n > 1) return; /* ranks of other devices need little of a core */
    if (here < 2 || threads <= cores || (w->comm && cores < (i32)sysconf(_SC_NPROCESSORS_ONLN))) return;
    event_note(&t->events, EVENT_WARNING, "%d ranks with %d threads in all share %d core%s: a step takes up to %.1f times as "
               "long as with a core for each (%s %d is enough here)", here, threads, cores, cores == 1 ? "" : "s",
               (f64)threads / cores, here > cores ? "--ranks" : "--threads", here > cores ? cores : cores / here);
}

/* Reports unequal shares of the rows and their source. */
static void note_shares(const struct stretto_trainer *t) {
    struct str s = {0};
    for (i32 d = 0; d < t->ctx.ranks->ndevice; d++) {
        const struct device *at = &t->ctx.ranks->device[d];
        if (d == 0 || at->rank != at[-1].rank) str_addf(&s, "%s%.3g", d ? ", " : "", at->share);
    }
    const char *from = str_text(&t->ctx.shares_from);
    if (*from) event_note(&t->events, EVENT_NOTE, "shares of the ranks: %s (%s)", str_text(&s), from);
    str_free(&s);
}

/* After recovery: takes the new rank number. From now on the new rank 0 prints and writes for all ranks. */
static void healed(void *trainer, const struct comm_loss *loss) {
    struct stretto_trainer *t = trainer;
    struct comm *c = t->ctx.comm;
    bool first = false;
    for (i32 k = 0; k < loss->n; k++) first = first || loss->rank[k] == 0;
    run_dir_renumber(t, first && comm_rank(c) == 0);
}

err ranks_fit(struct stretto_trainer *t, const struct learner *learner, const struct learn_job *job, struct model **out) {
    const i32 size = t->ctx.ranks ? t->ctx.ranks->nrank : 1;
    struct learn_job mine = *job;
    if (size == 1) return learner_fit(learner, job, out);
    if (learner->ranks) TRY(learner->ranks(job, size));
    if (t->ctx.devices.n > 1)
        event_note(&t->events, EVENT_NOTE, "%d ranks (%s), one for each of the devices %s", size,
                   t->ctx.comm ? comm_transport(t->ctx.comm) : "threads", t->o.device);
    else
        event_note(&t->events, EVENT_NOTE, "%d ranks (%s) of %d thread%s", size,
                   t->ctx.comm ? comm_transport(t->ctx.comm) : "threads", t->ctx.machine->ndevice,
                   t->ctx.machine->ndevice > 1 ? "s" : "");
    note_crowd(t, size);
    note_shares(t);
    if (t->ctx.no_heal[0]) event_note(&t->events, EVENT_NOTE, "--heal has no effect: %s", t->ctx.no_heal);
    mine.use.ranks = t->ctx.ranks;
    mine.use.comm = t->ctx.comm;
    mine.owner = t;
    if (!t->ctx.comm) return threads_fit(size, learner, &mine, t->ctx.devices.n > 1, out);
    struct rank_cores cores;
    TRY(rank_cores_of_process(t->ctx.comm, t->ctx.machine->ndevice, &cores));
    comm_set_hint(t->ctx.comm, last_record, t->run_dir);
    comm_set_record_folder(t->ctx.comm, t->run_dir);
    events_add(&t->events, comm_sink(t->ctx.comm));
    err e = same_everywhere(t, t->ctx.comm);
    mine.healed = healed;
    if (comm_rank(t->ctx.comm) > 0) silence(&mine, &t->events); /* ranks > 0 only write their status record */
    rank_cores_go(&cores, mine.use.pool);
    if (e >= 0) e = learner_fit(learner, &mine, out);
    rank_cores_leave(&cores, mine.use.pool);
    if (e < 0) comm_abort(t->ctx.comm);
    else comm_succeed(t->ctx.comm);
    t->unfinished = e == 0;
    return e;
}

err ranks_share_fit(const struct run_context *w, const struct learner *learner, const struct learn_job *job, struct model **out) {
    const i32 size = w->ranks ? w->ranks->nrank : 1;
    struct learn_job mine = *job;
    if (size == 1) return learner_fit(learner, job, out);
    if (learner->ranks) TRY(learner->ranks(job, size));
    mine.use.ranks = w->ranks;
    mine.use.comm = w->comm;
    if (!w->comm) return threads_fit(size, learner, &mine, false, out);
    err e = comm_check_equal(w->comm, "data", job->data->kind->hash(job->data), "the same data file on every host");
    if (e >= 0) e = learner_fit(learner, &mine, out);
    if (e < 0) comm_abort(w->comm);
    else comm_succeed(w->comm);
    return e;
}

err ranks_finish(struct stretto_trainer *t) {
    struct comm *c = t->ctx.comm;
    struct comm_loss loss;
    i32 written = 1;
    while (t->unfinished) {
        const i32 was = comm_rank(c);
        const err e = was == 0 ? comm_broadcast(c, "written", &written, sizeof written) :
                                 comm_broadcast_slow(c, "written", &written, sizeof written);
        t->unfinished = e < 0 && comm_died(c);
        if (!t->unfinished && was == 0) comm_end_stopped(c);
        if (!t->unfinished) return e;
        TRY(comm_recover(c, &loss));
        healed(t, &loss);
        const err left = t->learner->left ? t->learner->left(c) : 0;
        if (left < 0 && !comm_died(c)) return left; /* another death: the next broadcast fails and recovers again */
        event_note(&t->events, EVENT_WARNING, "rank %d (host %s, pid %d) died after the training", loss.rank[0], loss.who.host,
                   loss.who.pid);
        if (was > 0 && comm_rank(c) == 0) return 0;
    }
    return 0;
}
