/* event.h - what a run tells whoever watches it: the trainer emits, sinks (console, metrics.jsonl, report) receive.
 *
 * Events live here, on the lowest floor, so that the trainer knows no sink and a sink no trainer. */
#ifndef STRETTO_BASE_EVENT_H
#define STRETTO_BASE_EVENT_H

#include "base/err.h"

enum event_kind {
    EVENT_NOTE,     /* text: one line worth reading ("preset short (1 series, 144 rows): ...") */
    EVENT_WARNING,  /* text */
    EVENT_BEGIN,    /* training of member `member` of `members` begins; steps = planned number */
    EVENT_STEP,     /* progress: step, epoch, train loss, lr, grad_norm, windows_per_s, seconds, left */
    EVENT_VALID,    /* like STEP with valid loss; best = it is the best so far */
    EVENT_SAVED,    /* text = path of a checkpoint or model */
    EVENT_END,      /* training over: text = why it stopped */
    EVENT_WORK,     /* text: long work that has no training steps ("choosing the base"): step of steps done, seconds, left */
    EVENT_TICK,     /* after every step: member, step, steps and no more; for status records, not for people */
    EVENT_PHASE     /* text: what begins now: "base", "train", "validate", "guard", "checkpoint", "score"; likewise */
};

struct event {
    enum event_kind kind;
    const char *text;
    i32 member, members; /* ensemble member (from 0) and count */
    i64 step, steps;
    f64 epoch, seconds, left; /* left: estimated seconds, < 0 = unknown */
    f64 train, valid;         /* losses, NaN = not measured now */
    f64 lr, grad_norm, windows_per_s;
    f64 device_share; /* of the rows of a batch that are this rank's; 0 = there is one rank */
    bool best;
    i32 rollbacks;           /* of this member so far */
    bool refit;              /* the training on all rows before the test part */
    bool early;              /* a validation that the unbroken run does not make: the time was over */
    i64 kept;                /* of EVENT_BEGIN: what was told up to this step stands, -1 = nothing of this member does */
    i64 best_step;           /* of EVENT_BEGIN: where `valid` was measured, in the run that is resumed */
    i32 slices;              /* of time, where windows are cut: 0 = they are not, and what follows says nothing */
    f64 rounds, forgets;     /* mean rounds forward since the last validation; steps after which the model forgets (w) */
    f64 useful;              /* share of the steps of slices that were no repetition */
    i64 serial;              /* training steps whose slices ran one after another */
};

/* Fields that stretto_event has under the same names: X(field) */
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

void event_emit(const struct events *to, const struct event *e); /* to may be NULL */
void event_phase(const struct events *to, const char *phase);
void event_note(const struct events *to, enum event_kind kind, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Long work without training steps: tells how far it is a few times a second, and hears that the run shall stop. */
struct labour {
    const struct events *to;  /* may be NULL */
    const volatile int *stop; /* may be NULL */
    const char *what;
    f64 done, all;            /* in any unit; all may be a guess */
    f64 begun, told;          /* clock */
};
struct labour labour_of(const char *what, const struct events *to, const volatile int *stop);
err labour_done(struct labour *l, f64 n); /* n more are done; E806 when the run shall stop; NULL is fine */
void labour_end(struct labour *l);        /* also after a failure; NULL is fine */

#endif
