/* plan.c - from a wish ("auto", "data_sync:4") to a plan. */
#include "step/netplan.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "step/planner.h"
#include "step/strategy/strategy.h"

enum { GRAINS = 8, GRAIN_ROWS = 8, SMALL = 8, MANY = 16, AUTO_TRIES = 64 };

/* About 8 grains: enough to share out among 8 workers, few enough that zeroing and merging gradients stays cheap.  From 32 rows
 * on they are multiples of 8 rows (kernels work on tiles of rows), below that of 2, below 8 rows single ones.  16 where these are
 * alike and still have 16 rows, which costs a step no more than 2 % (docs/adr/016). */
i32 plan_grain(i32 B, i32 wanted) {
    const i32 rows = wanted > 0 ? ceil_div(B, wanted) : 0;
    if (rows > 0) return rows > 4 ? round_up(rows, GRAIN_ROWS) : rows == 3 ? 4 : rows;
    if (B < SMALL) return 1;
    if (B >= MANY * MANY && B % (MANY * GRAIN_ROWS) == 0) return B / MANY;
    return round_up(ceil_div(B, GRAINS), B >= 4 * GRAIN_ROWS ? GRAIN_ROWS : 2);
}

void plan_update_everywhere(struct plan *p) {
    netplan(p)->whole = true;
    for (u32 i = 0; i < p->ntask; i++) p->task[i].everywhere = p->task[i].everywhere || p->task[i].kind == TASK_UPDATE;
}

static err unknown(const char *name) {
    const char *names[32] = {"auto", "time"};
    char list[512] = "auto, time";
    i32 n = 2;
    for (i32 i = 0; i < strategy_count() && n < (i32)COUNT(names); i++) {
        size_t len = strlen(list);
        snprintf(list + len, sizeof list - len, ", %s", strategy_at(i)->name);
        names[n++] = strategy_at(i)->name;
    }
    i32 near = str_nearest(name, names, n);
    char fix[64];
    snprintf(fix, sizeof fix, "--parallel %s", near >= 0 ? names[near] : "auto");
    return FAIL_AT(E401, "--parallel", fix, "unknown strategy \"%s\" (known: %s)%s%s%s", name, list,
                   near >= 0 ? "; did you mean \"" : "", near >= 0 ? names[near] : "", near >= 0 ? "\"?" : "");
}

/* "name" or "name:N"; *s = its strategy, NULL for auto. */
static err parse_wish(const char *text, char *name, size_t size, i32 *n, const struct strategy **s) {
    const char *colon = strchr(text, ':');
    size_t len = colon ? (size_t)(colon - text) : strlen(text);
    i64 v = 0;
    *n = 0;
    if (len >= size) len = size - 1;
    memcpy(name, text, len);
    name[len] = 0;
    if (strcmp(name, "time") == 0) snprintf(name, size, "time_slice");
    *s = strategy_find(name);
    const bool open = strcmp(name, "auto") == 0;
    if (!*s && !open) return unknown(name);
    if (!colon) return 0;
    if (open) return FAIL_AT(E401, "--parallel", "--threads N", "auto takes no number of devices");
    bool number = str_to_i64(colon + 1, strlen(colon + 1), &v) != 0;
    if (strcmp(name, "time_slice") == 0 && (!number || v < 1 || v > SLICES_MAX))
        return FAIL_AT(E401, "--parallel", "--parallel time:16",
                       "\"%s\": a number of slices of time from 1 to %d is wanted after the colon", text, SLICES_MAX);
    if (strcmp(name, "time_slice") != 0 && (!number || v < 1 || v > MACHINE_DEVICES))
        return FAIL_AT(E401, "--parallel", "--parallel auto",
                       "\"%s\": a number of devices from 1 to %d is wanted after the colon", text, MACHINE_DEVICES);
    *n = (i32)v;
    return 0;
}

err plan_slices(const char *parallel, i32 *slices) {
    char name[64];
    i32 n;
    const struct strategy *s;
    *slices = 0;
    TRY(parse_wish(parallel, name, sizeof name, &n, &s));
    if (strcmp(name, "time_slice") == 0) *slices = n > 0 ? n : -1;
    return 0;
}

static err build(struct planner *p, const struct strategy *s, struct plan **out) {
    err e;
    u32 task;
    TRY_OUT(planner_build(p, s));
    TRY_OUT(planner_finish(p, out));
    err_clear();
    const char *bad = plan_check(*out, p->net, &task);
    if (bad) {
        e = -E601; /* memory was refused to the check itself */
        if (err_last()->code == E601) goto out;
        char name[64] = "";
        if (task < (*out)->ntask) plan_task_name(*out, p->net, task, name);
        e = FAIL(E1, "the plan of %s is wrong: %s%s%s", s->name, bad, name[0] ? ": " : "", name);
        goto out;
    }
    return 0;
out:
    planner_drop(p);
    *out = NULL;
    return e;
}

/* A plan, or why not (E401 with the strategy's sentence). */
static err make(const struct plan_request *q, const struct strategy *s, i32 n, bool chosen, struct plan **out) {
    struct planner *p = mem_alloc(sizeof *p);
    if (!p) return -E601;
    err e;
    TRY_OUT(planner_init(p, q));
    p->wanted = n;
    p->chosen = chosen;
    if (n && !s->counted) {
        e = FAIL_AT(E401, "--parallel", "--parallel serial", "strategy %s takes no number of devices", s->name);
        goto out;
    }
    const char *why = s->applicable(p);
    if (why) {
        char name[64];
        snprintf(name, sizeof name, n ? "%s:%d" : "%s", s->name, n);
        e = FAIL_AT(E401, "--parallel", "--parallel auto", "%s does not fit: %s", name, why);
        goto out;
    }
    e = build(p, s, out);
out:
    mem_free(p);
    return e;
}

static err try_one(const struct plan_request *q, const struct strategy *s, i32 n, struct plan **best) {
    struct plan *p = NULL;
    err e = make(q, s, n, false, &p);
    if (e == -E401) return 0;
    TRY(e);
    if (!*best || p->predicted < (*best)->predicted) {
        plan_free(*best);
        *best = p;
    } else {
        plan_free(p);
    }
    return 0;
}

/* The cheapest exact strategy by predicted cost; serial wins ties because it is tried first.  A net of slices was cut to be run
 * as such. */
static err automatic(const struct plan_request *q, struct plan **out) {
    err e = 0;
    *out = NULL;
    for (i32 i = 0; i < strategy_count() && e == 0; i++) {
        const struct strategy *s = strategy_at(i);
        if (q->slices > 1 ? !s->slices : !s->exact) continue;
        if (!s->counted || s->slices) e = try_one(q, s, 0, out);
        for (i32 n = 2; s->counted && !s->slices && n <= imin(q->machine->ndevice, AUTO_TRIES) && e == 0; n++)
            e = try_one(q, s, n, out);
    }
    if (e == 0 && !*out) e = FAIL(E401, "no strategy fits this model and machine");
    if (e < 0) {
        plan_free(*out);
        *out = NULL;
    }
    return e;
}

err plan_make(const struct plan_request *q, struct plan **out) {
    char name[64];
    i32 n;
    const struct strategy *s;
    *out = NULL;
    TRY(parse_wish(q->parallel, name, sizeof name, &n, &s));
    return s ? make(q, s, n, true, out) : automatic(q, out);
}
