/* record.c - the order in which servers applied pushes and answered pulls, as text: RUN/order.txt, and --replay.
 *
 *     stretto order 2
 *     leg MEMBER STEP LAST LOCAL CODEC SERVERS PARTS TICKETS EVENTS STALE   rounds of LOCAL steps up to LAST, CODEC 0: without
 *                                                                   the codec; STALE rounds of staleness, 1000: or more;
 *                                                                   then the worker of each ticket
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

#define TITLE "stretto order 2\n"
enum { STALE_MOST = 1000 };
#define RECORD_MOST ((i64)1 << 32)

struct leg {
    i64 member, step;
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

static err spoiled(const struct scan *s, const char *what) {
    return FAIL_AT(E402, s->path, "the order.txt of a run, unchanged", "line %lld: %s", (long long)s->line, what);
}

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

static err read_events(struct scan *s, struct pstore_record *r) {
    i64 v;
    for (i64 i = 0; i < r->tickets; i++) {
        if (!number(s, 0, r->parts - 1, &v)) return spoiled(s, "the worker of a ticket is missing or too large");
        r->owner[i] = (u16)v;
    }
    if (!end_of_line(s)) return spoiled(s, "more workers than tickets");
    for (i32 k = 0; k < r->nserver; k++) {
        if (!number(s, 0, r->events, &r->count[k])) return spoiled(s, "the number of events of a server is missing or too large");
        for (i64 i = 0; i < r->count[k]; i++) {
            if (!number(s, 0, UINT32_MAX, &v)) return spoiled(s, "an event is missing");
            r->event[k * r->events + i] = (u32)v;
        }
        if (!end_of_line(s)) return spoiled(s, "more events than their number says");
    }
    return 0;
}

static err read_leg(struct order *o, struct scan *s) {
    enum { NUMBERS = 10, SERVERS = 5, PARTS = 6, STALE = 9 };
    i64 v[NUMBERS];
    static const i64 most[NUMBERS] = {MEMBERS_MAX, 1000000000000, 1000000000000, 1000000,  1,
                                      COMM_RANKS,  COMM_RANKS,    100000000,     100000000, STALE_MOST};
    if (strncmp(s->p, "leg ", 4) != 0) return spoiled(s, "\"leg\" with ten numbers is expected");
    s->p += 4;
    for (i32 i = 0; i < NUMBERS; i++)
        if (!number(s, i == 3 || i == SERVERS || i == PARTS, most[i], &v[i]))
            return spoiled(s, "a number of the leg is missing or out of range");
    if (!end_of_line(s)) return spoiled(s, "ten numbers are expected");
    if (v[7] + v[8] * v[SERVERS] > (i64)strlen(s->p)) return spoiled(s, "the leg is cut off");
    GROW(o->leg, o->n, o->cap);
    struct leg *l = &o->leg[o->n++];
    *l = (struct leg){.member = v[0], .step = v[1], .as = {v[2], v[3], v[4] != 0, v[STALE]}};
    l->r = (struct pstore_record){.nserver = (i32)v[SERVERS], .parts = (i32)v[PARTS], .tickets = v[7], .events = v[8]};
    NEW(l->r.owner, v[7]);
    NEW(l->r.event, v[8] * v[SERVERS]);
    NEW(l->r.count, v[SERVERS]);
    return read_events(s, &l->r);
}

static err read_all(struct order *o, const char *path) {
    struct scan s = {.p = o->text, .path = path, .line = 1};
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

err order_find(struct order *o, i32 member, i64 step, struct order_leg *as, const struct pstore_record **out) {
    for (i64 i = o->n; i-- > 0;) {
        if (o->leg[i].member != member || o->leg[i].step != step) continue;
        *out = &o->leg[i].r;
        *as = o->leg[i].as;
        return 0;
    }
    return FAIL_AT(E106, "--replay", "the options and the data of the recorded run",
                   "the record has no leg that begins with step %lld of member %d", (long long)step, member + 1);
}

/* ------------------------------------------------------------------ writing ------------------------------------------------- */

err order_add(struct order *o, i32 member, i64 step, const struct order_leg *as, const struct pstore_record *r) {
    if (!o->path) return 0;
    FILE *f = fopen(o->path, "a");
    if (!f) return file_failed(o->path);
    fprintf(f, "leg %d %lld %lld %lld %d %d %d %lld %lld %lld\n", member, (long long)step, (long long)as->last,
            (long long)as->local, as->codec, r->nserver, r->parts, (long long)r->tickets, (long long)r->events,
            (long long)lmin(as->stale, STALE_MOST));
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
