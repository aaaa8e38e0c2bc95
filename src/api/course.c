/* course.c - remembers the course of training for the curves of the report. */
#include <math.h>
#include <string.h>

#include "api/api.h"
#include "base/file.h"

static void keep(struct course *c, const struct event *e) {
    if (c->n == c->cap) {
        i64 cap = c->cap ? 2 * c->cap : 256;
        struct curve_point *p = mem_realloc(c->point, sizeof *p * (size_t)cap);
        if (!p) return; /* a report with fewer points is better than no run */
        c->point = p;
        c->cap = cap;
    }
    c->point[c->n++] = (struct curve_point){.member = e->member, .step = (f64)e->step, .train = e->train, .valid = e->valid,
                                            .best = e->best, .refit = e->refit};
}

static void on_event(void *self, const struct event *e) {
    struct course *c = self;
    if (e->kind == EVENT_STEP || e->kind == EVENT_VALID) keep(c, e);
    struct str *to = e->kind == EVENT_NOTE ? &c->notes : e->kind == EVENT_WARNING ? &c->warnings : NULL;
    if (to && e->text) str_addf(to, "%s\n", e->text);
}

struct sink course_sink(struct course *c) { return (struct sink){on_event, c}; }

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
    err e = str_ok(&out);
    if (e >= 0) e = file_write_all(path, out.s, (i64)out.len);
    str_free(&out);
    return e;
}

void course_free(struct course *c) {
    mem_free(c->point);
    str_free(&c->notes);
    str_free(&c->warnings);
    memset(c, 0, sizeof *c);
}
