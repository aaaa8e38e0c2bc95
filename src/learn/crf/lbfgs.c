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
static err search(struct crf_run *r, struct search *s, i32 *evaluations, bool *found) {
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

static void report(const struct resources *use, const struct crf_outcome *o, i64 most, f64 started) {
    const struct event e = {.kind = EVENT_STEP, .step = o->iterations, .steps = most, .train = o->objective,
                            .valid = (f64)NAN, .grad_norm = o->norm, .lr = (f64)NAN, .windows_per_s = (f64)NAN,
                            .seconds = clock_now() - started, .left = -1, .members = 1};
    if (comm_rank(use->comm) == 0) event_emit(use->events, &e);
}

/* No length along the direction helps: back to the last point, and on without history.  *ends: that was tried before. */
static err forget(struct crf_run *r, struct search *s, struct crf_outcome *o, bool *ends) {
    *ends = r->n == 0;
    r->n = r->slot = 0;
    r->t = 0;
    TRY(crf_evaluate(r, &s->at, &s->f));
    r->t = s->at.norm > 0 ? (f32)(1 / sqrt(s->at.norm)) : 1;
    o->evaluations++;
    return 0;
}

err crf_minimise(struct crf_run *r, const struct resources *use, struct crf_outcome *out) {
    const f64 started = clock_now();
    struct search s = {0};
    i32 calm = 0;
    bool found = true;
    *out = (struct crf_outcome){0};
    TRY(crf_evaluate(r, &s.at, &s.f));
    r->t = s.at.norm > 0 ? (f32)(1 / sqrt(s.at.norm)) : 1; /* a first step of length 1 */
    out->evaluations = 1;
    out->objective = s.f;
    while (out->iterations < r->s->iterations && calm < 3) {
        const f64 before = s.f;
        TRY(map_run_stopped(use, r->s->deadline, &out->stopped, &out->late));
        if (out->stopped || out->late) break;
        TRY(search(r, &s, &out->evaluations, &found));
        if (!found) {
            bool ends;
            TRY(forget(r, &s, out, &ends));
            if (ends) break;
            continue;
        }
        r->learn = true;
        r->t = 1;
        out->iterations++;
        out->objective = s.f;
        out->norm = sqrt(s.at.norm);
        calm = (before - s.f) < r->s->epsilon * fabs(s.f) ? calm + 1 : 0;
        report(use, out, r->s->iterations, started);
    }
    return 0;
}
