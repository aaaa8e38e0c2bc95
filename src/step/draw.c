/* draw.c - the predicted schedule as text: devices down, time across.
 *
 *     r0.cpu0 |PPFFFFFFFFFFFFFFFFZBBBBBBBBBBBBBBBBBBBBBBBBBMMNUU|  97% busy
 *     r0.cpu1 |..FFFFFFFFFFFFFFFFZBBBBBBBBBBBBBBBBBBBBBBBBBMMNUU|  93% busy
 */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "step/netplan.h"

static const char letters[TASK_NKIND + 1] = "FBMNUPZWGDX"; /* in the order of enum task_kind */

/* The tasks of a device. */
struct row {
    const u32 *task;
    u32 n;
};

/* The letter of the task that fills most of [t0,t1), '.' when the device mostly waits. */
static char cell(const struct plan *p, const struct plan_span *span, const struct row *r, f64 t0, f64 t1) {
    f64 most[TASK_NKIND] = {0}, idle = t1 - t0, best = 0;
    char c = '.';
    for (u32 k = 0; k < r->n; k++) {
        const u32 i = r->task[k];
        f64 part = dmin(span[i].t1, t1) - dmax(span[i].t0, t0);
        if (part <= 0) continue;
        most[p->task[i].kind] += part;
        idle -= part;
    }
    for (i32 k = 0; k < TASK_NKIND; k++)
        if (most[k] > best) best = most[k], c = letters[k];
    return idle > best ? '.' : c;
}

static f64 busy(const struct plan_span *span, const struct row *r) {
    f64 sum = 0;
    for (u32 k = 0; k < r->n; k++) sum += span[r->task[k]].t1 - span[r->task[k]].t0;
    return sum;
}

static bool has(const struct plan *p, enum task_kind kind) {
    for (u32 i = 0; i < p->ntask; i++)
        if (p->task[i].kind == kind) return true;
    return false;
}

void plan_draw_text(const struct plan *p, i32 width, struct str *out) {
    struct arena a = {0};
    struct plan_groups by;
    struct plan_span *span = arena_new(&a, (p->ntask + 1) * sizeof *span);
    if (!span || plan_group(p, false, &a, &by) < 0) {
        err_clear();
        arena_free(&a);
        out->failed = true;
        return;
    }
    f64 end = plan_schedule(p, span);
    i32 name = 0;
    for (i32 d = 0; d < p->ndevice; d++) name = imax(name, (i32)strlen(p->place[d].name));
    i32 columns = imax(width - name - 14, 10);
    str_addf(out, "%s, batch %d, %d micro-batches of %d samples: predicted %.3f ms per step, one column is %.1f us\n",
             p->strategy, p->B,
             p->ngrain, p->grain, end * 1e3, end * 1e6 / columns);
    for (i32 d = 0; d < p->ndevice; d++) {
        const struct row r = {by.task + by.first[d], by.first[d + 1] - by.first[d]};
        str_addf(out, "%-*s |", name, p->place[d].name);
        for (i32 c = 0; c < columns; c++) {
            char letter = cell(p, span, &r, end * c / columns, end * (c + 1) / columns);
            str_addn(out, &letter, 1);
        }
        str_addf(out, "| %3.0f%% busy\n", end > 0 ? 100 * busy(span, &r) / end : 0);
    }
    str_add(out, "P prepare weights  F forward  ");
    if (netplan(p)->train) str_add(out, "Z zero gradients  B backward  M merge  N norm  U update  ");
    if (has(p, TASK_DW)) str_add(out, "W weight gradient  ");
    if (has(p, TASK_DX)) str_add(out, "X input gradient  ");
    if (has(p, TASK_GATHER)) str_add(out, "G gather units  D gather dz  ");
    str_add(out, ". waiting\n");
    arena_free(&a);
}
