/* compare.c - one row per strategy: what it costs here, or why it does not apply; and one per product of two that applies. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "step/planner.h"
#include "step/strategy/strategy.h"

static void cell_bytes(i64 bytes, char *out, size_t size) {
    f64 v;
    const char *unit = byte_unit(bytes, &v);
    if (bytes == 0)
        snprintf(out, size, "-");
    else
        snprintf(out, size, "%.*f %s", bytes < 1024 ? 0 : 1, v, unit);
}

static err row(const struct plan *p, const struct machine *m, f64 serial, struct str *out) {
    char exchange[32], peak[32];
    struct plan_memory memory;
    TRY(plan_memory(p, m, &memory));
    cell_bytes(p->exchange_bytes, exchange, sizeof exchange);
    cell_bytes(memory.most, peak, sizeof peak);
    str_addf(out, "%-26s%8.2f%10.2f%10s%13s  %s", p->strategy, p->predicted * 1e3, serial / p->predicted, exchange, peak,
             p->exact ? "yes" : "no");
    return 0;
}

/* A row for a strategy that does not apply; *why NULL = it applies. */
static err refused(const struct plan_request *q, const struct strategy *s, const char *name, struct planner *scratch,
                   const char **why, struct str *out) {
    const struct product one = {.n = 1, .cut = {{.s = s}}};
    i32 cut;
    TRY(planner_try(scratch, q, &one, false, why, &cut));
    if (*why) str_addf(out, "%-26s%8s%10s%10s%13s  not applicable: %s\n", name, "-", "-", "-", "-", *why);
    return 0;
}

/* The row of a plan that E601 has refused. */
static err no_room(const char *name, struct str *out) {
    str_addf(out, "%-26s%8s%10s%10s%13s  not applicable: %s\n", name, "-", "-", "-", "-", err_last()->text);
    err_clear();
    return str_ok(out);
}

/* The row of a product; one that does not fit into the memory of a device says so. */
static err applied(const struct plan_request *q, const char *parallel, f64 serial, struct str *out) {
    struct plan_request r = *q;
    struct plan *p;
    r.parallel = parallel;
    err e = plan_make(&r, &p);
    if (e == -E601) return no_room(parallel, out);
    TRY(e);
    e = row(p, q->machine, serial, out);
    str_add(out, "\n");
    plan_free(p);
    return e;
}

static err one(const struct plan_request *q, const struct strategy *s, struct planner *scratch, f64 serial, struct str *out) {
    const char *why;
    char name[64];
    snprintf(name, sizeof name, s->counted && !s->slices ? "%s:%d" : "%s", s->name, q->machine->ndevice);
    TRY(refused(q, s, name, scratch, &why, out));
    return why ? 0 : applied(q, s->name, serial, out);
}

/* Adds a row for the product of two cuts, each with as many parts as are useful, if it applies. */
static err two(const struct plan_request *q, i32 i, i32 k, struct planner *scratch, f64 serial, struct str *out) {
    const struct strategy *a = strategy_at(i), *b = strategy_at(k);
    const struct product pair = {.n = 2, .cut = {{.s = a}, {.s = b}}};
    const char *why;
    char name[PRODUCT_TEXT];
    i32 cut;
    if (!a->exact || !a->counted || !b->exact || !b->counted) return 0;
    TRY(planner_try(scratch, q, &pair, false, &why, &cut));
    if (why) return 0;
    product_name(&scratch->product, 0, name);
    return applied(q, name, serial, out);
}

/* Number of devices with tasks. */
static i32 at_work(const struct plan *p) {
    bool busy[MACHINE_DEVICES] = {0};
    i32 n = 0;
    for (u32 i = 0; i < p->ntask; i++) {
        n += !busy[p->task[i].device];
        busy[p->task[i].device] = true;
    }
    return n;
}

/* A row of time slices: the expected rounds, from q->forgets, and the devices that have slices. */
static err cut_row(const struct plan_request *q, struct planner *scratch, f64 serial, struct str *out) {
    struct plan_request r = *q;
    struct plan *p;
    const char *why = NULL;
    char name[64];
    i32 T = 1;
    for (i32 i = 0; i < strategy_count(); i++) {
        if (!strategy_at(i)->slices) continue;
        snprintf(name, sizeof name, "%s:%d", strategy_at(i)->name, q->slices);
        TRY(refused(q, strategy_at(i), name, scratch, &why, out));
        if (why) return 0;
    }
    r.parallel = "time";
    err e = plan_make(&r, &p);
    if (e == -E601) return no_room(name, out);
    TRY(e);
    for (i32 l = 0; l < q->net->nop; l++) T = imax(T, q->net->op[l].T);
    const i32 devices = at_work(p);
    e = row(p, q->machine, serial, out);
    str_addf(out, "     %d steps, w %d: %d rounds", T, q->forgets, 1 + ceil_div(q->forgets, T));
    if (devices < q->machine->ndevice) str_addf(out, "; %d of %d devices have slices", devices, q->machine->ndevice);
    str_add(out, "\n");
    plan_free(p);
    return e;
}

err plan_compare_sliced(const struct plan_request *q, const struct plan_request *sliced, i32 n, struct str *out) {
    struct plan_request r = *q;
    struct plan *p;
    r.parallel = "serial";
    TRY(plan_make(&r, &p));
    f64 serial = p->predicted;
    plan_free(p);
    struct planner *scratch = mem_alloc(sizeof *scratch);
    if (!scratch) return -E601;
    err e = 0;
    str_addf(out, "%-26s%8s%10s%10s%13s  %s\n", "strategy", "step ms", "speed-up", "exchange", "peak/device", "exact");
    for (i32 i = 0; i < strategy_count() && e == 0; i++)
        if (n == 0 || !strategy_at(i)->slices) e = one(q, strategy_at(i), scratch, serial, out);
    for (i32 i = 0; i < strategy_count(); i++)
        for (i32 k = i + 1; k < strategy_count() && e == 0; k++) e = two(q, i, k, scratch, serial, out);
    for (i32 i = 0; i < n && e == 0; i++) e = cut_row(&sliced[i], scratch, serial, out);
    mem_free(scratch);
    return e < 0 ? e : str_ok(out);
}

err plan_compare(const struct plan_request *q, struct str *out) { return plan_compare_sliced(q, NULL, 0, out); }
