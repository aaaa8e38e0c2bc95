/* listen.c - the events of a trainer, for its caller and for the curves of the report. */
#include "api/api.h"

/* Events of the library become events of stretto.h. */
static void forward(void *self, const struct event *e) {
    struct stretto_trainer *t = self;
    if (!t->fn || e->kind > EVENT_WORK) return;
#define SAME(field) .field = e->field,
    stretto_event out = {.kind = (int)e->kind, EVENT_SHARED(SAME)};
#undef SAME
    t->fn(t->user, &out);
}

static void listen(struct stretto_trainer *t, struct sink sink) {
    if (t->events.n < SINKS_MAX) t->events.sink[t->events.n++] = sink;
}

void trainer_listen(struct stretto_trainer *t) {
    listen(t, (struct sink){forward, t});
    listen(t, course_sink(&t->course));
}
