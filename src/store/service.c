/* service.c - the service thread of a rank in a leg: it moves messages, serves the shard, and carries what the worker asks.
 *
 * It runs as the job of the agent (comm.h).  While its worker computes and no message moves it sleeps; while its worker waits it
 * polls without sleeping, since the core of the worker is free. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "base/backoff.h"
#include "base/clock.h"
#include "base/float_mode.h"
#include "store/inside.h"

#define SPIN_S 20e-6
#define SLEEP_S 50e-6 /* first sleep; then a share of the time since the last message */
#define SLEEP_MOST_S 300e-6
#define SLEEP_SHARE 8

/* ------------------------------------------------------------------ the worker's side --------------------------------------- */

static void answer(struct pstore *s) {
    atomic_store(&s->desk.ready, 1);
    wakeup_signal(&s->desk.changed);
}

/* Rank 0 sends the weights of its shard behind the ticket. */
static err pull(struct pstore *s, i64 ticket, u8 flags) {
    s->desk.got = 0;
    memset(s->desk.got_of, 0, sizeof *s->desk.got_of * (size_t)s->at.nserver);
    for (i32 k = ticket >= 0; k < s->at.nserver; k++)
        TRY(send_message(s, server_rank(s, k), &(struct ps_head){.kind = PS_PULL, .flags = flags, .ticket = ticket}, NULL));
    return 0;
}

/* No more tickets: the last pushes are on their way, so the servers learn that none will follow. */
static err leave(struct pstore *s, bool stopped) {
    s->leaving = true;
    if (stopped && pstore_pause_floats(s) > 0) TRY(pause_keep_view(s));
    for (i32 k = 0; k < s->at.nserver && worker_of(s, comm_rank(s->job.comm)) >= 0; k++)
        TRY(send_message(s, server_rank(s, k), &(struct ps_head){.kind = PS_LEAVE}, NULL));
    return pull(s, -1, stopped ? PS_FINAL | PS_STOP : PS_FINAL);
}

static err got_ticket(struct pstore *s, const struct ps_head *h) {
    struct ps_desk *d = &s->desk;
    d->asks = false;
    d->over = h->ticket < 0;
    d->ticket =
        (struct pstore_ticket){.number = h->ticket, .round = h->ticket / s->at.nworker, .part = (i32)(h->ticket % s->at.nworker)};
    if (!d->over) return pull(s, h->ticket, 0);
    answer(s);
    return leave(s, h->flags & PS_STOP);
}

static err got_weights(struct pstore *s, i32 from, const struct ps_head *h, const unsigned char *data) {
    const i32 k = from - s->at.server0;
    if (k < 0 || k >= s->at.nserver || h->chunk < 0 || h->chunk >= s->at.nchunk[k] ||
        !unpack_weights(s, &s->at.chunk[k][h->chunk], data, h->bytes, h->flags & PS_FINAL))
        return FAIL_AT(E804, NULL, "the same program and options on every rank",
                       "rank %d sent weights that do not fit this store", from);
    s->desk.got_of[k]++;
    if (++s->desk.got < s->chunks) return 0;
    if (h->flags & PS_FINAL)
        s->closing = true;
    else
        answer(s);
    return 0;
}

/* Shard 0 goes last, because its final message may ask rank 0 for the next ticket (asks: the flags of that, or 0), and the pulls
 * must follow all pushes. */
static err send_push(struct pstore *s, u8 asks) {
    struct ps_desk *d = &s->desk;
    for (i32 k = s->at.nserver - 1; k >= 0; k--)
        for (i32 i = 0; i < s->at.nchunk[k]; i++) {
            const struct ps_chunk *c = &s->at.chunk[k][i];
            const i64 at = s->at.chunk0[k] + i;
            const bool last = k == 0 && i == s->at.nchunk[k] - 1;
            const struct ps_head h = {.kind = PS_PUSH,
                                      .flags = (u8)((d->refused ? PS_REFUSED : 0) | (last ? asks : 0)),
                                      .chunk = i,
                                      .ticket = d->number,
                                      .loss = d->loss,
                                      .bytes = s->packet_bytes[at]};
            s->whole += server_rank(s, k) == comm_rank(s->job.comm) ? 0 : pack_bytes(c);
            TRY(send_message(s, server_rank(s, k), &h, s->packet_at[at]));
        }
    d->held = 1;
    return 0;
}

/* A push has left when no server's stream holds a message any more. */
static void look_at_push(struct pstore *s) {
    for (i32 k = 0; k < s->at.nserver; k++) {
        const i32 rank = server_rank(s, k);
        if (rank != comm_rank(s->job.comm) && !post_sent(s->post, rank)) return;
    }
    atomic_store_explicit(&s->desk.held, 0, memory_order_release);
    wakeup_signal(&s->desk.changed);
}

static err look_at_desk(struct pstore *s, bool *moved) {
    const u32 asked = atomic_load_explicit(&s->desk.asked, memory_order_relaxed) ? atomic_exchange(&s->desk.asked, 0) : 0;
    *moved = *moved || asked;
    const u8 flags = asked & DESK_NEXT && s->job.stop(s->job.self) ? PS_STOP : 0;
    const bool with = asked == (DESK_PUSH | DESK_NEXT); /* rank 0 serves shard 0 */
    s->desk.asks = s->desk.asks || asked & DESK_NEXT;
    if (asked & DESK_PUSH) TRY(send_push(s, with ? flags | PS_ASKS : 0));
    if (asked & DESK_NEXT && !with) TRY(send_message(s, 0, &(struct ps_head){.kind = PS_NEXT, .flags = flags}, NULL));
    if (atomic_load_explicit(&s->desk.held, memory_order_relaxed)) look_at_push(s);
    return 0;
}

/* ------------------------------------------------------------------ messages ------------------------------------------------ */

static err place_weights(struct pstore *s, i32 from, const struct ps_head *h, void **to) {
    const i32 k = from - s->at.server0;
    if (k < 0 || k >= s->at.nserver || h->chunk < 0 || h->chunk >= s->at.nchunk[k]) return 0; /* got_weights says so */
    const struct ps_chunk *c = &s->at.chunk[k][h->chunk];
    if ((pack_plain(s) || h->flags & PS_FINAL) && h->bytes == pack_bytes(c)) *to = pack_target(s, c);
    return 0;
}

err service_place(void *store, i32 from, const unsigned char *head, void **to) {
    struct pstore *s = store;
    struct ps_head h;
    memcpy(&h, head, sizeof h);
    *to = NULL;
    if (h.kind == PS_PUSH) return server_place(s, from, &h, to);
    if (h.kind == PS_STATE) return keep_place(s, from, &h, to);
    return h.kind == PS_WEIGHTS ? place_weights(s, from, &h, to) : 0;
}

/* With a ticket goes a pull of rank 0's shard, and a push may ask for the next ticket: a worker with one server needs one message
 * there, and ticket and weights come back. */
static err next(struct pstore *s, i32 from, u8 flags) {
    i64 ticket;
    TRY(tickets_next(s, from, flags & PS_STOP, &ticket));
    return ticket >= 0 ? server_pull_for_ticket(s, from, ticket) : 0;
}

err service_handle(void *store, i32 from, const unsigned char *head, const unsigned char *data) {
    struct pstore *s = store;
    struct ps_head h;
    memcpy(&h, head, sizeof h);
    switch (h.kind) {
        case PS_PUSH:
            TRY(server_push(s, from, &h, data));
            return h.flags & PS_ASKS ? next(s, from, h.flags) : 0;
        case PS_PULL:
            return server_pull(s, from, &h);
        case PS_WEIGHTS:
            return got_weights(s, from, &h, data);
        case PS_NEXT:
            return next(s, from, h.flags);
        case PS_TICKET:
            return got_ticket(s, &h);
        case PS_NORM:
            return server_norm(s, from, &h, data);
        case PS_LEAVE:
            return server_leave(s, from);
        case PS_STATE:
            return 0; /* keep_place has said where it goes */
        default:
            return FAIL(E804, "rank %d sent message %d, which no store knows", from, h.kind);
    }
}

/* ------------------------------------------------------------------ the loop ------------------------------------------------ */

/* since: the time at which messages moved last; 0 = now. */
static void nap(struct pstore *s, f64 *since) {
    struct wakeup *w = &s->desk.service;
    const f64 now = clock_now();
    if (*since <= 0) *since = now;
    const f64 idle = now - *since;
    if (idle < SPIN_S) {
        cpu_relax();
        return;
    }
    const u32 seen = wakeup_prepare(w);
    if (!atomic_load(&s->desk.asked)) wakeup_wait(w, seen, dmin(SLEEP_MOST_S, dmax(SLEEP_S, idle / SLEEP_SHARE)));
    wakeup_finish(w);
}

/* The rank that the worker of this rank waits for: rank 0 for a ticket; where the round of its own shard is incomplete, the rank
 * whose part is missing; else a server whose weights are missing. */
static i32 awaited_rank(const struct pstore *s) {
    const struct ps_server *v = &s->server;
    if (s->desk.asks) return 0;
    for (i32 p = 0; v->me >= 0 && is_synchronous(s) && p < s->at.nworker; p++)
        if (v->complete > 0 && v->part_of[p] < 0) return s->at.worker0 + p;
    for (i32 k = 0; k < s->at.nserver; k++)
        if (s->desk.got_of[k] < s->at.nchunk[k]) return server_rank(s, k);
    return 0;
}

static const struct comm_message *awaited(const struct pstore *s) {
    const i32 me = comm_rank(s->job.comm), rank = awaited_rank(s);
    return post_awaited(s->post, rank != me ? rank : me > 0 ? 0 : 1);
}

static err idle(struct pstore *s, bool moved, f64 *since) {
    struct comm *c = s->job.comm;
    const bool waits = atomic_load_explicit(&s->desk.waits, memory_order_relaxed);
    if (moved || !comm_direct(c) || waits) {
        *since = 0;
        return comm_idle(c, moved, waits ? awaited(s) : NULL);
    }
    comm_reset_wait(c);
    return comm_check(c);
}

/* One look at everything; the caller holds s->turn. */
static err turn(struct pstore *s, f64 *since, bool *moved) {
    err e = atomic_load_explicit(&s->desk.quit, memory_order_relaxed) ? FAIL(E1, "the worker of this rank has failed") : 0;
    if (e >= 0) e = look_at_desk(s, moved);
    if (e >= 0) e = post_turn(s->post, moved);
    if (e >= 0) e = server_advance(s, moved);
    if (e >= 0 && !s->told && s->closing && server_finished(s)) {
        e = post_close(s->post);
        s->told = *moved = true;
    }
    return e >= 0 ? idle(s, *moved, since) : e;
}

/* The worker has nothing to do: where messages need no agent it drives them itself, so no wake-up stands between it and a server.
 */
void service_drive(struct pstore *s, _Atomic u32 *word, u32 want) {
    const u64 mode = float_mode_fast(); /* the floating-point mode of a training step, so updates have the same bits */
    f64 since = 0;
    pthread_mutex_lock(&s->turn);
    while (atomic_load(word) != want && !atomic_load(&s->desk.failed)) {
        bool moved = false;
        const err e = turn(s, &since, &moved);
        if (e >= 0) continue;
        s->result = e;
        s->why = *err_last();
        atomic_store(&s->desk.failed, true);
    }
    pthread_mutex_unlock(&s->turn);
    float_mode_back(mode);
}

/* Sleeps while the worker drives; false: it has failed at it. */
static bool stand_by(struct pstore *s) {
    struct wakeup *w = &s->desk.service;
    while (atomic_load(&s->desk.drives) && !atomic_load(&s->desk.failed)) {
        const u32 seen = wakeup_prepare(w);
        if (atomic_load(&s->desk.drives) && !atomic_load(&s->desk.failed)) wakeup_wait(w, seen, 0.5);
        wakeup_finish(w);
    }
    return !atomic_load(&s->desk.failed);
}

static err serve_leg(struct comm *c, struct pstore *s) {
    f64 since = 0;
    err e = worker_of(s, comm_rank(c)) < 0 ? leave(s, false) : 0;
    while (e >= 0) {
        bool moved = false;
        if (!stand_by(s)) {
            err_put(&s->why);
            return s->result;
        }
        pthread_mutex_lock(&s->turn);
        const bool over = s->told && post_closed(s->post);
        if (!over) e = turn(s, &since, &moved);
        pthread_mutex_unlock(&s->turn);
        if (over) return 0;
        if (e >= 0 && !moved && comm_direct(c) && !atomic_load(&s->desk.waits)) nap(s, &since);
    }
    return e;
}

static err serve(struct comm *c, void *store) {
    const u64 mode = float_mode_fast();
    const err e = serve_leg(c, store);
    float_mode_back(mode);
    return e;
}

/* Before the thread: from then on the worker may drive messages, too. */
void service_begin(struct pstore *s) { comm_begin(s->job.comm, serve, s); }

void *service_main(void *store) {
    struct pstore *s = store;
    s->result = comm_end(s->job.comm);
    if (s->result < 0) s->why = *err_last();
    atomic_store(&s->desk.failed, s->result < 0);
    wakeup_signal(&s->desk.changed);
    return NULL;
}
