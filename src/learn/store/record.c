/* record.c - the order in which servers applied pushes and answered pulls, as text: RUN/order.txt, and --replay.
 *
 *     stretto order 3
 *     leg MEMBER REFIT STEP LAST LOCAL CODEC SERVERS PARTS TICKETS EVENTS STALE
 *                                                           rounds of LOCAL steps from STEP up to LAST; REFIT 1: of the refit,
 *                                                           whose steps begin at 0 again; CODEC 0: without the codec; STALE
 *                                                           rounds of staleness, 1000: or more; then the worker of each ticket
 *     0 1 1 0 ..
 *     COUNT event event ..                                  a line for each server (store/store.h: struct pstore_record)
 *
 * A resumed run adds its legs behind those that it repeats: of two legs that begin alike the later one counts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "learn/store/inside.h"

#define FAMILY "stretto order "
#define TITLE FAMILY "3\n"
enum { STALE_MOST = 1000 };
#define RECORD_MOST ((i64)1 << 32)

struct leg {
    struct order_place at;
    struct order_leg as;
    struct pstore_record r;
};

struct order {
    struct leg *leg; /* replay */
    i64 n, cap;
    char *path; /* record: rank 0; else NULL */
    bool replays;
    char *text;
};

bool order_replays(const struct order *o) { return o->replays; }

void order_close(struct order *o) {
    if (!o) return;
    for (i64 i = 0; i < o->n; i++) pstore_record_free(&o->leg[i].r);
    mem_free(o->leg);
    mem_free(o->path);
    mem_free(o->text);
    mem_free(o);
}

/* ------------------------------------------------------------------ reading ------------------------------------------------- */

struct scan {
    const char *p, *path;
    i64 line;
};

static err spoiled_at(const struct scan *s, i64 line, const char *what) {
    char where[sizeof(struct err_record){0}.where];
    snprintf(where, sizeof where, "%s:%lld", s->path, (long long)line);
    return FAIL_AT(E402, where, "--replay with the order.txt of a run, unchanged", "%s", what);
}

static err spoiled(const struct scan *s, const char *what) { return spoiled_at(s, s->line, what); }

static bool number(struct scan *s, i64 least, i64 most, i64 *out) {
    char *end;
    while (*s->p == ' ') s->p++;
    if (*s->p < '0' || *s->p > '9') return false;
    *out = strtoll(s->p, &end, 10);
    s->p = end;
    return *out >= least && *out <= most;
}

static bool end_of_line(struct scan *s) {
    if (*s->p != '\n') return false;
    s->p++;
    s->line++;
    return true;
}

/* Every ticket of a server has a pull and as many units of a push, so the events are the numbers below their count, once each. */
static err read_server(struct scan *s, struct pstore_record *r, i32 k, i64 stale, u8 *seen) {
    char why[160];
    i64 v;
    u32 *event = r->event + k * r->events;
    if (!number(s, 0, r->events, &r->count[k])) return spoiled(s, "the number of events of a server is missing or too large");
    if (stale == 0 ? r->count[k] > 0 : r->count[k] % lmax(1, r->tickets) != 0 || r->count[k] < r->tickets) {
        snprintf(why, sizeof why, "%lld events: %lld tickets with staleness %lld have %s", (long long)r->count[k],
                 (long long)r->tickets, (long long)stale, stale == 0 ? "none" : "as many each, one at least");
        return spoiled(s, why);
    }
    memset(seen, 0, (size_t)r->events);
    for (i64 i = 0; i < r->count[k]; i++) {
        if (!number(s, 0, INT64_MAX, &v)) return spoiled(s, "an event is missing");
        if (v >= r->count[k] || seen[v]) {
            snprintf(why, sizeof why, "event %lld %s: a server of %lld events has each number from 0 to %lld once", (long long)v,
                     v >= r->count[k] ? "is out of range" : "occurs twice", (long long)r->count[k], (long long)r->count[k] - 1);
            return spoiled(s, why);
        }
        seen[v] = 1;
        event[i] = (u32)v;
    }
    return end_of_line(s) ? 0 : spoiled(s, "more events than their number says");
}

static err read_events(struct scan *s, struct pstore_record *r, i64 stale) {
    i64 v;
    u8 *seen;
    for (i64 i = 0; i < r->tickets; i++) {
        if (!number(s, 0, r->parts - 1, &v)) return spoiled(s, "the worker of a ticket is missing or too large");
        if (stale == 0 && v != i % r->parts) return spoiled(s, "a synchronous round has one ticket of each worker, in order");
        r->owner[i] = (u16)v;
    }
    if (!end_of_line(s)) return spoiled(s, "more workers than tickets");
    NEW(seen, r->events);
    err e = 0;
    for (i32 k = 0; k < r->nserver && e >= 0; k++) e = read_server(s, r, k, stale, seen);
    mem_free(seen);
    return e;
}

/* ------------------------------------------------------------------ an order that can happen -------------------------------- */

/* Goes through the events as servers and workers do: a worker pushes a ticket when all its weights have come, and pulls the next
 * one at a server when that has applied the push. What never comes is an event that a replay would wait for. */
struct rehearsal {
    const struct pstore_record *r;
    i64 stale;
    i64 *nth;    /* [tickets] number of the ticket among those of its worker */
    i64 *pulls;  /* [parts] of the worker, at all servers */
    i64 *events; /* [nserver][parts] */
    i64 *left;   /* [nserver][rounds] events until the round is applied */
    i64 *at;     /* [nserver] next event of each */
    i64 *clear;  /* [nserver] rounds below are applied */
};

static i64 rounds_of(const struct pstore_record *r) { return (r->tickets + r->parts - 1) / r->parts; }

static void rehearsal_free(struct rehearsal *h) {
    mem_free(h->nth);
    mem_free(h->pulls);
    mem_free(h->events);
    mem_free(h->left);
    mem_free(h->at);
    mem_free(h->clear);
}

static err rehearsal_new(struct rehearsal *h, const struct pstore_record *r) {
    const i64 rounds = rounds_of(r);
    NEW(h->nth, r->tickets);
    NEW(h->pulls, r->parts);
    NEW(h->events, (i64)r->nserver * r->parts);
    NEW(h->left, r->nserver * rounds);
    NEW(h->at, r->nserver);
    NEW(h->clear, r->nserver);
    for (i64 c = 0; c < r->tickets; c++) h->nth[c] = h->pulls[r->owner[c]]++;
    memset(h->pulls, 0, sizeof(i64) * (size_t)r->parts);
    for (i32 k = 0; k < r->nserver; k++)
        for (i64 c = 0; c < r->tickets; c++) h->left[k * rounds + c / r->parts] += r->count[k] / r->tickets;
    return 0;
}

/* The next event of server k; false: it cannot happen yet. */
static bool rehearse(struct rehearsal *h, i32 k) {
    const struct pstore_record *r = h->r;
    const i64 each = r->count[k] / r->tickets, rounds = rounds_of(r);
    const i64 event = r->event[k * r->events + h->at[k]], ticket = event / each, what = event % each, nth = h->nth[ticket];
    const i32 worker = r->owner[ticket];
    if (h->events[k * r->parts + worker] != nth * each + what) return false;
    if (what == 0 && h->pulls[worker] < nth * r->nserver) return false;
    if (what == 0 && h->stale < STALE_MOST && h->clear[k] < ticket / r->parts - h->stale) return false;
    if (what > 0 && h->pulls[worker] < (nth + 1) * r->nserver) return false;
    h->pulls[worker] += what == 0;
    h->events[k * r->parts + worker]++;
    h->at[k]++;
    h->left[k * rounds + ticket / r->parts]--;
    while (h->clear[k] < rounds && h->left[k * rounds + h->clear[k]] == 0) h->clear[k]++;
    return true;
}

/* Behind another event of its ticket, or of its worker, that should come first at the same server. */
static bool is_early(const struct rehearsal *h, i32 k) {
    const struct pstore_record *r = h->r;
    const i64 each = r->count[k] / r->tickets, event = r->event[k * r->events + h->at[k]], ticket = event / each;
    return h->events[k * r->parts + r->owner[ticket]] != h->nth[ticket] * each + event % each;
}

/* The server that waits, one that is early by itself before one that waits for others; -1 = none. */
static i32 stuck_server(struct rehearsal *h) {
    const struct pstore_record *r = h->r;
    i32 stuck = -1;
    for (bool moved = true; moved;) {
        moved = false;
        for (i32 k = 0; k < r->nserver; k++)
            while (h->at[k] < r->count[k] && rehearse(h, k)) moved = true;
    }
    for (i32 k = r->nserver - 1; k >= 0; k--)
        if (h->at[k] < r->count[k] && (stuck < 0 || is_early(h, k) || !is_early(h, stuck))) stuck = k;
    return stuck;
}

/* line: of the first server's events. */
static err check_order(const struct scan *s, const struct pstore_record *r, i64 stale, i64 line) {
    struct rehearsal h = {.r = r, .stale = stale};
    char why[160];
    if (stale == 0 || r->tickets == 0) return 0;
    err e = rehearsal_new(&h, r);
    const i32 k = e < 0 ? -1 : stuck_server(&h);
    if (k >= 0) {
        snprintf(why, sizeof why, "event %u, number %lld of the line, cannot happen: it waits for one that comes behind it",
                 r->event[k * r->events + h.at[k]], (long long)h.at[k] + 1);
        e = spoiled_at(s, line + k, why);
    }
    rehearsal_free(&h);
    return e;
}

static err read_leg(struct order *o, struct scan *s) {
    enum { MEMBER, REFIT, STEP, LAST, LOCAL, CODEC, SERVERS, PARTS, TICKETS, EVENTS, STALE, NUMBERS };
    i64 v[NUMBERS];
    static const i64 most[NUMBERS] = {MEMBERS_MAX, 1,          1000000000000, 1000000000000, 1000000,   1,
                                      COMM_RANKS,  COMM_RANKS, 100000000,     100000000,     STALE_MOST};
    if (strncmp(s->p, "leg ", 4) != 0) return spoiled(s, "\"leg\" with eleven numbers is expected");
    s->p += 4;
    for (i32 i = 0; i < NUMBERS; i++)
        if (!number(s, i == LOCAL || i == SERVERS || i == PARTS, most[i], &v[i]))
            return spoiled(s, "a number of the leg is missing or out of range");
    if (!end_of_line(s)) return spoiled(s, "eleven numbers are expected");
    if (v[TICKETS] + v[EVENTS] * v[SERVERS] > (i64)strlen(s->p)) return spoiled(s, "the leg is cut off");
    GROW(o->leg, o->n, o->cap);
    struct leg *l = &o->leg[o->n++];
    *l = (struct leg){.at = {(i32)v[MEMBER], v[REFIT] != 0, v[STEP]}, .as = {v[LAST], v[LOCAL], v[CODEC] != 0, v[STALE]}};
    l->r = (struct pstore_record){
        .nserver = (i32)v[SERVERS], .parts = (i32)v[PARTS], .tickets = v[TICKETS], .events = v[EVENTS]};
    NEW(l->r.owner, v[TICKETS]);
    NEW(l->r.event, v[EVENTS] * v[SERVERS]);
    NEW(l->r.count, v[SERVERS]);
    const i64 line = s->line + 1;
    TRY(read_events(s, &l->r, v[STALE]));
    return check_order(s, &l->r, v[STALE], line);
}

static err read_all(struct order *o, const char *path) {
    struct scan s = {.p = o->text, .path = path, .line = 1};
    if (strncmp(s.p, FAMILY, strlen(FAMILY)) == 0 && strncmp(s.p, TITLE, strlen(TITLE)) != 0)
        return spoiled(&s, "another version of the program has recorded this order");
    if (strncmp(s.p, TITLE, strlen(TITLE)) != 0) return spoiled(&s, "this is no record of the order of updates");
    s.p += strlen(TITLE);
    s.line++;
    while (*s.p) TRY(read_leg(o, &s));
    return 0;
}

/* Rank 0 reads the file, all ranks parse it. */
static err load(struct fit *t, struct order *o, const char *path) {
    struct comm *c = t->job->use.comm;
    i64 size = 0;
    err e = comm_rank(c) == 0 ? file_load(path, RECORD_MOST, &o->text, &size) : 0;
    TRY(e);
    TRY(comm_broadcast_slow(c, "replay", &size, sizeof size));
    if (comm_rank(c) > 0) NEW(o->text, size + 1);
    TRY(comm_broadcast(c, "replay", o->text, size));
    e = read_all(o, path);
    mem_free(o->text);
    o->text = NULL;
    return e;
}

err order_find(struct order *o, const struct order_place *at, struct order_leg *as, const struct pstore_record **out) {
    for (i64 i = o->n; i-- > 0;) {
        const struct order_place *its = &o->leg[i].at;
        if (its->member != at->member || its->refit != at->refit || its->step != at->step) continue;
        *out = &o->leg[i].r;
        *as = o->leg[i].as;
        return 0;
    }
    return FAIL_AT(E106, "--replay", "the options and the data of the recorded run",
                   "the record has no leg that begins with step %lld of %smember %d", (long long)at->step,
                   at->refit ? "the refit of " : "", at->member + 1);
}

err order_fits(const struct order_leg *as, i64 stale) {
    if (as->stale == lmin(stale, STALE_MOST)) return 0;
    return FAIL_AT(E106, "--replay", "the --store of the recorded run",
                   "a leg of the record has staleness %lld (%d: no bound), this run's has %lld", (long long)as->stale, STALE_MOST,
                   (long long)lmin(stale, STALE_MOST));
}

/* ------------------------------------------------------------------ writing ------------------------------------------------- */

err order_add(struct order *o, const struct order_place *at, const struct order_leg *as, const struct pstore_record *r) {
    if (!o->path) return 0;
    FILE *f = fopen(o->path, "a");
    if (!f) return file_failed(o->path);
    fprintf(f, "leg %d %d %lld %lld %lld %d %d %d %lld %lld %lld\n", at->member, at->refit, (long long)at->step,
            (long long)as->last, (long long)as->local, as->codec, r->nserver, r->parts, (long long)r->tickets,
            (long long)r->events, (long long)lmin(as->stale, STALE_MOST));
    for (i64 i = 0; i < r->tickets; i++) fprintf(f, i ? " %u" : "%u", r->owner[i]);
    fputc('\n', f);
    for (i32 k = 0; k < r->nserver; k++) {
        fprintf(f, "%lld", (long long)r->count[k]);
        for (i64 i = 0; i < r->count[k]; i++) fprintf(f, " %u", r->event[k * r->events + i]);
        fputc('\n', f);
    }
    const bool bad = ferror(f) != 0;
    return fclose(f) != 0 || bad ? file_failed(o->path) : 0;
}

static err record(struct fit *t, struct order *o) {
    char path[4200];
    if (!t->job->run_dir || comm_rank(t->job->use.comm) > 0) return 0;
    snprintf(path, sizeof path, "%s/order.txt", t->job->run_dir);
    NEW(o->path, strlen(path) + 1);
    memcpy(o->path, path, strlen(path));
    TRY(file_make_parent(path));
    return t->job->resume || t->at.done > 0 ? 0 : file_write_all(path, TITLE, (i64)strlen(TITLE));
}

/* The order of synchronous rounds is fixed: nothing is recorded. */
err order_open(struct fit *t, struct store_run *r) {
    const bool fixed = store_staleness(&r->now) == 0 && !r->chooser;
    if (fixed && !r->spec.replay) return 0;
    NEW(r->order, 1);
    r->order->replays = r->spec.replay != NULL;
    return r->spec.replay ? load(t, r->order, r->spec.replay) : record(t, r->order);
}
