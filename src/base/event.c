/* event.c - hands an event to every sink. */
#include "base/event.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

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
