/* course.c - remembers the course of training for the curves of the report. */
#include <math.h>
#include <string.h>

#include "api/api.h"

static void keep(struct course *c, const struct event *e) {
    if (c->n == c->cap) {
        i64 cap = c->cap ? 2 * c->cap : 256;
        struct curve_point *p = mem_realloc(c->point, sizeof *p * (size_t)cap);
        if (!p) return; /* a report with fewer points is better than no run */
        c->point = p;
        c->cap = cap;
    }
    c->point[c->n++] = (struct curve_point){.member = e->member, .step = (f64)e->step, .train = e->train, .valid = e->valid, .best = e->best};
}

static void on_event(void *self, const struct event *e) {
    struct course *c = self;
    if (e->kind == EVENT_STEP || e->kind == EVENT_VALID) keep(c, e);
    struct str *to = e->kind == EVENT_NOTE ? &c->notes : e->kind == EVENT_WARNING ? &c->warnings : NULL;
    if (to && e->text) str_addf(to, "%s\n", e->text);
}

struct sink course_sink(struct course *c) { return (struct sink){on_event, c}; }

void course_free(struct course *c) {
    mem_free(c->point);
    str_free(&c->notes);
    str_free(&c->warnings);
    memset(c, 0, sizeof *c);
}
