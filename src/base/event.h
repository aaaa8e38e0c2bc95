/* event.h - progress events of a run: the trainer emits them, sinks (console, metrics.jsonl, report) receive them. They live on
 * the lowest floor, so that trainer and sinks do not know each other. */
#ifndef STRETTO_BASE_EVENT_H
#define STRETTO_BASE_EVENT_H

#include "base/err.h"

enum event_kind {
    EVENT_NOTE,     /* text: one line worth reading ("preset short (1 series, 144 rows): ...") */
    EVENT_WARNING,  /* text */
    EVENT_BEGIN,    /* training of ensemble member `member` of `members` starts; steps = planned number */
    EVENT_STEP,     /* progress: step, epoch, train loss, lr, grad_norm, windows_per_s, seconds, left */
    EVENT_VALID,    /* like STEP with valid loss; best = it is the best so far */
    EVENT_SAVED,    /* text = path of a checkpoint or model */
    EVENT_END,      /* training of a member ended: text = reason; once more with fewer `members` if no further one is trained */
    EVENT_WORK,     /* text: long work without training steps ("choosing the base"): step of steps done, seconds, left */
    EVENT_DETAIL,   /* text: a note on how the machine works: plans, kernels, slices, messages; for --verbose and the report */
    EVENT_TICK,     /* after every step: member, step, steps only; for status records, not for users */
    EVENT_PHASE /* text: the phase that starts: "base", "train", "validate", "guard", "checkpoint", "score"; for status records */
};

struct event {
    enum event_kind kind;
    const char *text;
    i32 member, members; /* ensemble member (from 0) and count */
    i64 step, steps;
    f64 epoch, seconds, left; /* left: estimated seconds, < 0 = unknown */
    f64 train, valid;         /* losses, NaN = not measured */
    f64 lr, grad_norm, windows_per_s;
    f64 device_share; /* fraction of the batch on this rank; 0 = single rank */
    bool best;
    i32 rollbacks;           /* rollbacks of this member so far */
    bool refit;              /* final training on all rows before the test part */
    bool early;              /* a validation that an uninterrupted run would not make: the time limit was reached */
    i64 kept;                /* EVENT_BEGIN: events up to this step remain valid, -1 = no event of this member does */
    i64 best_step;           /* EVENT_BEGIN: step at which `valid` was measured in the resumed run */
    i32 slices;              /* time slices; 0 = time is not sliced and the next fields are unused */
    f64 rounds, forgets;     /* mean forward rounds since the last validation; steps after which the model forgets (w) */
    f64 useful;              /* fraction of the sliced steps that were not recomputation */
    i64 serial;              /* training steps whose slices ran sequentially */
};

/* Fields that the public stretto_event has under the same names: X(field) */
#define EVENT_SHARED(X)                                                                                                          \
    X(text) X(step) X(steps) X(member) X(members) X(epoch) X(seconds) X(left) X(train) X(valid) X(lr) X(grad_norm)               \
    X(windows_per_s) X(best) X(best_step) X(slices) X(rounds) X(forgets) X(useful)

struct sink {
    void (*on)(void *self, const struct event *e);
    void *self;
};

enum { SINKS_MAX = 8 };
struct events {
    struct sink sink[SINKS_MAX];
    i32 n;
};

/* Adds a sink; one beyond SINKS_MAX is left out. */
static inline void events_add(struct events *to, struct sink sink) {
    if (to->n < SINKS_MAX) to->sink[to->n++] = sink;
}

void event_emit(const struct events *to, const struct event *e); /* to may be NULL */
void event_phase(const struct events *to, const char *phase);
void event_note(const struct events *to, enum event_kind kind, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Progress of long work without training steps: emits EVENT_WORK a few times per second and checks for a stop request. */
struct workload {
    const struct events *to;  /* may be NULL */
    const volatile int *stop; /* may be NULL */
    const char *what;
    f64 done, all;            /* in any unit; all may be an estimate */
    f64 started, reported;    /* clock_now() at the start and at the last event */
};
struct workload workload_start(const char *what, const struct events *to, const volatile int *stop);
err workload_advance(struct workload *l, f64 n); /* adds n to `done`; E806 on a stop request; l may be NULL */
void workload_end(struct workload *l);           /* emits the last event, also after a failure; l may be NULL */

#endif
