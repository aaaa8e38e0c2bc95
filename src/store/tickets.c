/* tickets.c - rank 0 deals out the work of a leg: ticket c is part c % parts of round c / parts.
 *
 * The next ticket goes to whoever asks, so a slow worker takes fewer; with sticky parts, and where rounds
 * are synchronous, each worker has the tickets of its own part.
 * In a replay every ticket goes to the worker that had it. */
#include <string.h>

#include "base/mem.h"
#include "store/inside.h"

err tickets_new(struct pstore *s) {
    ARENA_NEW(&s->arena, s->tickets.round, s->at.nworker);
    ARENA_NEW(&s->arena, s->tickets.scripted, s->at.nworker);
    return 0;
}

err tickets_begin(struct pstore *s) {
    struct ps_tickets *t = &s->tickets;
    t->next = s->first * s->at.nworker;
    t->last = s->last;
    mem_free(t->owner);
    t->owner = NULL;
    NEW(t->owner, leg_tickets(s));
    for (i32 w = 0; w < s->at.nworker; w++) {
        t->round[w] = s->first;
        t->scripted[w] = 0;
    }
    return 0;
}

/* A round of staleness 0 holds one push of each worker. */
static bool is_sticky(const struct pstore *s) { return s->job.sticky || is_synchronous(s); }

/* A stop ends the leg with the rounds that have begun. */
static void stop(struct pstore *s) {
    struct ps_tickets *t = &s->tickets;
    i64 begun = (t->next + s->at.nworker - 1) / s->at.nworker;
    for (i32 w = 0; w < s->at.nworker && is_sticky(s); w++) begun = lmax(begun, t->round[w]);
    t->last = lmin(t->last, lmax(begun, s->first));
}

static i64 scripted(struct pstore *s, i32 worker) {
    i64 *at = &s->tickets.scripted[worker];
    while (*at < s->replay->tickets && s->replay->owner[*at] != worker) ++*at;
    return *at < s->replay->tickets ? s->first * s->at.nworker + (*at)++ : -1;
}

static i64 deal(struct pstore *s, i32 worker) {
    struct ps_tickets *t = &s->tickets;
    if (s->replay) return scripted(s, worker);
    if (is_sticky(s)) return t->round[worker] < t->last ? t->round[worker]++ * s->at.nworker + worker : -1;
    return t->next < t->last * s->at.nworker ? t->next++ : -1;
}

err tickets_next(struct pstore *s, i32 from, bool asks_stop, i64 *ticket) {
    const i32 worker = worker_of(s, from);
    if (worker < 0) return FAIL(E804, "rank %d, which only serves, asks for a ticket", from);
    if (!s->replay && (asks_stop || s->job.stop(s->job.self))) stop(s);
    struct ps_head h = {.kind = PS_TICKET, .ticket = *ticket = deal(s, worker)};
    if (h.ticket < 0 && s->tickets.last < s->last) h.flags = PS_STOP;
    if (h.ticket >= 0) s->tickets.owner[h.ticket - s->first * s->at.nworker] = (u16)worker;
    return send_message(s, from, &h, NULL);
}
