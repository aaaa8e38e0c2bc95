/* page.c - what `info`, the console and the report say of a forest. */
#include <math.h>
#include <stdlib.h>

#include "learn/forest/forest.h"
#include "report/report.h"

enum { TOLD = 10 };

/* ------------------------------------------------------------------ importance ---------------------------------------------- */

static int by_value(const void *a, const void *b) {
    const struct svg_bar *p = a, *q = b;
    return p->value > q->value ? -1 : p->value < q->value;
}

static err sorted(const struct forest *f, const f64 *value, struct arena *a, struct svg_bar **out) {
    ARENA_NEW(a, *out, f->bins.n);
    for (i32 i = 0; i < f->bins.n; i++) (*out)[i] = (struct svg_bar){f->bins.name[i], dmax(0, value[i])};
    qsort(*out, (size_t)f->bins.n, sizeof **out, by_value);
    return 0;
}

static void tell(const struct forest *f, const char *what, const f64 *value, f64 scale, const char *unit,
                 const struct events *to) {
    struct arena a = {0};
    struct svg_bar *bar;
    struct str text = {0};
    if (sorted(f, value, &a, &bar) >= 0) {
        for (i32 i = 0; i < imin(TOLD, f->bins.n); i++)
            str_addf(&text, "%s%s %s%s", i ? ", " : "", bar[i].name, text_digits(scale * bar[i].value, 3).s, unit);
        if (f->bins.n > TOLD) str_addf(&text, ", and %d more", f->bins.n - TOLD);
        event_note(to, EVENT_NOTE, "%s: %s", what, str_text(&text));
    } else {
        err_clear();
    }
    str_free(&text);
    arena_free(&a);
}

void forest_tell(const struct forest *f, const struct events *to) {
    tell(f, "importance by splits", f->importance, 100, "%", to);
    if (!f->permuted) return;
    if (f->nclass > 0) tell(f, "importance by permutation, accuracy lost", f->permuted, 100, "%", to);
    else tell(f, "importance by permutation, rise of the MSE", f->permuted, 1, "", to);
}

/* ------------------------------------------------------------------ info ---------------------------------------------------- */

static i64 nodes(const struct forest *f) {
    i64 n = 0;
    for (i32 k = 0; k < f->ntree; k++) n += f->tree[k].n;
    return n;
}

static void put_oob(const struct forest *f, struct js *o) {
    struct js *oob = js_object();
    const struct forest_score *s = &f->oob;
    const f64 deviation = s->square - s->sum * s->sum / s->rows;
    js_put_f64(oob, "rows", s->rows);
    if (f->nclass > 0) {
        js_put_f64(oob, "accuracy", 1 - s->error / s->rows);
    } else {
        js_put_f64(oob, "rmse", sqrt(s->error / s->rows));
        js_put_f64(oob, "r2", 1 - s->error / deviation);
    }
    js_put(o, "out_of_bag", oob);
}

static struct js *importance(const struct forest *f, const f64 *value) {
    struct js *o = js_object();
    struct arena a = {0};
    struct svg_bar *bar;
    if (sorted(f, value, &a, &bar) < 0) err_clear();
    else
        for (i32 i = 0; i < f->bins.n; i++) js_put_f64(o, bar[i].name, bar[i].value);
    arena_free(&a);
    return o;
}

static void put_facts(const struct forest *f, struct js *o) {
    js_put_text(o, "target", f->target);
    js_put_i64(o, "classes", f->nclass);
    js_put_i64(o, "inputs", f->bins.n);
    js_put_i64(o, "trees", f->ntree);
    js_put_i64(o, "nodes", nodes(f));
    put_oob(f, o);
}

err forest_describe(const struct model *m, struct description *out) {
    const struct forest *f = forest_of(m);
    out->parameters = nodes(f);
    out->ntarget = 1;
    out->target = &f->target;
    if (out->info) {
        put_facts(f, out->info);
        js_put(out->info, "importance", importance(f, f->importance));
        if (f->permuted) js_put(out->info, "importance_permuted", importance(f, f->permuted));
    }
    if (!out->record) return 0;
    put_facts(f, out->record);
    js_put_f64(out->record, "train_seconds", m->seconds);
    js_put_text(out->record, "stopped", stop_reason_text(m->stopped));
    if (out->scores) js_put_f64(out->record, "skill", out->scores->skill);
    return 0;
}

/* ------------------------------------------------------------------ report -------------------------------------------------- */

static err take_svg(struct str *svg, struct arena *a, const char **out) {
    err e = str_ok(svg);
    if (e >= 0) e = arena_keep(a, out, str_text(svg));
    str_free(svg);
    return e;
}

static err bars(const struct forest *f, const f64 *value, struct arena *a, struct report_figure *out) {
    struct svg_bar *bar;
    struct str svg = {0};
    TRY(sorted(f, value, a, &bar));
    svg_bars(&svg, bar, f->bins.n, false);
    return take_svg(&svg, a, &out->svg);
}

/* Tasks of each stage: how the work of a tree widens and ends. */
static err stages(const struct forest *f, struct arena *a, struct report_figure *out) {
    i32 n = 1;
    f64 *y[3];
    struct str svg = {0};
    for (i32 k = 0; k < FOREST_STAGES; k++)
        if (f->stage[k].gain + f->stage[k].split + f->stage[k].subtree > 0) n = k + 1;
    for (i32 i = 0; i < 3; i++) ARENA_NEW(a, y[i], n);
    for (i32 k = 0; k < n; k++) {
        y[0][k] = (f64)f->stage[k].gain;
        y[1][k] = (f64)f->stage[k].split;
        y[2][k] = (f64)f->stage[k].subtree;
    }
    const struct chart_layer layer[] = {
        {.mark = MARK_LINE, .role = ROLE_A, .name = "T_GR: counts of node, input, rows", .n = n, .y = y[0], .hover = true},
        {.mark = MARK_LINE, .role = ROLE_B, .name = "T_NS: splits of nodes", .n = n, .y = y[1], .hover = true},
        {.mark = MARK_LINE, .role = ROLE_C, .name = "trees begun, subtrees finished", .n = n, .y = y[2], .hover = true}};
    const struct chart chart = {.xlabel = "stage", .ylabel = "tasks", .zero = true, .layer = layer, .n = 3};
    svg_chart(&svg, &chart, false);
    return take_svg(&svg, a, &out->svg);
}

err forest_report(const struct model *m, const struct learn_job *job, const struct scores *s, struct arena *a, struct report *r) {
    const struct forest *f = forest_of(m);
    struct report_figure *out;
    struct str svg = {0};
    i32 n = 0;
    (void)job, (void)s;
    ARENA_NEW(a, out, 4);
    r->figure = out;
    out[n] = (struct report_figure){.id = "importance", .heading = "Importance of inputs"};
    out[n].lead = "Share of the decrease of the criterion, over all splits at an input.";
    TRY(bars(f, f->importance, a, &out[n++]));
    if (f->permuted) {
        out[n] = (struct report_figure){.id = "permuted", .heading = "Importance by permutation"};
        out[n].lead = f->nclass > 0 ? "Accuracy that out-of-bag rows lose when the input's values are exchanged."
                                    : "Rise of the out-of-bag mean squared error when the input's values are exchanged.";
        TRY(bars(f, f->permuted, a, &out[n++]));
    }
    if (f->nclass > 0) {
        out[n] = (struct report_figure){.id = "confusion", .heading = "Confusion, out of bag"};
        out[n].lead = "The trees that did not see a row vote on it.";
        svg_matrix(&svg, f->class, f->nclass, f->confusion, false);
        TRY(take_svg(&svg, a, &out[n++].svg));
    }
    out[n] = (struct report_figure){.id = "stages", .heading = "Tasks by stage", .folded = true};
    out[n].lead = "Counts of large nodes are cut by input and rows; one task finishes a node of few rows.";
    TRY(stages(f, a, &out[n++]));
    r->nfigure = n;
    return 0;
}
