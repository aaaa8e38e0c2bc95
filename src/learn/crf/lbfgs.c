/* lbfgs.c - L-BFGS, and OWL-QN; see train.h. */
#include <math.h>

#include "base/clock.h"
#include "learn/crf/train.h"

/* ------------------------------------------------------------------ line search --------------------------------------------- */

struct search {
    f64 f0, f;          /* at the start and at the last point */
    f64 low, high;      /* bracket of the step length; high 0 = none */
    struct crf_sums at;
};

enum { TRIALS = 25 };
#define DECREASE 1e-4
#define CURVATURE 0.9

/* Is the point good enough?  Else *t is the next length: conditions of Wolfe, bracketing and interpolation; OWL-QN: decrease
 * along the pseudo-gradient alone. */
static bool settles(const struct crf_run *r, struct search *s, f32 *t) {
    const bool l1 = r->s->l1 > 0;
    const f64 x = (f64)*t, bound = l1 ? DECREASE * s->at.moved : DECREASE * x * s->at.slope0;
    if (!(s->f <= s->f0 + bound)) {
        const f64 bend = 2 * (s->f - s->f0 - s->at.slope0 * x);
        const f64 best = isfinite(bend) && bend > 0 ? -s->at.slope0 * x * x / bend : 0;
        s->high = x;
        *t = (f32)dmin(s->low + 0.5 * (x - s->low), dmax(best, s->low + 0.1 * (x - s->low)));
        return false;
    }
    if (l1 || s->at.slope >= CURVATURE * s->at.slope0) return true;
    s->low = x;
    *t = (f32)(s->high > 0 ? 0.5 * (s->low + s->high) : 2 * x);
    return false;
}

/* Moves along a new direction until the point settles; false = no length gives a decrease. */
static err search(struct crf_run *r, struct search *s, i64 *evaluations, bool *found) {
    *s = (struct search){.f0 = s->f};
    r->turn = true;
    *found = false;
    for (i32 k = 0; k < TRIALS; k++) {
        TRY(crf_evaluate(r, &s->at, &s->f));
        r->turn = r->learn = false;
        ++*evaluations;
        if (!(s->at.slope0 < 0) && r->s->l1 == 0) return 0;
        if (settles(r, s, &r->t)) {
            *found = true;
            return 0;
        }
    }
    return 0;
}

/* ------------------------------------------------------------------ iterations ---------------------------------------------- */

static void report(const struct crf_course *o, f64 started) {
    const struct learn_job *job = o->shots->job;
    const struct event e = {.kind = EVENT_STEP, .step = o->iterations, .steps = o->r->s->iterations, .train = o->objective,
                            .epoch = (f64)NAN, .valid = (f64)NAN, .grad_norm = o->norm, .lr = (f64)NAN, .windows_per_s = (f64)NAN,
                            .seconds = clock_now() - started, .left = -1, .members = 1};
    if (comm_rank(job->use.comm) == 0) event_emit(job->use.events, &e);
}

/* No length along the direction helps: back to the last point, and on without history.  *ends: that was tried before. */
static err forget(struct crf_run *r, struct search *s, struct crf_course *o, bool *ends) {
    *ends = r->n == 0;
    r->n = r->slot = 0;
    r->t = 0;
    TRY(crf_evaluate(r, &s->at, &s->f));
    o->objective = s->f;
    r->t = s->at.norm > 0 ? (f32)(1 / sqrt(s->at.norm)) : 1;
    o->evaluations++;
    return 0;
}

static err first_point(struct crf_course *o) {
    struct crf_run *r = o->r;
    struct crf_sums at;
    if (o->shots->resumes) return crf_take_state(o);
    TRY(crf_evaluate(r, &at, &o->objective));
    r->t = at.norm > 0 ? (f32)(1 / sqrt(at.norm)) : 1; /* a first step of length 1 */
    o->evaluations = 1;
    return 0;
}

/* One iteration; *ends: no direction helps. */
static err iterate(struct crf_course *o, bool *ends) {
    struct search s = {.f = o->objective};
    bool found;
    TRY(search(o->r, &s, &o->evaluations, &found));
    if (!found) return forget(o->r, &s, o, ends);
    o->r->learn = true;
    o->r->t = 1;
    o->iterations++;
    o->calm = (o->objective - s.f) < o->r->s->epsilon * fabs(s.f) ? o->calm + 1 : 0;
    o->objective = s.f;
    o->norm = sqrt(s.at.norm);
    return 0;
}

err crf_minimise(struct crf_run *r, struct snapshots *shots, struct crf_course *o) {
    const f64 started = clock_now();
    bool ends = false;
    *o = (struct crf_course){.r = r, .shots = shots};
    shots->gather = crf_gather;
    TRY(first_point(o));
    while (o->iterations < r->s->iterations && o->calm < 3 && !ends) {
        const i64 before = o->iterations;
        const err e = snapshots_turn(shots, o->evaluations, crf_list_state, o, &o->late);
        if (e != 0) return e;
        if (o->late) break;
        TRY(iterate(o, &ends));
        if (o->iterations > before) report(o, started);
    }
    return 0;
}
