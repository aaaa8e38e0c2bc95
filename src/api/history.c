/* history.c - passes events of the library to its caller, and keeps losses, notes and warnings for the report. */
#include <math.h>
#include <string.h>

#include "api/api.h"
#include "base/file.h"
#include "base/json.h"

void forward_event(const struct event *e, stretto_event_fn *fn, void *user) {
    if (!fn || e->kind > EVENT_DETAIL) return;
#define SAME(field) .field = e->field,
    const stretto_event out = {.kind = (int)e->kind, EVENT_SHARED(SAME)};
#undef SAME
    fn(user, &out);
}

static void forward(void *self, const struct event *e) {
    const struct stretto_trainer *t = self;
    forward_event(e, t->fn, t->user);
}

static err keep_point(struct history *c, const struct event *e) {
    GROW(c->point, c->n, c->cap);
    c->point[c->n++] = (struct curve_point){.member = e->member, .step = (f64)e->step, .train = e->train, .valid = e->valid,
                                            .best = e->best, .refit = e->refit};
    return 0;
}

static void keep(void *self, const struct event *e) {
    struct history *c = self;
    if (e->kind == EVENT_TICK || e->kind == EVENT_BEGIN) c->step = e->step;
    const bool point = e->kind == EVENT_STEP || e->kind == EVENT_VALID;
    if (point && keep_point(c, e) < 0) return; /* out of memory: a report with fewer points is better than a failed run */
    const bool note = e->kind == EVENT_NOTE || e->kind == EVENT_DETAIL;
    struct str *to = note ? &c->notes : e->kind == EVENT_WARNING ? &c->warnings : NULL;
    if (to && e->text) str_addf(to, "%s\n", e->text);
}

void trainer_listen(struct stretto_trainer *t) {
    events_add(&t->events, (struct sink){forward, t});
    events_add(&t->events, (struct sink){keep, &t->history});
}

/* Points of a line of metrics.jsonl. */
static err read_line(struct history *c, const char *line, size_t n) {
    struct js *o = NULL;
    TRY(js_parse(line, n, "metrics.jsonl", &o));
    const bool valid = strcmp(js_str(js_get(o, "split"), ""), "valid") == 0;
    const struct event e = {.kind = valid ? EVENT_VALID : EVENT_STEP, .member = (i32)js_i64(js_get(o, "member"), 0),
                            .step = js_i64(js_get(o, "step"), 0), .train = js_f64(js_get(o, "train"), (f64)NAN),
                            .valid = js_f64(js_get(o, "valid"), (f64)NAN), .best = js_bool(js_get(o, "best"), false),
                            .refit = js_bool(js_get(o, "refit"), false)};
    js_free(o);
    return keep_point(c, &e);
}

void history_read(struct history *c, const char *path) {
    char *text = NULL;
    i64 size;
    if (file_load(path, INT64_MAX / 4, &text, &size) >= 0) c->n = 0;
    for (const char *line = text; line && *line;) {
        const size_t n = strcspn(line, "\n");
        if (read_line(c, line, n) < 0) break;
        line += n + (line[n] == '\n');
    }
    mem_free(text);
    err_clear();
}

static void cell(struct str *out, f64 v) {
    char text[32];
    str_from_f64(text, v);
    str_addf(out, ",%s", isnan(v) ? "" : text);
}

err history_csv(const struct history *c, const char *path) {
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

void history_free(struct history *c) {
    mem_free(c->point);
    str_free(&c->notes);
    str_free(&c->warnings);
    memset(c, 0, sizeof *c);
}
