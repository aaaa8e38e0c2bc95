/* event.c - passes an event to every sink, and reports the progress of long work. */
#include "base/event.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/clock.h"

#define FIRST 0.02 /* no estimate of the remaining time before this fraction is done */
enum { PER_SECOND = 5, WHOLE = 1000 };

void event_emit(const struct events *to, const struct event *e) {
    for (i32 i = 0; to && i < to->n; i++) to->sink[i].on(to->sink[i].self, e);
}

void event_phase(const struct events *to, const char *phase) {
    event_emit(to, &(struct event){.kind = EVENT_PHASE, .text = phase, .train = (f64)NAN, .valid = (f64)NAN, .left = -1});
}

void event_note(const struct events *to, enum event_kind kind, const char *fmt, ...) {
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    event_emit(to, &(struct event){.kind = kind, .text = text, .train = (f64)NAN, .valid = (f64)NAN, .left = -1});
}

struct workload workload_start(const char *what, const struct events *to, const volatile int *stop) {
    const f64 now = clock_now();
    return (struct workload){.to = to, .stop = stop, .what = what, .started = now, .reported = now};
}

static void report(struct workload *l, f64 now, f64 share) {
    const f64 spent = now - l->started;
    l->reported = now;
    event_emit(l->to, &(struct event){.kind = EVENT_WORK, .text = l->what, .step = (i64)(WHOLE * share), .steps = WHOLE,
                                      .seconds = spent, .left = share > FIRST ? spent / share - spent : -1, .train = (f64)NAN,
                                      .valid = (f64)NAN});
}

err workload_advance(struct workload *l, f64 n) {
    if (!l) return 0;
    if (l->stop && *l->stop) return FAIL_AT(E806, NULL, "the same command again", "stopped as asked while %s", l->what);
    const f64 now = clock_now();
    l->done += n;
    if (now - l->reported > 1.0 / PER_SECOND) report(l, now, l->done < l->all ? l->done / l->all : 0.999);
    return 0;
}

void workload_end(struct workload *l) {
    if (l) report(l, clock_now(), 1);
}
