/* choose.c - what the next leg does: steps of a ticket for --granularity SECONDS, the policy for --store auto.
 *
 *     probes      two short synchronous legs: seconds of a round as they were, S; without waits for slower workers, A
 *                 (measure_workers of store/store.c); with four times as many local steps, L = slowest worker +
 *                 (S - slowest worker) / 4 (of the first one only A counts: its first step is longer than others)
 *     by time     A saves 20 % twice: asynchronous, with the staleness that lets the fastest worker go on (distributed.md 4);
 *                 else L saves 5 %: local steps times 4
 *     by gain     the loss falls at less than half of its best rate: synchronous rounds are tried for a leg, and kept if the loss
 *                 does not fall more slowly by the second; local steps are halved (AdaComm: Wang and Joshi, MLSys 2019)
 *
 * All ranks see the same facts, so all choose alike. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "learn/store/inside.h"

struct chooser {
    bool follows_clock; /* --granularity SECONDS */
    bool policy;        /* --store auto */
    i64 legs, longest;          /* longest: steps of one */
    i64 votes;                  /* legs in a row that say asynchronous */
    i64 stale;                  /* rounds; 0 = synchronous */
    bool tries, settled;        /* a synchronous leg is tried; synchronous for good */
    i64 back_stale, back_local; /* what to go back to after a try */
    f64 best;                   /* fall of the loss per second, the best of a leg so far */
    f64 before;                 /* loss of the last leg; NaN = none */
    f64 back_fall;              /* fall of the loss per second before the try */
};

enum { LOCAL_MOST = 64, PROBES = 2, PROBE_LEAST = 4, PROBE_MOST = 16, BY_TIME_LEGS = 5, STALE_LEAST = 2, STALE_MOST = 8 };
#define LOCAL_SHARE 0.95 /* of the seconds of a round: from there on local steps pay */
#define ASYNC_SHARE 0.8  /* the same for no rounds, which cost staleness */
#define FALL_SLOW 0.5    /* of the best fall of the loss per second */

err chooser_new(struct store_run *r, struct chooser **out) {
    struct chooser *c;
    const bool clock = r->spec.every == EVERY_SECONDS;
    *out = NULL;
    if (!clock && !r->spec.choice.policy->chooses) return 0;
    NEW(c, 1);
    *c = (struct chooser){.follows_clock = clock,
                          .policy = r->spec.choice.policy->chooses,
                          .back_local = 1,
                          .before = (f64)NAN,
                          .back_fall = (f64)NAN};
    *out = c;
    return 0;
}

void chooser_free(struct chooser *c) { mem_free(c); }

/* ------------------------------------------------------------------ checkpoints --------------------------------------------- */

void chooser_save(const struct chooser *c, struct store_reached *to) {
    static const struct chooser none = {.back_local = 1, .before = (f64)NAN, .back_fall = (f64)NAN};
    if (!c) c = &none;
    to->count[REACHED_LEGS] = c->legs;
    to->count[REACHED_STALE] = c->stale;
    to->count[REACHED_VOTES] = c->votes;
    to->count[REACHED_TRIES] = c->tries;
    to->count[REACHED_BACK_STALE] = c->back_stale;
    to->count[REACHED_BACK_LOCAL] = c->back_local;
    to->count[REACHED_SETTLED] = c->settled;
    to->gain[0] = c->best;
    to->gain[1] = c->before;
    to->gain[2] = c->back_fall;
}

bool chooser_sound(const struct store_reached *from) {
    const i64 *c = from->count;
    return c[REACHED_LEGS] >= 0 && c[REACHED_VOTES] >= 0 && c[REACHED_STALE] >= 0 && c[REACHED_STALE] <= STALE_MOST &&
           c[REACHED_BACK_STALE] >= 0 && c[REACHED_BACK_STALE] <= STALE_MOST && c[REACHED_BACK_LOCAL] >= 1 &&
           c[REACHED_BACK_LOCAL] <= LOCAL_MOST;
}

static void act(const struct chooser *c, struct store_run *r) {
    r->now = c->stale > 0 ? (struct store_choice){store_policy_find("ssp"), (f64)c->stale} :
                            (struct store_choice){store_policy_find("local"), (f64)r->local};
}

void chooser_load(struct chooser *c, struct store_run *r, const struct store_reached *from) {
    c->legs = from->count[REACHED_LEGS];
    c->stale = from->count[REACHED_STALE];
    c->votes = from->count[REACHED_VOTES];
    c->tries = from->count[REACHED_TRIES] != 0;
    c->back_stale = from->count[REACHED_BACK_STALE];
    c->back_local = from->count[REACHED_BACK_LOCAL];
    c->settled = from->count[REACHED_SETTLED] != 0;
    c->best = from->gain[0];
    c->before = from->gain[1];
    c->back_fall = from->gain[2];
    if (c->policy) act(c, r);
}

void chooser_replay(struct chooser *c, struct store_run *r, i64 stale) {
    if (!c || !c->policy) return;
    c->stale = lmin(stale, STALE_MOST);
    act(c, r);
}

/* ------------------------------------------------------------------ choices ------------------------------------------------- */

static void by_clock(struct store_run *r, const struct leg_facts *f) {
    const f64 step = f->worked / (f64)f->workers / (f64)lmax(1, f->steps);
    if (step > 0) r->local = lmax(1, lmin(1000000, (i64)(r->spec.number / step + 0.5)));
}

static void note(const struct chooser *c, const struct events *to, struct store_run *r, const struct leg_facts *f,
                 const char *why) {
    char name[64];
    size_t n = 0;
    if (c->stale > 0) n = (size_t)snprintf(name, sizeof name, "asynchronous, ssp:%lld", (long long)c->stale);
    if (c->stale == 0 && r->local == 1) n = (size_t)snprintf(name, sizeof name, "synchronous");
    if (r->local > 1 || n == 0) snprintf(name + n, sizeof name - n, "%slocal:%lld", n ? ", " : "", (long long)r->local);
    event_note(to, EVENT_NOTE, "store auto: %s from step %lld on: %s", name, (long long)f->step, why);
    struct store_record *s = r->record;
    if (s->ndecision == STORE_DECISIONS) return;
    struct store_decision *d = &s->decision[s->ndecision++];
    d->member = r->member;
    d->step = f->step;
    snprintf(d->what, sizeof d->what, "%s: %.*s", name, STORE_WHY - 68, why);
}

/* The fastest worker does this many rounds' parts while the slowest does one. */
static i64 staleness_for(const struct leg_facts *f) {
    return lmax(STALE_LEAST, lmin(STALE_MOST, (i64)ceil(f->slowest / dmax(1e-9, f->fastest))));
}

static void by_time(struct chooser *c, struct store_run *r, const struct leg_facts *f, const struct events *to) {
    const f64 round = f->round, local = f->slowest + (round - f->slowest) / 4;
    char why[160];
    c->votes = f->dealt <= ASYNC_SHARE * round ? c->votes + 1 : 0;
    if (c->votes >= PROBES && f->dealt <= local) {
        c->stale = staleness_for(f);
        snprintf(why, sizeof why, "a round took %.3g s, the workers' tickets %.3g to %.3g s; without rounds %.3g s", round,
                 f->fastest, f->slowest, f->dealt);
        note(c, to, r, f, why);
    } else if (c->legs > 1 && c->votes == 0 && local <= LOCAL_SHARE * round && r->local < LOCAL_MOST) {
        r->local = lmin(LOCAL_MOST, r->local * 4);
        snprintf(why, sizeof why,
                 "workers waited %.0f%% of the time; a round took %.3g s, an estimated %.3g s with four times the local steps",
                 100 * f->waited / dmax(1e-9, f->waited + f->worked), round, local);
        note(c, to, r, f, why);
    }
}

static void end_try(struct chooser *c, struct store_run *r, const struct leg_facts *f, f64 fall, const struct events *to) {
    char why[160];
    c->tries = false;
    c->settled = !(fall < c->back_fall);
    if (!c->settled) {
        c->stale = c->back_stale;
        r->local = c->back_local;
        c->best = c->back_fall; /* the next try asks for half of it */
    }
    snprintf(why, sizeof why, "the loss falls by %.3g a second synchronously, by %.3g before", fall, c->back_fall);
    note(c, to, r, f, why);
}

static void by_gain(struct chooser *c, struct store_run *r, const struct leg_facts *f, f64 fall, const struct events *to) {
    char why[160];
    snprintf(why, sizeof why, "the loss falls by %.3g a second, %.3g at best", fall, c->best);
    if (c->stale > 0) {
        c->tries = true;
        c->back_stale = c->stale;
        c->back_local = r->local;
        c->back_fall = fall;
        c->stale = 0;
        r->local = 1;
    } else {
        r->local = lmax(1, r->local / 2);
        c->best *= FALL_SLOW; /* the next change asks for as much again */
    }
    note(c, to, r, f, why);
}

static void by_policy(struct chooser *c, struct store_run *r, const struct leg_facts *f, const struct events *to) {
    f64 fall = (f64)NAN; /* of a probe, and of a leg that only reaches the border: too few steps */
    c->longest = lmax(c->longest, f->steps);
    if (++c->legs > PROBES && 2 * f->steps >= c->longest) {
        fall = (c->before - f->loss) / dmax(1e-9, f->seconds);
        c->before = f->loss;
    }
    if (!isnan(fall) && fall > c->best) c->best = fall;
    if (c->tries && isnan(fall)) return;
    if (c->tries)
        end_try(c, r, f, fall, to);
    else if (!isnan(fall) && fall < FALL_SLOW * c->best && (c->stale > 0 || r->local > 1))
        by_gain(c, r, f, fall, to);
    else if (c->stale == 0 && !c->settled && c->legs <= BY_TIME_LEGS)
        by_time(c, r, f, to);
    act(c, r);
}

i64 chooser_until(const struct chooser *c, i64 step, i64 until) {
    if (!c || !c->policy || c->legs >= PROBES) return until;
    return lmin(until, step + lmax(PROBE_LEAST, lmin(PROBE_MOST, (until - step) / 4)));
}

void chooser_see(struct chooser *c, struct store_run *r, const struct leg_facts *f, const struct events *to) {
    if (c->follows_clock) by_clock(r, f);
    if (c->policy) by_policy(c, r, f, to);
}
