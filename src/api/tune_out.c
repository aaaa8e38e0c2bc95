/* tune_out.c - results of a search: the table of trials, the config, JSON, and a picture of what mattered. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/tune.h"
#include "base/file.h"
#include "report/report.h"

enum { TRIALS_SHOWN = 20, BARS_SHOWN = 12 };

/* ------------------------------------------------------------------ order --------------------------------------------------- */

struct placed {
    i32 trial, level;
    f64 score;
};

/* More fits first, then the better score; failed trials last. */
static int by_place(const void *a, const void *b) {
    const struct placed *x = a, *y = b;
    if (x->level != y->level) return y->level - x->level;
    if (x->score != y->score && !isnan(x->score) && !isnan(y->score)) return x->score < y->score ? -1 : 1;
    return x->trial - y->trial;
}

static err place_trials(const struct tune *t, struct placed **out) {
    const struct search *s = &t->search;
    NEW(*out, s->n + 1);
    for (i32 i = 0; i < s->n; i++) {
        struct placed *p = &(*out)[i];
        *p = (struct placed){.trial = i, .level = s->trial[i].failed ? -2 : trial_level(s, i), .score = (f64)NAN};
        if (p->level >= 0) p->score = trial_score(s, i, p->level, NULL);
    }
    qsort(*out, (size_t)s->n, sizeof **out, by_place);
    return 0;
}

static f64 percent(f64 score) { return 100 * (exp(score) - 1); }

/* ------------------------------------------------------------------ table --------------------------------------------------- */

static const char *metric_of(const struct tune *t) { return t->metric[0] ? t->metric : "error"; }

static void first_line(const struct tune *t, struct str *out) {
    const struct search *s = &t->search;
    i32 full = 0, failed = 0;
    for (i32 i = 0; i < s->n; i++) {
        full += trial_level(s, i) == s->ladder.nlevel - 1;
        failed += s->trial[i].failed;
    }
    str_addf(out, "%d trial%s, %d of them with all fits", s->n, s->n == 1 ? "" : "s", full);
    if (failed > 0) str_addf(out, ", %d failed", failed);
    str_addf(out, "; %s on %d parts of %lld records of validation\n", metric_of(t), t->nparts,
             (long long)(t->to[0] - t->from[0]));
}

static void trial_line(const struct tune *t, const struct placed *p, struct str *out) {
    const struct trial *trial = &t->search.trial[p->trial];
    char score[24] = "-", fits[24];
    if (p->level == -2) snprintf(score, sizeof score, "failed");
    if (percent(p->score) > 999) snprintf(score, sizeof score, "> +999 %%");
    else if (!isnan(p->score)) snprintf(score, sizeof score, "%+.1f %%", percent(p->score));
    snprintf(fits, sizeof fits, "%d/%d", trial->done, t->search.ladder.nfit);
    str_addf(out, "%5d  %9s  %5s  %8.1f  ", p->trial, score, fits, trial->seconds);
    point_label(&t->search.space, &trial->at, out);
    if (trial->failed) str_addf(out, " (%s)", trial->why);
    str_add(out, "\n");
}

static void last_line(const struct tune *t, struct str *out) {
    const struct search_choice *c = &t->choice;
    if (c->trial > 0) str_addf(out, "chosen: trial %d, %s\n", c->trial, c->why);
    else str_addf(out, "chosen: the defaults (%s)\n", c->why);
}

err tune_table(const struct tune *t, struct str *out) {
    struct placed *place;
    TRY(place_trials(t, &place));
    first_line(t, out);
    str_add(out, "trial      error   fits   seconds  options\n");
    for (i32 i = 0; i < imin(t->search.n, TRIALS_SHOWN); i++) trial_line(t, &place[i], out);
    if (t->search.n > TRIALS_SHOWN) str_addf(out, "(%d more in %s)\n", t->search.n - TRIALS_SHOWN,
                                            t->run_dir[0] ? "trials.jsonl" : "--json");
    last_line(t, out);
    mem_free(place);
    return 0;
}

/* ------------------------------------------------------------------ JSON ---------------------------------------------------- */

static struct js *trial_json(const struct tune *t, i32 i) {
    const struct search *s = &t->search;
    const struct trial *trial = &s->trial[i];
    const i32 level = trial->failed ? -1 : trial_level(s, i);
    struct js *o = js_object(), *errors = js_array();
    js_put_i64(o, "trial", i);
    js_put(o, "options", point_json(&s->space, &trial->at));
    js_put_i64(o, "fits", trial->done);
    js_put_f64(o, "ratio", level < 0 ? (f64)NAN : exp(trial_score(s, i, level, NULL)));
    for (i32 k = 0; k < trial->done; k++)
        for (i32 p = 0; p < s->ladder.nparts; p++) js_push(errors, js_new_f64(trial->error[k][p]));
    js_put(o, "errors", errors);
    js_put_f64(o, "seconds", trial->seconds);
    if (trial->failed) js_put_text(o, "failed", trial->why);
    return o;
}

static struct js *importance_json(const struct tune *t) {
    f64 share[SPACE_MOST];
    struct js *o = js_object();
    search_importance(&t->search, share);
    for (i32 d = 0; d < t->search.space.n; d++) js_put_f64(o, opt_info(t->search.space.dim[d].id)->name, share[d]);
    return o;
}

err tune_json(const struct tune *t, struct str *out) {
    const struct search_choice *c = &t->choice;
    struct js *o = js_object(), *trials = js_array();
    js_put_i64(o, "chosen", c->trial);
    js_put_text(o, "why", c->why);
    js_put_i64(o, "best", c->best);
    js_put_f64(o, "gain", c->gain);
    js_put_f64(o, "z", c->z);
    js_put_f64(o, "z_needed", c->needed);
    js_put_text(o, "metric", metric_of(t));
    js_put_i64(o, "parts", t->nparts);
    js_put_bool(o, "stopped", t->stopped);
    for (i32 i = 0; i < t->search.n; i++) js_push(trials, trial_json(t, i));
    js_put(o, "trials", trials);
    js_put(o, "importance", importance_json(t));
    const err e = js_text(o, out, 2);
    js_free(o);
    return e;
}

/* ------------------------------------------------------------------ config -------------------------------------------------- */

/* What describes data, model and training; not where this search wrote, nor how long it took. */
static bool belongs(enum opt_id id) {
    const enum opt_group group = opt_info(id)->group;
    if (id == OPT_time_limit || id == OPT_threads || !(opt_info(id)->verbs & 1u << VERB_train)) return false;
    return group != OPT_OUTPUT || id == OPT_stride || id == OPT_score_scale || id == OPT_score_steps;
}

err tune_yaml(const struct tune *t, struct str *out) {
    const struct search *s = &t->search;
    const struct trial *trial = &s->trial[t->choice.trial];
    struct options o;
    char origin[64];
    snprintf(origin, sizeof origin, "tune: trial %d", t->choice.trial);
    TRY(opt_copy(&o, &t->o));
    err e = point_set(&s->space, &trial->at, origin, &o);
    str_addf(out, "# made by stretto tune from %s: stretto train DATA -c FILE\n# %d trials; %s\n", t->given->path, s->n,
             t->choice.trial ? "" : "the defaults stay");
    str_addf(out, "# %s\n# %s on the parts of validation:", t->choice.why, metric_of(t));
    for (i32 k = ladder_first(&s->ladder, s->ladder.nlevel - 1); k < trial->done; k++)
        for (i32 p = 0; p < s->ladder.nparts; p++) str_addf(out, " %.4g", trial->error[k][p]);
    str_add(out, "\n");
    for (i32 i = 0; i < OPT_COUNT && e >= 0; i++)
        if (opt_given(&o, (enum opt_id)i) && belongs((enum opt_id)i)) opt_dump_line(&o, (enum opt_id)i, out);
    opt_free(&o);
    return e;
}

/* ------------------------------------------------------------------ picture ------------------------------------------------- */

static int by_value(const void *a, const void *b) {
    const struct svg_bar *x = a, *y = b;
    return x->value != y->value ? (x->value > y->value ? -1 : 1) : strcmp(x->name, y->name);
}

static void draw_bars(const struct tune *t, struct str *out) {
    f64 share[SPACE_MOST];
    struct svg_bar bar[SPACE_MOST];
    search_importance(&t->search, share);
    for (i32 d = 0; d < t->search.space.n; d++)
        bar[d] = (struct svg_bar){opt_info(t->search.space.dim[d].id)->name, 100 * share[d]};
    qsort(bar, (size_t)t->search.space.n, sizeof *bar, by_value);
    svg_bars(out, bar, imin(t->search.space.n, BARS_SHOWN), false);
}

struct course {
    f64 *x, *y, *best; /* [n] seconds; error of a fit's trial so far and of the best with all fits, in per cent of the defaults */
    i32 n;
};

/* Every fit again in the order of time. */
static void follow(const struct tune *t, struct search *again, struct course *c) {
    f64 best = 100;
    for (i32 i = 0; i < t->record.n; i++) {
        const struct record_line *l = &t->record.line[i];
        if (l->trial >= again->n || l->failed || l->fit != again->trial[l->trial].done) continue;
        struct trial *trial = &again->trial[l->trial];
        memcpy(trial->error[l->fit], l->error, sizeof l->error);
        trial->done++;
        const i32 level = trial_level(again, l->trial);
        const f64 score = level < 0 || trial->done != again->ladder.end[level] ? (f64)NAN
                                                                              : trial_score(again, l->trial, level, NULL);
        if (isnan(score)) continue;
        const f64 now = 100 * exp(dmin(score, log(2)));
        if (level == again->ladder.nlevel - 1) best = dmin(best, now);
        c->x[c->n] = l->elapsed;
        c->y[c->n] = now;
        c->best[c->n++] = best;
    }
}

static err draw_course(const struct tune *t, struct str *out) {
    struct search again = t->search;
    struct course c = {0};
    struct arena a = {0};
    err e = mem_new((void **)&again.trial, t->search.n + 1, sizeof *again.trial);
    c.x = arena_array(&a, t->record.n + 1, sizeof *c.x);
    c.y = arena_array(&a, t->record.n + 1, sizeof *c.y);
    c.best = arena_array(&a, t->record.n + 1, sizeof *c.best);
    if (e >= 0 && c.x && c.y && c.best) {
        for (i32 i = 0; i < again.n; i++) again.trial[i] = (struct trial){.at = t->search.trial[i].at};
        follow(t, &again, &c);
        const struct chart_layer layer[] = {
            {.mark = MARK_LINE, .role = ROLE_MODEL, .name = "best with all fits", .n = c.n, .x = c.x, .y = c.best, .hover = true},
            {.mark = MARK_POINTS, .role = ROLE_QUIET, .name = "trials", .n = c.n, .x = c.x, .y = c.y}};
        const struct chart chart = {.title = "error on validation, % of the defaults", .xlabel = "seconds", .layer = layer,
                                    .n = (i32)COUNT(layer)};
        svg_chart(out, &chart, false);
    }
    mem_free(e >= 0 ? again.trial : NULL);
    arena_free(&a);
    return e < 0 ? e : c.best ? 0 : -E601;
}

err tune_page(const struct tune *t, const char *path) {
    const char *end = strrchr(path, '.');
    struct str bars = {0}, course = {0}, lead = {0}, both = {0};
    draw_bars(t, &bars);
    err e = draw_course(t, &course);
    last_line(t, &lead);
    if (e >= 0) e = str_ok(&bars) < 0 || str_ok(&course) < 0 || str_ok(&lead) < 0 ? -E601 : 0;
    if (e >= 0 && end && strcmp(end, ".svg") == 0) {
        const char *const charts[] = {str_text(&bars), str_text(&course)};
        svg_stack(&both, "importance of options, and the best error over time", charts, 2);
        e = file_write_text(path, &both);
    } else if (e >= 0) {
        const struct report_figure figure[] = {
            {.id = "course", .heading = "Course of the search", .lead = str_text(&lead), .svg = str_text(&course)},
            {.id = "importance", .heading = "What mattered",
             .lead = "Share of the variance of trials after their first fits that an option explains alone, in %.",
             .svg = str_text(&bars)}};
        const struct report page = {.title = "tune", .seconds = (f64)NAN, .slice_gap = (f64)NAN, .nfigure = 2, .figure = figure};
        e = report_write(&page, path);
    }
    str_free(&bars);
    str_free(&course);
    str_free(&lead);
    str_free(&both);
    return e;
}
