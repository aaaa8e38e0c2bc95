/* run.c - a fit through a parameter store: its engine, its legs, what checkpoints hold. */
#include "learn/store/run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/mem.h"
#include "learn/store/hogwild.h"
#include "learn/store/inside.h"

#define ELASTIC 0.9 /* beta = workers * alpha (Zhang et al. 2015) */

/* ------------------------------------------------------------------ life ---------------------------------------------------- */

static f64 server_rate(const void *self, i64 round) {
    const struct store_run *r = self;
    if (r->spec.server_lr >= 0) return r->spec.server_lr;
    if (r->gradients || (r->spec.server && strcmp(r->spec.server, "sgd") != 0))
        return train_rate(r->job, r->state, r->base + round * r->local);
    return r->now.policy->server_lr > 0 ? r->now.policy->server_lr : 1;
}

static bool wants_stop(const void *self) {
    const struct store_run *r = self;
    const struct train_job *j = r->job;
    return (j->stop && *j->stop) || (r->deadline > 0 && clock_now() > r->deadline);
}

static err server_optimiser(struct fit *t, struct store_run *r) {
    const struct forecast_spec *s = &t->f->spec;
    const struct store_policy *p = r->now.policy;
    const char *name = r->gradients ? store_engine_optim(t) : r->spec.server ? r->spec.server : p->server ? p->server : "sgd";
    r->server = optim_find(name);
    r->server_hyper = optim_hyper_of(&s->for_optim);
    if (r->gradients) return 0;
    r->server_hyper.weight_decay = 0; /* the workers' */
    if (strcmp(name, "sgd") == 0)
        r->server_hyper.momentum = p->server_momentum < 0 ? 1 - 1 / (f32)store_parts(t) : p->server_momentum;
    for (i32 k = 0; k < r->server->nstate; k++) ARENA_NEW(&r->arena, r->server_state[k], t->f->net.ntheta);
    r->owns_server_state = true;
    return 0;
}

static err open_store(struct fit *t, struct store_run *r) {
    const struct store *st = &t->step.engine.store;
    struct pstore_job job = {.comm = t->job->use.comm,
                             .store = r->now,
                             .servers = r->spec.servers,
                             .n = st->ntheta,
                             .theta = st->theta,
                             .block = netplan(t->step.engine.plan)->norm_block,
                             .border = r->border,
                             .nborder = r->nborder,
                             .gradients = r->gradients,
                             .kern = t->job->use.kern,
                             .optim = r->server,
                             .hyper = r->server_hyper,
                             .clip = t->f->spec.clip,
                             .rate = server_rate,
                             .stop = wants_stop,
                             .self = r,
                             .sticky = r->spec.by_time,
                             .heals = t->job->use.heal,
                             .codec = r->spec.codec,
                             .layout = {r->matrix, r->nmatrix}};
    for (i32 k = 0; k < r->server->nstate; k++) job.state[k] = r->owns_server_state ? r->server_state[k] : st->state[k];
    return pstore_new(&job, &r->ps);
}

/* Steps of a ticket; seconds become steps once a step was measured (choose.c). */
static i64 local_of(const struct fit *t, const struct store_run *r) {
    const struct forecast_spec *s = &t->f->spec;
    const f64 windows = (f64)t->step.batch.nwin * store_parts(t);
    if (r->spec.every == EVERY_STEPS) return (i64)r->spec.number;
    if (r->spec.every == EVERY_EPOCHS)
        return lmax(1, (i64)ceil(r->spec.number * (f64)forecast_epoch(s, t->series, t->job->split.train) / windows));
    return lmax(1, store_local_steps(&r->now));
}

/* Where each rank's private floats begin in the vector of all ranks. */
static err count_private(struct fit *t, struct store_run *r) {
    struct comm *c = t->job->use.comm;
    const i64 mine = store_private(t);
    i64 all[COMM_RANKS];
    ARENA_NEW(&r->arena, r->first, comm_size(c) + 1);
    TRY(comm_allgather(c, "private", &mine, sizeof mine, all));
    for (i32 k = 0; k < comm_size(c); k++) r->first[k + 1] = r->first[k] + all[k];
    return 0;
}

static err open_record(struct fit *t, struct store_run *r) {
    if (!t->f->store) NEW(t->f->store, 1);
    r->record = t->f->store;
    r->record->servers = r->spec.servers;
    r->record->workers = store_parts(t);
    store_spec_text(&r->spec, r->record->name);
    return 0;
}

void store_record_free(struct forecaster *f) {
    if (f->store) mem_free(f->store->kept);
    mem_free(f->store);
    f->store = NULL;
}

/* The states of the servers' optimiser from before the death of a rank, once. */
static void take_kept(const struct fit *t, struct store_run *r) {
    const i64 n = t->f->net.ntheta;
    const f32 *from = r->record->kept;
    for (i32 k = 0; from && k < r->server->nstate && r->owns_server_state; k++, from += n)
        memcpy(r->server_state[k], from, sizeof *from * (size_t)n);
    mem_free(r->record->kept);
    r->record->kept = NULL;
}

static err keep_states(const struct fit *t, struct store_run *r) {
    const i64 n = t->f->net.ntheta;
    mem_free(r->record->kept);
    r->record->kept = NULL;
    if (!r->owns_server_state) return 0;
    NEW(r->record->kept, r->server->nstate * n);
    for (i32 k = 0; k < r->server->nstate; k++) memcpy(r->record->kept + k * n, r->server_state[k], sizeof(f32) * (size_t)n);
    return 0;
}

/* auto begins with synchronous rounds of one local step. */
static struct store_choice first_choice(const struct store_run *r) {
    return r->spec.choice.policy->chooses ? (struct store_choice){store_policy_find("local"), 1} : r->spec.choice;
}

static err prepare(struct fit *t, struct store_run *r) {
    r->spec = t->job->use.store;
    TRY(open_record(t, r));
    r->now = first_choice(r);
    r->gradients = store_pushes_gradients(&r->spec);
    r->alpha = (f32)(ELASTIC / store_parts(t));
    r->local = local_of(t, r);
    TRY(fault_slow(comm_rank(t->job->use.comm), &r->slow_from, &r->slow));
    TRY(store_layout(t, r));
    TRY(carry_new(t, r));
    TRY(server_optimiser(t, r));
    take_kept(t, r);
    if (r->now.policy->own_weights) ARENA_NEW(&r->arena, r->own, t->f->net.ntheta);
    if (r->now.policy->own_weights) ARENA_NEW(&r->arena, r->force, t->f->net.ntheta);
    TRY(open_store(t, r));
    TRY(count_private(t, r));
    r->codec = !store_is_lossless(&r->spec);
    if (r->codec && !r->spec.keeps_codec) TRY(pstore_probe(t->job->use.comm, &r->byte_seconds));
    TRY(chooser_new(r, &r->chooser));
    reached_load(r); /* after the death of a rank */
    return order_open(t, r);
}

err store_prepare(struct fit *t) {
    TRY(hogwild_prepare(t));
    if (!store_used(&t->job->use)) return 0;
    NEW(t->store, 1);
    return prepare(t, t->store);
}

void store_drop(struct fit *t) {
    struct store_run *r = t->store;
    hogwild_drop(t);
    if (!r) return;
    pstore_free(r->ps);
    order_close(r->order);
    chooser_free(r->chooser);
    arena_free(&r->arena);
    mem_free(r);
    t->store = NULL;
}

err store_fresh(struct fit *t) {
    struct store_run *r = t->store;
    if (!r) return 0;
    const size_t bytes = sizeof(f32) * (size_t)t->f->net.ntheta;
    for (i32 k = 0; k < r->server->nstate && r->owns_server_state; k++) memset(r->server_state[k], 0, bytes);
    pstore_private_load(r->ps, NULL);
    TRY(pstore_pause_load(r->ps, NULL));
    r->begun = false;
    r->last_loss = 0;
    r->base = 0;
    r->now = first_choice(r);
    r->local = local_of(t, r);
    chooser_free(r->chooser);
    TRY(chooser_new(r, &r->chooser));
    reached_save(r);
    r->carry.next = -1;
    return 0;
}

/* ------------------------------------------------------------------ a leg --------------------------------------------------- */

/* Rounds up to the border, or the last one, which may be short. */
static i64 last_round(const struct store_run *r, i64 first, i64 until, i64 all) {
    const i64 steps = lmin(until, all) - r->base;
    return lmax(first + 1, until >= all ? (steps + r->local - 1) / r->local : steps / r->local);
}

static void add_up(struct store_record *r, const struct pstore_leg *leg) {
    r->pushes += leg->pushes;
    r->refused += leg->refused;
    r->sent += leg->sent;
    r->whole += leg->whole;
    r->messages += leg->messages;
    r->waited += leg->waited;
    r->worked += leg->worked;
    for (i32 k = 0; k < STALE_BINS; k++) r->stale[k] += leg->stale[k];
}

static err refusals(const struct fit *t, const struct store_run *r, const struct pstore_leg *leg, i64 step) {
    if (leg->refused == 0) return 0;
    if (r->spec.stops || leg->refused == leg->pushes)
        return FAIL_AT(E501, NULL, "--lr with a tenth of the value\n--on-nan skip   (goes on without such pushes)",
                       "a push of rank %d is not finite between steps %lld and %lld (%lld of %lld pushes)", leg->refused_rank,
                       (long long)r->state->step, (long long)step, (long long)leg->refused, (long long)leg->pushes);
    event_note(t->job->use.events, EVENT_WARNING,
               "%lld of %lld pushes were not finite between steps %lld and %lld and were refused; the first came from rank %d",
               (long long)leg->refused, (long long)leg->pushes, (long long)r->state->step, (long long)step, leg->refused_rank);
    return 0;
}

static struct order_place place_of(const struct fit *t) {
    return (struct order_place){t->at.member, t->at.refitting, t->store->state->step};
}

/* What the record says of the leg, where there is one to replay. */
static err replayed(struct fit *t, struct store_run *r, i64 *last, const struct pstore_record **replay) {
    struct order_leg as;
    const struct order_place at = place_of(t);
    *replay = NULL;
    *last = 0;
    if (!r->order || !order_replays(r->order)) return 0;
    TRY(order_find(r->order, &at, &as, replay));
    *last = as.last;
    r->local = as.local;
    chooser_replay(r->chooser, r, as.stale);
    TRY(order_fits(&as, store_staleness(&r->now)));
    if (!as.codec && r->codec) pstore_drop_codec(r->ps);
    r->codec = as.codec;
    return 0;
}

static err run_leg(struct fit *t, struct store_run *r, i64 first, i64 last, const struct pstore_record *replay,
                   struct pstore_leg *leg) {
    struct pstore_record record = {0};
    const bool records = r->order && !replay;
    pstore_set_policy(r->ps, &r->now); /* --store auto changes it */
    TRY(pstore_begin(r->ps, first, last, replay));
    err e = pstore_worker(r->ps) >= 0 ? store_work(t, r) : 0;
    if (e >= 0) e = pstore_end(r->ps, leg, records ? &record : NULL);
    const struct order_leg as = {leg->end, r->local, r->codec, store_staleness(&r->now)};
    const struct order_place at = place_of(t);
    if (e >= 0 && records) e = order_add(r->order, &at, &as, &record);
    if (e >= 0 && t->job->use.heal) e = pstore_share_state(r->ps);
    if (e < 0) pstore_stop(r->ps);
    pstore_record_free(&record);
    return e;
}

/* Servers that serve no more; between legs every rank has the states of the servers' optimiser. */
err store_lost(struct fit *t, const struct comm_loss *loss) {
    struct store_run *r = t->store;
    i32 died = 0;
    if (!r) return 0;
    for (i32 i = 0; i < loss->n; i++) died += loss->rank[i] < r->spec.servers;
    t->own.use.store.servers -= died;
    return keep_states(t, r);
}

/* What is left of the leg that a death has ended. */
err store_salvage(struct fit *t, const struct comm_loss *loss) {
    struct store_run *r = t->store;
    i64 round, lost;
    if (!r || !r->in_leg) return 0;
    TRY(pstore_salvage(r->ps, loss, &round, &lost));
    TRY(keep_states(t, r));
    t->at.state.step = lmax(t->at.state.step, lmin(r->base + round * r->local, t->at.state.end));
    t->at.state.place = PLACE_BORDER;
    if (lost > 0)
        event_note(t->job->use.events, EVENT_WARNING,
                   "%lld of %d shards of the weights had their server on it: they go on as a worker pulled them last",
                   (long long)lost, pstore_shards(r->ps, &(const struct store_shard *){NULL}));
    return 0;
}

/* After the first leg: seconds that a codec took against those that its bytes would have.  All ranks see the same numbers. */
static void judge_codec(struct fit *t, struct store_run *r, const struct pstore_leg *leg) {
    const f64 saved = (f64)(leg->whole - leg->sent) * r->byte_seconds;
    if (r->byte_seconds <= 0 || leg->coding <= 0 || (r->order && order_replays(r->order))) return;
    if (leg->coding > saved) {
        pstore_drop_codec(r->ps);
        r->codec = false;
        event_note(t->job->use.events, EVENT_NOTE,
                   "codec %s took %.3g s and saved %.3g s at %.3g GB/s between ranks: it is switched off (--keep-codec keeps it)",
                   r->spec.codec.codec->name, leg->coding, saved, 1e-9 / r->byte_seconds);
    }
    r->byte_seconds = 0;
    r->judged = true;
}

/* Each rank has its own clock, and all must choose alike. */
static err slowest(const struct fit *t, f64 mine, f64 *seconds) {
    struct comm *c = t->job->use.comm;
    f64 all[COMM_RANKS];
    TRY(comm_allgather(c, "seconds", &mine, sizeof mine, all));
    *seconds = 0;
    for (i32 k = 0; k < comm_size(c); k++) *seconds = dmax(*seconds, all[k]);
    return 0;
}

err store_leg(void *fit, struct train_state *s, i64 until) {
    struct fit *t = fit;
    struct store_run *r = t->store;
    struct pstore_leg leg = {0};
    const struct pstore_record *replay;
    i64 last;
    r->state = s;
    until = chooser_until(r->chooser, s->step, until);
    TRY(replayed(t, r, &last, &replay));
    if ((s->step - r->base) % r->local) r->base = s->step;
    const i64 all = s->end, first = (s->step - r->base) / r->local;
    const f64 t0 = clock_now();
    r->in_leg = true;
    TRY(run_leg(t, r, first, replay ? last : last_round(r, first, until, all), replay, &leg));
    r->in_leg = false;
    const i64 step = lmin(all, r->base + leg.end * r->local), rounds = leg.end - first;
    const f64 mean = leg.loss / (f64)lmax(1, r->gradients && store_staleness(&r->now) == 0 ? rounds : leg.pushes - leg.refused);
    r->member = t->at.member;
    add_up(r->record, &leg);
    TRY(refusals(t, r, &leg, step));
    judge_codec(t, r, &leg);
    s->loss_sum += mean * (f64)rounds;
    s->loss_count += rounds;
    struct leg_facts facts = {.step = step,
                              .steps = step - s->step,
                              .seconds = clock_now() - t0,
                              .waited = leg.waited,
                              .worked = leg.worked,
                              .fastest = leg.fastest,
                              .slowest = leg.slowest,
                              .round = leg.round,
                              .dealt = leg.dealt,
                              .loss = mean,
                              .workers = store_parts(t)};
    s->step = step;
    if (r->chooser) TRY(slowest(t, facts.seconds, &facts.seconds));
    if (r->chooser && !replay && rounds > 0) chooser_see(r->chooser, r, &facts, t->job->use.events);
    reached_save(r);
    return 0;
}

void store_begin_run(struct fit *t, const struct train_job *j) {
    struct store_run *r = t->store;
    hogwild_begin_run(t, j);
    if (!r) return;
    r->job = j;
    r->deadline = j->time_limit > 0 ? clock_now() + j->time_limit : 0;
}

/* ------------------------------------------------------------------ afterwards ---------------------------------------------- */

err store_report(struct fit *t) {
    const struct store_record *r = t->store ? t->store->record : NULL;
    hogwild_report(t);
    if (!r || r->pushes == 0) return 0;
    f64 stale = 0;
    for (i32 k = 0; k < STALE_BINS; k++) stale += (f64)(k * r->stale[k]);
    event_note(t->job->use.events, EVENT_NOTE,
               "store %s: %lld pushes, mean staleness %.2f updates, %.2f MB sent (%.1f times fewer than f32), workers waited "
               "%.0f%% of the time",
               r->name, (long long)r->pushes, stale / (f64)r->pushes, (f64)r->sent / 1e6, (f64)r->whole / (f64)lmax(1, r->sent),
               100 * r->waited / dmax(1e-9, r->waited + r->worked));
    return 0;
}

/* ------------------------------------------------------------------ checkpoints --------------------------------------------- */

i32 store_owned(const struct fit *t, const struct store_shard **out) {
    return t->store && t->store->gradients ? pstore_shards(t->store->ps, out) : 0;
}

bool store_is_local(const struct fit *t) { return t->store && !t->store->gradients; }

static i64 server_floats(const struct store_run *r, i64 n) { return r->owns_server_state ? r->server->nstate * n : 0; }

/* Floats of the worker's optimiser, which each rank has for itself. */
static i64 worker_floats(const struct fit *t) {
    return t->store->gradients ? 0 : t->step.engine.store.optim->nstate * t->step.engine.store.ntheta;
}

const i64 *store_private_first(const struct fit *t) { return t->store ? t->store->first : NULL; }

struct store_reached *store_reached(const struct fit *t) {
    return t->store ? &t->store->record->reached : NULL;
}

void store_go_on(struct fit *t) {
    if (t->store) reached_load(t->store);
}

i64 store_pause_floats(const struct fit *t) { return t->store ? pstore_pause_floats(t->store->ps) : 0; }
const f32 *store_paused(const struct fit *t) { return t->store ? pstore_paused(t->store->ps) : NULL; }
err store_pause_load(struct fit *t, const f32 *from) { return t->store ? pstore_pause_load(t->store->ps, from) : 0; }

i64 store_pause_key(const struct fit *t) {
    char text[160];
    const i64 size[] = {t->f->net.ntheta, store_pause_floats(t), store_parts(t), comm_size(t->job->use.comm)};
    store_spec_text(&t->store->spec, text);
    return (i64)comm_hash(comm_hash(COMM_HASH, size, sizeof size), text, strlen(text));
}

i64 store_private(const struct fit *t) {
    const struct store_run *r = t->store;
    const i64 n = t->f->net.ntheta;
    return r ? pstore_private(r->ps) + server_floats(r, n) + worker_floats(t) + (r->own ? n + LANES : 0) +
                   (r->carry.floats > 0 ? r->carry.floats + LANES : 0)
             : 0;
}

/* All parts in one order, to or from a vector. */
static void copy_private(const struct fit *t, f32 *v, bool save) {
    struct store_run *r = t->store;
    const i64 n = t->f->net.ntheta;
    const size_t bytes = sizeof(f32) * (size_t)n;
    const struct store *st = &t->step.engine.store;
    for (i32 k = 0; k < r->server->nstate && r->owns_server_state; k++, v += n)
        memcpy(save ? v : r->server_state[k], save ? r->server_state[k] : v, bytes);
    for (i32 k = 0; k < st->optim->nstate && !r->gradients; k++, v += n)
        memcpy(save ? v : st->state[k], save ? st->state[k] : v, bytes);
    if (r->own) {
        memcpy(save ? v : r->own, save ? r->own : v, bytes);
        if (save)
            v[n] = r->begun;
        else
            r->begun = v[n] > 0;
        v += n + LANES;
    }
    if (r->carry.floats > 0) {
        const size_t states = sizeof *v * (size_t)r->carry.floats;
        memcpy(save ? v : r->carry.state, save ? r->carry.state : v, states);
        memcpy(save ? (void *)(v + r->carry.floats) : &r->carry.next, save ? (void *)&r->carry.next : v + r->carry.floats,
               sizeof(i64));
        v += r->carry.floats + LANES;
    }
    if (save)
        pstore_private_save(r->ps, v);
    else
        pstore_private_load(r->ps, v);
}

void store_private_save(const struct fit *t, f32 *to) {
    if (store_private(t) > 0) copy_private(t, to, true);
}

void store_private_load(struct fit *t, const f32 *from) {
    if (store_private(t) > 0) copy_private(t, (f32 *)(uintptr_t)from, false);
}
