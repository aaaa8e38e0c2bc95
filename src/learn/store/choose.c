/* choose.c - what the next leg does: steps of a ticket for --granularity SECONDS, the policy for --store auto.
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
    i64 legs;
    f64 best;   /* fall of the loss per second, the best of a leg so far */
    f64 before; /* loss of the last leg; NaN = none */
};

enum { LOCAL_MOST = 64 };
#define WAIT_MUCH 0.05 /* share of the time that workers wait, from which on local steps pay */
#define FALL_SLOW 0.5  /* of the best fall of the loss per second */

err chooser_new(struct store_run *r, struct chooser **out) {
    struct chooser *c;
    const bool clock = r->spec.every == EVERY_SECONDS;
    *out = NULL;
    if (!clock && !r->spec.choice.policy->chooses) return 0;
    NEW(c, 1);
    *c = (struct chooser){.follows_clock = clock, .policy = r->spec.choice.policy->chooses, .before = (f64)NAN};
    *out = c;
    return 0;
}

void chooser_free(struct chooser *c) { mem_free(c); }

void chooser_save(const struct chooser *c, struct store_reached *to) {
    to->count[REACHED_LEGS] = c ? c->legs : 0;
    to->gain[0] = c ? c->best : 0;
    to->gain[1] = c ? c->before : (f64)NAN;
}

void chooser_load(struct chooser *c, const struct store_reached *from) {
    c->legs = from->count[REACHED_LEGS];
    c->best = from->gain[0];
    c->before = from->gain[1];
}

static void by_clock(struct store_run *r, const struct leg_facts *f) {
    const f64 step = f->worked / (f64)f->workers / (f64)lmax(1, f->steps);
    if (step > 0) r->local = lmax(1, lmin(1000000, (i64)(r->spec.number / step + 0.5)));
}

static void note(const struct events *to, struct store_run *r, const struct leg_facts *f, const char *why) {
    const char *name = r->local > 1 ? "local:" : "synchronous, local:";
    event_note(to, EVENT_NOTE, "store auto: %s%lld from step %lld on: %s", name, (long long)r->local, (long long)f->step, why);
    struct store_record *c = r->record;
    if (c->ndecision == STORE_DECISIONS) return;
    struct store_decision *d = &c->decision[c->ndecision++];
    d->member = r->member;
    d->step = f->step;
    snprintf(d->what, sizeof d->what, "%s%lld: %.*s", name, (long long)r->local, STORE_WHY - 48, why);
}

/* More local steps while workers wait; fewer as the loss falls more slowly, as AdaComm does (Wang and Joshi, MLSys 2019), down to
 * synchronous steps.  A change of 1 is no change. */
static void by_gain(struct chooser *c, struct store_run *r, const struct leg_facts *f, const struct events *to) {
    const f64 waits = f->waited / dmax(1e-9, f->waited + f->worked);
    const f64 fall = isnan(c->before) ? (f64)NAN : (c->before - f->loss) / dmax(1e-9, f->seconds);
    char why[160];
    c->legs++;
    c->before = f->loss;
    if (!isnan(fall) && fall > c->best) c->best = fall;
    if (!isnan(fall) && c->legs > 2 && fall < FALL_SLOW * c->best && r->local > 1) {
        snprintf(why, sizeof why, "the loss falls by %.3g a second, %.3g at best", fall, c->best);
        r->local = lmax(1, r->local / 2);
        c->best *= FALL_SLOW; /* the next change asks for as much again */
        note(to, r, f, why);
    } else if (waits > WAIT_MUCH && c->legs <= 4 && r->local < LOCAL_MOST) {
        snprintf(why, sizeof why, "workers waited %.0f%% of the time", 100 * waits);
        r->local = lmin(LOCAL_MOST, r->local * 4);
        note(to, r, f, why);
    }
}

void chooser_see(struct chooser *c, struct store_run *r, const struct leg_facts *f, const struct events *to) {
    if (c->follows_clock) by_clock(r, f);
    if (c->policy) by_gain(c, r, f, to);
    r->now.value = (f64)r->local;
}
