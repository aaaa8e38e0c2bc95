/* course.c - the events of a trainer: passed on to its caller, and remembered for the curves of the report. */
#include <math.h>
#include <string.h>

#include "api/api.h"
#include "base/file.h"

/* Events of the library become events of stretto.h. */
static void forward(void *self, const struct event *e) {
    struct stretto_trainer *t = self;
    if (!t->fn || e->kind > EVENT_WORK) return;
#define SAME(field) .field = e->field,
    stretto_event out = {.kind = (int)e->kind, EVENT_SHARED(SAME)};
#undef SAME
    t->fn(t->user, &out);
}

static err keep_point(struct course *c, const struct event *e) {
    GROW(c->point, c->n, c->cap);
    c->point[c->n++] = (struct curve_point){.member = e->member, .step = (f64)e->step, .train = e->train, .valid = e->valid,
                                            .best = e->best, .refit = e->refit};
    return 0;
}

static void keep(void *self, const struct event *e) {
    struct course *c = self;
    const bool point = e->kind == EVENT_STEP || e->kind == EVENT_VALID;
    if (point && keep_point(c, e) < 0) return; /* a report with fewer points is better than no run */
    struct str *to = e->kind == EVENT_NOTE ? &c->notes : e->kind == EVENT_WARNING ? &c->warnings : NULL;
    if (to && e->text) str_addf(to, "%s\n", e->text);
}

void trainer_listen(struct stretto_trainer *t) {
    events_add(&t->events, (struct sink){forward, t});
    events_add(&t->events, (struct sink){keep, &t->course});
}

static void cell(struct str *out, f64 v) {
    char text[32];
    str_from_f64(text, v);
    str_addf(out, ",%s", isnan(v) ? "" : text);
}

err course_csv(const struct course *c, const char *path) {
    struct str out = {0};
    str_add(&out, "member,step,train,valid,best\n");
    for (i64 i = 0; i < c->n; i++) {
        str_addf(&out, "%d,%lld", c->point[i].member, (long long)c->point[i].step);
        cell(&out, c->point[i].train);
        cell(&out, c->point[i].valid);
        str_addf(&out, ",%d\n", c->point[i].best);
    }
    return file_write_text(path, &out);
}

void course_free(struct course *c) {
    mem_free(c->point);
    str_free(&c->notes);
    str_free(&c->warnings);
    memset(c, 0, sizeof *c);
}
