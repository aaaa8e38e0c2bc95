/* api_draw.c - plans and runs as pictures: devices against time, and Chrome traces. */
#include <stdio.h>
#include <string.h>

#include "api/api.h"
#include "api/plan_handle.h"
#include "base/file.h"
#include "report/svg.h"
#include "report/trace.h"

enum { TEXT_WIDTH = 100, SVG_WIDTH = 1000 };

static err lane_name(struct arena *a, const char *kind, i32 lane, const char **out) {
    char text[32];
    snprintf(text, sizeof text, "%s %d", kind, lane);
    return (*out = arena_strdup(a, text)) ? 0 : -E601;
}

static err spans_of(const struct task_span *from, i32 n, const char *kind, struct arena *a, struct span **out) {
    ARENA_NEW(a, *out, n + 1);
    for (i32 i = 0; i < n; i++) {
        struct span *s = &(*out)[i];
        *s = (struct span){.name = from[i].name, .t0 = from[i].t0 - from[0].t0, .t1 = from[i].t1 - from[0].t0};
        TRY(lane_name(a, kind, from[i].worker, &s->lane));
    }
    return 0;
}

stretto_err stretto_trainer_trace(stretto_trainer *self, const char *json_path) {
    struct arena a = {0};
    struct str text = {0};
    struct span *span;
    if (trainer_is_silent(self)) return 0;
    if (!self->model) return FAIL(E105, "there is no model yet: run the trainer first");
    const struct model *m = self->model->m;
    err e = spans_of(m->span, m->nspan, "thread", &a, &span);
    if (e >= 0) {
        trace_json(&text, span, m->nspan);
        e = str_ok(&text);
    }
    if (e >= 0) e = file_write_all(json_path, text.s, (i64)text.len);
    str_free(&text);
    arena_free(&a);
    return e;
}

/* The predicted schedule of a plan as spans, a lane per device. */
static err schedule(const struct stretto_plan *p, struct arena *a, struct span **out) {
    const struct plan *plan = p->plan;
    struct plan_span *when;
    ARENA_NEW(a, when, plan->ntask + 1);
    ARENA_NEW(a, *out, plan->ntask + 1);
    plan_schedule(plan, when);
    for (u32 i = 0; i < plan->ntask; i++) {
        char name[64];
        struct span *s = &(*out)[i];
        plan_task_name(plan, &p->net, i, name);
        *s = (struct span){.name = arena_strdup(a, name), .t0 = when[i].t0, .t1 = when[i].t1};
        if (!s->name) return -E601;
        TRY(lane_name(a, "device", (i32)plan->task[i].device, &s->lane));
    }
    return 0;
}

stretto_err stretto_plan_draw(const stretto_plan *self, int svg, char **out) {
    struct str text = {0};
    struct arena a = {0};
    struct span *span;
    err e = 0;
    if (!svg) plan_draw_text(self->plan, TEXT_WIDTH, &text);
    else if ((e = schedule(self, &a, &span)) >= 0) svg_timeline(&text, span, self->plan->ntask, SVG_WIDTH, true);
    arena_free(&a);
    return text_end(e, &text, out);
}
