/* store.c - a parameter store: made, legs begun and ended; what the worker thread does. */
#include "store/store.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "store/inside.h"

/* ------------------------------------------------------------------ life ---------------------------------------------------- */

static i64 messages_most(const struct pstore *s) {
    i32 most = 0;
    for (i32 k = 0; k < s->at.nserver; k++) most = imax(most, s->at.nchunk[k]);
    const i32 states = s->job.heals ? s->job.optim->nstate : 0;
    return (2 + states) * most + 32; /* a push, weights and state on one stream, and small messages */
}

static bool keeps_pulled(const struct pstore *s) {
    const struct store_policy *p = s->job.store.policy;
    return !s->job.gradients || p->own_weights || p->chooses;
}

static err make(struct pstore *s) {
    const struct pstore_job *j = &s->job;
    TRY(layout_make(s));
    TRY(server_new(s));
    TRY(tickets_new(s));
    ARENA_NEW(&s->arena, s->desk.got_of, s->at.nserver);
    ARENA_NEW(&s->arena, s->packets, s->at.packets);
    ARENA_NEW(&s->arena, s->packet_bytes, s->chunks);
    ARENA_NEW(&s->arena, s->packet_at, s->chunks);
    ARENA_NEW(&s->arena, s->norm_packet, 8 * layout_blocks(s));
    ARENA_NEW(&s->arena, s->change, CHUNK_FLOATS);
    ARENA_NEW(&s->arena, s->push_change, CHUNK_FLOATS);
    ARENA_NEW(&s->arena, s->scratch, s->at.scratch);
    ARENA_NEW(&s->arena, s->scratch2, s->at.scratch);
    if (pstore_worker(s) >= 0) ARENA_NEW(&s->arena, s->state, s->at.states);
    if (keeps_pulled(s)) ARENA_NEW(&s->arena, s->pulled, j->n);
    const struct post_handler h = {service_place, service_handle, s};
    s->lends = pack_plain(s) && comm_direct(j->comm);
    return post_new(j->comm, s->at.most, (i32)messages_most(s), &h, &s->post);
}

err pstore_new(const struct pstore_job *job, struct pstore **out) {
    struct pstore *s;
    *out = NULL;
    NEW(s, 1);
    s->job = *job;
    pthread_mutex_init(&s->turn, NULL);
    s->corrects = job->gradients && job->codec.codec && strcmp(job->codec.codec->name, "topk") == 0 &&
                  strcmp(job->optim->name, "sgd") == 0 && job->hyper.momentum > 0;
    s->momentum = job->hyper.momentum;
    s->pauses = is_synchronous(s);
    if (s->corrects) s->job.hyper.momentum = 0;
    const err e = make(s);
    if (e < 0)
        pstore_free(s);
    else
        *out = s;
    return e;
}

void pstore_stop(struct pstore *s) {
    if (!s || !s->running) return;
    atomic_store(&s->desk.quit, true);
    wakeup_signal(&s->desk.service);
    comm_wake(s->job.comm);
    pthread_join(s->thread, NULL);
    s->running = false;
}

void pstore_free(struct pstore *s) {
    if (!s) return;
    pstore_stop(s);
    post_free(s->post);
    mem_free(s->server.done);
    mem_free(s->server.event);
    mem_free(s->tickets.owner);
    mem_free(s->pause);
    arena_free(&s->arena);
    mem_free(s);
}

/* Seconds for a byte from rank to rank: the fastest of a few broadcasts. */
err pstore_probe(struct comm *c, f64 *seconds) {
    enum { BYTES = 1 << 20, TIMES = 4 };
    char *data;
    f64 best = 1e9, all[COMM_RANKS];
    NEW(data, BYTES);
    err e = 0;
    for (i32 k = 0; k < TIMES && e >= 0; k++) {
        const u8 here = 1;
        u8 ready[COMM_RANKS];
        e = comm_allgather(c, "probe", &here, 1, ready);
        const f64 t0 = clock_now();
        if (e >= 0) e = comm_broadcast(c, "probe", data, BYTES);
        best = dmin(best, clock_now() - t0);
    }
    mem_free(data);
    if (e >= 0) e = comm_allgather(c, "probe", &best, sizeof best, all);
    *seconds = 0;
    for (i32 k = 0; k < comm_size(c) && e >= 0; k++) *seconds = dmax(*seconds, all[k] / BYTES / (comm_size(c) - 1));
    return e;
}

void pstore_set_policy(struct pstore *s, const struct store_choice *c) { s->job.store = *c; }

void pstore_drop_codec(struct pstore *s) {
    s->job.codec.codec = NULL;
    s->job.hyper.momentum = s->momentum;
    s->corrects = false;
    s->paused = false;
    s->lends = comm_direct(s->job.comm);
}

i32 pstore_worker(const struct pstore *s) { return worker_of(s, comm_rank(s->job.comm)); }
f32 *pstore_pulled(struct pstore *s) { return s->pulled; }
i32 pstore_shards(const struct pstore *s, const struct store_shard **out) {
    *out = s->at.shard;
    return s->at.nserver;
}

/* ------------------------------------------------------------------ legs ---------------------------------------------------- */

/* The record must be of this run's ranks, rounds and pieces: servers and workers wait for each of its events. */
static err check_replay(const struct pstore *s) {
    const struct pstore_record *r = s->replay;
    if (!r) return 0;
    if (r->nserver != s->at.nserver || r->parts != s->at.nworker)
        return FAIL_AT(E106, "--replay", "the number of ranks and servers of the recorded run",
                       "the record is of %d servers and %d workers, this run has %d and %d", r->nserver, r->parts, s->at.nserver,
                       s->at.nworker);
    if (r->tickets != leg_tickets(s))
        return FAIL_AT(E106, "--replay", "the options and the data of the recorded run",
                       "a leg of the record has %lld tickets, this run's has %lld", (long long)r->tickets,
                       (long long)leg_tickets(s));
    for (i32 k = 0; k < r->nserver; k++) {
        const i64 events = is_synchronous(s) ? 0 : r->tickets * (s->at.nunit[k] + 1);
        if (r->count[k] != events)
            return FAIL_AT(E106, "--replay", "the options and the data of the recorded run",
                           "server %d of the record has %lld events, this run's has %lld", k, (long long)r->count[k],
                           (long long)events);
    }
    return 0;
}

static err begin(struct pstore *s) {
    struct ps_desk *d = &s->desk;
    TRY(check_replay(s));
    TRY(server_begin(s));
    TRY(tickets_begin(s));
    if (s->pulled) memcpy(s->pulled, s->job.theta, sizeof(f32) * (size_t)s->job.n);
    pause_begin(s);
    post_open(s->post);
    s->before = post_counted(s->post);
    s->whole = 0;
    s->leaving = s->closing = s->told = false;
    s->waited = s->worked = s->coding[0] = s->coding[1] = 0;
    s->since = 0;
    s->taken = 0;
    s->edges = 0;
    atomic_store(&d->asked, 0);
    atomic_store(&d->ready, 0);
    atomic_store(&d->held, 0);
    atomic_store(&d->failed, false);
    atomic_store(&d->quit, false);
    atomic_store(&d->drives, false);
    d->asks = false;
    atomic_store(&d->waits, pstore_worker(s) < 0);
    d->over = false;
    d->next = false;
    return 0;
}

err pstore_begin(struct pstore *s, i64 first, i64 last, const struct pstore_record *replay) {
    s->first = first;
    s->last = last;
    s->replay = replay;
    TRY(begin(s));
    service_begin(s);
    if (pthread_create(&s->thread, NULL, service_main, s) != 0)
        return FAIL(E601, "no thread could be made for the parameter store");
    s->running = true;
    return 0;
}

/* ------------------------------------------------------------------ the worker ---------------------------------------------- */

static err failure(struct pstore *s) {
    wakeup_signal(&s->desk.service);
    pthread_join(s->thread, NULL);
    s->running = false;
    err_put(&s->why);
    return s->result;
}

/* A worker that asks for a ticket waits next, and moves the messages itself where no agent is needed. */
static void ask(struct pstore *s, u32 what) {
    atomic_fetch_or(&s->desk.asked, what);
    if (what & DESK_NEXT && comm_direct(s->job.comm)) return;
    wakeup_signal(&s->desk.service);
    comm_wake(s->job.comm);
}

/* Until *word is `want`; false: the service has failed. */
static bool await(struct pstore *s, _Atomic u32 *word, u32 want) {
    struct ps_desk *d = &s->desk;
    if (atomic_load(word) == want) return true;
    const f64 t0 = clock_now();
    const bool drives = comm_direct(s->job.comm);
    atomic_store(&d->waits, true);
    atomic_store(&d->drives, drives);
    if (drives)
        service_drive(s, word, want);
    else
        wakeup_signal(&d->service);
    while (atomic_load(word) != want && !atomic_load(&d->failed)) {
        const u32 seen = wakeup_prepare(&d->changed);
        if (atomic_load(word) != want && !atomic_load(&d->failed)) wakeup_wait(&d->changed, seen, 0.5);
        wakeup_finish(&d->changed);
    }
    atomic_store(&d->waits, false);
    atomic_store(&d->drives, false);
    /* The service thread of a rank without a shard sleeps until the worker asks. */
    if (!drives || s->server.me >= 0) wakeup_signal(&d->service);
    s->waited += clock_now() - t0;
    return atomic_load(word) == want;
}

err pstore_take(struct pstore *s, struct pstore_ticket *t) {
    struct ps_desk *d = &s->desk;
    const f64 now = clock_now(), before = s->waited;
    if (s->since > 0) s->worked += now - s->since;
    if (!d->next) ask(s, DESK_NEXT);
    d->next = false;
    if (!await(s, &d->ready, 1)) return failure(s);
    atomic_store(&d->ready, 0);
    s->since = clock_now();
    *t = d->ticket;
    if (s->taken == 0 || d->over) s->edges += s->waited - before;
    s->taken += !d->over;
    return d->over ? 0 : 1;
}

/* The push of the ticket before must have left the packets. */
err pstore_give(struct pstore *s, const struct pstore_ticket *t, const struct pstore_push *p) {
    struct ps_desk *d = &s->desk;
    if (!await(s, &d->held, 0)) return failure(s);
    s->round = t->round;
    for (i32 k = 0; k < s->at.nserver; k++)
        for (i32 i = 0; i < s->at.nchunk[k]; i++) {
            const struct ps_chunk *c = &s->at.chunk[k][i];
            const i64 at = s->at.chunk0[k] + i;
            s->packet_bytes[at] = p->refused ? 0 : pack_push(s, c, p->v, &s->packet_at[at]);
        }
    d->number = t->number;
    d->loss = p->loss;
    d->refused = p->refused;
    atomic_store(&d->held, 1);
    d->next = !p->more;
    ask(s, p->more ? DESK_PUSH : DESK_PUSH | DESK_NEXT);
    return 0;
}

/* ------------------------------------------------------------------ the end of a leg ---------------------------------------- */

/* What each rank adds to the account of a leg. */
struct share {
    i64 sent, whole, messages, events, taken;
    f64 waited, worked, coding, between; /* between: waits from ticket to ticket */
};

/* Seconds of a ticket that workers would take without rounds. The least wait between two tickets is that for messages. */
static void measure_workers(const struct pstore *s, const struct share *all, struct pstore_leg *leg) {
    f64 message = INFINITY, rate = 0, each[COMM_RANKS];
    leg->fastest = INFINITY;
    for (i32 k = s->at.worker0; k < s->at.worker0 + s->at.nworker; k++) {
        each[k] = all[k].between / (f64)lmax(1, all[k].taken - 1);
        if (all[k].taken > 1) message = dmin(message, each[k]); /* one ticket has no wait behind it */
    }
    for (i32 k = s->at.worker0; k < s->at.worker0 + s->at.nworker; k++) {
        if (all[k].taken == 0) continue;
        const f64 ticket = all[k].worked / (f64)all[k].taken;
        leg->fastest = dmin(leg->fastest, ticket);
        leg->slowest = dmax(leg->slowest, ticket);
        leg->round += (ticket + each[k]) / s->at.nworker;
        rate += 1 / dmax(1e-9, ticket + (isinf(message) ? each[k] : message));
    }
    leg->dealt = rate > 0 ? s->at.nworker / rate : 0;
    if (rate <= 0) leg->fastest = 0;
}

static err account(struct pstore *s, struct pstore_leg *out, i64 *events) {
    struct comm *c = s->job.comm;
    const struct post_count now = post_counted(s->post);
    const struct share mine = {now.sent - s->before.sent,  s->whole,  now.messages - s->before.messages,
                               s->server.nevent,           s->taken,  s->waited,
                               s->worked,                  s->coding[0] + s->coding[1],  s->waited - s->edges};
    struct share all[COMM_RANKS];
    struct pstore_leg leg = {.end = s->tickets.last,
                             .pushes = s->server.pushes,
                             .refused = s->server.refused,
                             .refused_rank = s->server.refused_rank,
                             .loss = s->server.loss};
    memcpy(leg.stale, s->server.stale, sizeof leg.stale);
    TRY(comm_allgather(c, "leg", &mine, sizeof mine, all));
    /* rank 0 deals the tickets and serves shard 0 */
    TRY(comm_broadcast(c, "leg", &leg, sizeof leg));
    for (i32 k = 0; k < comm_size(c); k++) {
        leg.sent += all[k].sent;
        leg.whole += all[k].whole;
        leg.messages += all[k].messages;
        leg.waited += all[k].waited;
        leg.worked += all[k].worked;
        leg.coding += all[k].coding;
        if (k >= s->at.server0 && k < s->at.server0 + s->at.nserver) events[k - s->at.server0] = all[k].events;
    }
    measure_workers(s, all, &leg);
    *out = leg;
    return 0;
}

static err fill_record(struct pstore *s, i64 end, const i64 *events, struct pstore_record *r) {
    struct comm *c = s->job.comm;
    *r = (struct pstore_record){.nserver = s->at.nserver, .parts = s->at.nworker, .tickets = (end - s->first) * s->at.nworker};
    for (i32 k = 0; k < s->at.nserver; k++) r->events = lmax(r->events, events[k]);
    NEW(r->owner, r->tickets);
    NEW(r->event, r->events * r->nserver);
    NEW(r->count, r->nserver);
    memcpy(r->count, events, sizeof(i64) * (size_t)r->nserver);
    if (comm_rank(c) == 0) memcpy(r->owner, s->tickets.owner, sizeof *r->owner * (size_t)r->tickets);
    TRY(comm_broadcast(c, "owners", r->owner, (u32)((i64)sizeof *r->owner * r->tickets)));
    for (i32 k = 0; k < r->nserver && r->events > 0; k++) {
        u32 *to = r->event + k * r->events;
        if (k == s->server.me) memcpy(to, s->server.event, sizeof *to * (size_t)s->server.nevent);
        TRY(comm_broadcast_from(c, server_rank(s, k), "order", to, (u32)((i64)sizeof *to * r->events)));
    }
    return 0;
}

err pstore_end(struct pstore *s, struct pstore_leg *out, struct pstore_record *record) {
    i64 *events;
    if (record) *record = (struct pstore_record){0};
    wakeup_signal(&s->desk.service);
    if (s->running) pthread_join(s->thread, NULL);
    s->running = false;
    if (s->result < 0) {
        err_put(&s->why);
        return s->result;
    }
    if (s->job.store.policy->own_weights) memcpy(s->job.theta, s->pulled, sizeof(f32) * (size_t)s->job.n);
    NEW(events, s->at.nserver);
    err e = account(s, out, events);
    if (e >= 0 && record) e = fill_record(s, out->end, events, record);
    if (e >= 0) e = pause_end(s, out->end);
    mem_free(events);
    if (e < 0 && record) pstore_record_free(record);
    return e;
}

void pstore_record_free(struct pstore_record *r) {
    mem_free(r->owner);
    mem_free(r->event);
    mem_free(r->count);
    *r = (struct pstore_record){0};
}

/* ------------------------------------------------------------------ after a death ------------------------------------------- */

/* The number of a rank in the new group; -1 = it died. */
static i32 rank_now(const struct comm_loss *loss, i32 old) {
    i32 below = 0;
    for (i32 i = 0; i < loss->n; i++) {
        if (loss->rank[i] == old) return -1;
        below += loss->rank[i] < old;
    }
    return old - below;
}

/* The shard of a dead server is that of its keeper.  Where that died, too, it is that of the last rank, which has a worker as
 * well (servers come first), and the state of the leg's begin. */
static err salvage_shard(struct pstore *s, i32 k, const struct comm_loss *loss, i64 *lost) {
    struct comm *c = s->job.comm;
    const struct store_shard *shard = &s->at.shard[k];
    const i64 n = shard->hi - shard->lo;
    const i32 server = rank_now(loss, shard->rank), keeper = rank_now(loss, keeper_rank(s, k));
    const i32 from = server >= 0 ? server : keeper >= 0 ? keeper : comm_size(c) - 1;
    f32 *theta = s->job.theta + shard->lo;
    if (k == s->server.me)
        memcpy(theta, s->server.center, sizeof *theta * (size_t)n);
    else if (server < 0 && s->pulled)
        memcpy(theta, s->pulled + shard->lo, sizeof *theta * (size_t)n);
    if (server < 0) ++*lost;
    TRY(range_to_all(c, from, "weights", theta, n));
    for (i32 i = 0; i < s->job.optim->nstate; i++) TRY(range_to_all(c, from, "state", s->job.state[i] + shard->lo, n));
    return 0;
}

err pstore_salvage(struct pstore *s, const struct comm_loss *loss, i64 *round, i64 *lost) {
    struct comm *c = s->job.comm;
    const i64 mine = s->server.me >= 0 ? s->server.clear : INT64_MAX;
    i64 all[COMM_RANKS];
    *lost = 0;
    *round = s->last;
    TRY(comm_allgather(c, "rounds", &mine, sizeof mine, all));
    for (i32 k = 0; k < comm_size(c); k++) *round = lmin(*round, all[k]);
    for (i32 k = 0; k < s->at.nserver; k++) TRY(salvage_shard(s, k, loss, lost));
    return 0;
}

err pstore_share_state(struct pstore *s) {
    for (i32 k = 0; k < s->at.nserver; k++)
        for (i32 i = 0; i < s->job.optim->nstate; i++)
            TRY(range_to_all(s->job.comm, server_rank(s, k), "state", s->job.state[i] + s->at.shard[k].lo,
                             s->at.shard[k].hi - s->at.shard[k].lo));
    return 0;
}

/* ------------------------------------------------------------------ checkpoints --------------------------------------------- */

i64 pstore_private(const struct pstore *s) { return s->state ? s->at.states : 0; }

void pstore_private_save(const struct pstore *s, f32 *to) {
    if (pstore_private(s) > 0) memcpy(to, s->state, sizeof *to * (size_t)pstore_private(s));
}

void pstore_private_load(struct pstore *s, const f32 *from) {
    const size_t bytes = sizeof(f32) * (size_t)pstore_private(s);
    if (bytes > 0 && from) memcpy(s->state, from, bytes);
    if (bytes > 0 && !from) memset(s->state, 0, bytes);
}
