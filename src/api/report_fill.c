/* report_fill.c - the report, the plot and the trace of a finished trainer. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "api/keep.h"
#include "api/lost.h"
#include "api/report_quality.h"
#include "base/clock.h"
#include "base/file.h"
#include "gpu/gpu.h"
#include "report/report.h"
#include "report/trace.h"

struct filler {
    const struct stretto_trainer *t;
    const struct model *m;
    struct arena a;
    struct report r;
};

/* --- curves --- */
static err fill_curve(struct filler *p, i32 member, struct report_curve *out) {
    const struct history *c = &p->t->history;
    f64 *ts, *tv, *vs, *vv;
    ARENA_NEW(&p->a, ts, c->n + 1);
    ARENA_NEW(&p->a, tv, c->n + 1);
    ARENA_NEW(&p->a, vs, c->n + 1);
    ARENA_NEW(&p->a, vv, c->n + 1);
    *out = (struct report_curve){.train_step = ts, .train = tv, .valid_step = vs, .valid = vv, .best = -1};
    for (i64 i = 0; i < c->n; i++) {
        const struct curve_point *q = &c->point[i];
        if (q->member != member || q->refit) continue; /* a refit starts from step 0 on other rows */
        if (!isnan(q->train)) {
            ts[out->ntrain] = q->step;
            tv[out->ntrain++] = q->train;
        }
        if (isnan(q->valid)) continue;
        if (q->best) out->best = out->nvalid;
        vs[out->nvalid] = q->step;
        vv[out->nvalid++] = q->valid;
    }
    return 0;
}

static err fill_curves(struct filler *p) {
    struct report_curve *curve;
    const i32 n = p->r.ncurve; /* the learner has set it */
    if (p->t->history.n == 0) p->r.ncurve = 0; /* loaded from a file, without its run */
    if (p->r.ncurve == 0) return 0;
    ARENA_NEW(&p->a, curve, n);
    for (i32 m = 0; m < n; m++) TRY(fill_curve(p, m, &curve[m]));
    p->r.curve = curve;
    return 0;
}

/* --- facts --- */
static err fill_splits(struct filler *p) {
    const struct split *sp = &p->t->job.split;
    const struct dataset *d = p->t->data->set;
    i64 row[4] = {0, sp->train, sp->validation, sp->test};
    static const char *const name[3] = {"train", "validation", "test"};
    if (sp->test == 0) return 0; /* the model was trained on other data */
    i64 windows[3] = {p->m->train_records, p->m->valid_records, p->t->scores.records};
    struct report_split *out;
    ARENA_NEW(&p->a, out, 3);
    for (i32 i = 0; i < 3; i++) {
        char first[32], last[32];
        d->kind->label(d, lmin(row[i], d->nrow - 1), first); /* a part may be empty */
        d->kind->label(d, lmin(lmax(row[i], row[i + 1] - 1), d->nrow - 1), last);
        out[i] = (struct report_split){.name = name[i],
                                       .row0 = row[i],
                                       .row1 = row[i + 1],
                                       .first = arena_strdup(&p->a, first),
                                       .last = arena_strdup(&p->a, last),
                                       .windows = windows[i]};
    }
    p->r.split = out;
    p->r.nsplit = 3;
    return 0;
}

/* Share of the time of copies in which another lane computed, in the steps of the trace; NaN = there are none. */
static f64 hidden_share(const struct model *m) {
    f64 all = 0, hidden = 0;
    for (i32 i = 0; i < m->nspan; i++) {
        const struct task_span *c = &m->span[i];
        f64 most = 0; /* of the lanes, the one that covers most of it */
        if (!c->copy) continue;
        for (i32 lane = 0; lane < GPU_LANES; lane++) {
            f64 sum = 0;
            for (i32 k = 0; k < m->nspan; k++) {
                const struct task_span *s = &m->span[k];
                if (!s->copy && s->worker == lane && lane != c->worker) sum += dmax(0, dmin(s->t1, c->t1) - dmax(s->t0, c->t0));
            }
            most = dmax(most, sum);
        }
        all += c->t1 - c->t0;
        hidden += dmin(most, c->t1 - c->t0);
    }
    return all > 0 ? hidden / all : (f64)NAN;
}

/* Memory and copies of a device, over all of the run. */
static void device_facts(struct filler *p, const struct device_wish *at, struct report_fact *machine) {
    const struct gpu_driver *d = gpu_driver_find(at->kind);
    struct arena *a = &p->a;
    struct gpu_use u;
    char hidden[96] = "";
    if (!d || !gpu_used(d, at->card, &u)) return;
    const f64 share = hidden_share(p->m);
    if (!isnan(share))
        snprintf(hidden, sizeof hidden, "; behind kernels of other lanes, in the steps of the timeline: %.0f %%", 100 * share);
    machine[p->r.nmachine++] = (struct report_fact){
        arena_printf(a, "%s:%d memory", at->kind, at->card),
        arena_printf(a, "at most %.1f MiB of %.1f MiB (%.1f %%)", (f64)u.peak / 0x1p20, (f64)u.capacity / 0x1p20,
                     100 * (f64)u.peak / dmax(1, (f64)u.capacity))};
    machine[p->r.nmachine++] = (struct report_fact){
        arena_printf(a, "%s:%d copies", at->kind, at->card),
        arena_printf(a, "%.1f MiB to it in %.3f s, %.1f MiB from it in %.3f s%s", (f64)u.to / 0x1p20, u.to_seconds,
                     (f64)u.from / 0x1p20, u.from_seconds, hidden)};
}

static err fill_facts(struct filler *p) {
    struct report_fact *data, *machine;
    struct arena *a = &p->a;
    const struct machine *m = p->t->ctx.machine;
    const struct dataset *d = p->t->data->set;
    struct description about = {0};
    ARENA_NEW(a, data, 2 + DATA_FACTS);
    ARENA_NEW(a, machine, 6 + 2 * p->t->ctx.devices.n);
    TRY(p->t->learner->ops->describe(p->m, &about));
    data[0] = (struct report_fact){"file", d->path};
    data[1] = (struct report_fact){"read", d->summary};
    p->r.data = data;
    p->r.ndata = 2 + (d->kind->facts ? d->kind->facts(d, data + 2, a) : 0);
    machine[0] = (struct report_fact){"processor", m->cpu};
    machine[1] = (struct report_fact){"cores allowed", arena_printf(a, "%d", m->ncore)};
    machine[2] = (struct report_fact){"threads", arena_printf(a, "%d", m->ndevice)};
    machine[3] = (struct report_fact){"kernels", arena_printf(a, "%s%s%s", p->t->ctx.use.kern->name,
                                                             about.kernels ? ", " : "", about.kernels ? about.kernels : "")};
    machine[4] = (struct report_fact){"memory", arena_printf(a, "%.1f GiB, peak of this run %.1f MiB",
                                                            (f64)m->memory / 1073741824.0, (f64)mem_stats().peak / 1048576.0)};
    machine[5] = (struct report_fact){"planned buffers", arena_printf(a, "%.1f MiB", (f64)p->m->planned_bytes / 1048576.0)};
    p->r.machine = machine;
    p->r.nmachine = 6;
    for (i32 i = 0; i < p->t->ctx.devices.n; i++) device_facts(p, &p->t->ctx.devices.at[i], machine);
    return 0;
}

static err fill_options(struct filler *p) {
    struct report_option *out;
    ARENA_NEW(&p->a, out, OPT_COUNT);
    for (i32 i = 0; i < OPT_COUNT; i++) {
        const struct opt_info *info = opt_info((enum opt_id)i);
        if (!(info->verbs & (1u << VERB_train)) || info->group == OPT_HIDDEN) continue;
        const struct opt_meta *meta = &p->t->o.meta[i];
        out[p->r.noption++] = (struct report_option){info->name, meta->text ? meta->text : "", meta->origin};
    }
    p->r.option = out;
    return 0;
}

/* Splits a text into an array of lines. */
static err lines(struct filler *p, const struct str *text, const char *const **out, i32 *n) {
    i32 count = 0;
    for (const char *c = str_text(text); *c; c++) count += *c == '\n';
    const char **line;
    ARENA_NEW(&p->a, line, count + 1);
    const char *at = str_text(text);
    for (i32 i = 0; i < count; i++) {
        const char *end = strchr(at, '\n');
        line[i] = arena_strndup(&p->a, at, (size_t)(end - at));
        if (!line[i]) return -E601;
        at = end + 1;
    }
    *out = line;
    *n = count;
    return 0;
}

/* The spans of the last few steps that the executor kept. */
static err spans_of(const struct model *m, struct arena *a, struct span **out) {
    ARENA_NEW(a, *out, m->nspan + 1);
    bool device = false;
    for (i32 i = 0; i < m->nspan; i++) device = device || m->span[i].copy;
    for (i32 i = 0; i < m->nspan; i++)
        (*out)[i] = (struct span){.lane = arena_printf(a, "%s %d", m->span[i].copy ? "copies" : device ? "lane" : "thread",
                                                       m->span[i].worker),
                                  .name = m->span[i].name,
                                  .t0 = m->span[i].t0 - m->span[0].t0,
                                  .t1 = m->span[i].t1 - m->span[0].t0};
    return 0;
}

/* Quotes a word for the shell, unless every character is harmless. */
static void add_word(struct str *line, const char *word) {
    static const char harmless[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-+/=:,@%";
    str_add(line, " ");
    if (*word && !word[strspn(word, harmless)]) {
        str_add(line, word);
        return;
    }
    str_add(line, "'");
    for (; *word; word++) str_addf(line, *word == '\'' ? "'\\%c'" : "%c", *word);
    str_add(line, "'");
}

static void add_flag(struct str *line, const struct opt_info *info, const char *text) {
    const bool no = info->type == OPT_BOOL && strcmp(text, "yes") != 0;
    str_addf(line, " --%s%s", no ? "no-" : "", info->name);
    if (info->type != OPT_BOOL) add_word(line, text);
}

/* The command line that repeats the run: all options given by flag or call. */
static const char *command_line(struct filler *p, const char *data) {
    struct str line = {0};
    str_add(&line, "stretto train");
    add_word(&line, data);
    for (i32 i = 0; i < OPT_COUNT; i++) {
        const struct opt_meta *m = &p->t->o.meta[i];
        const bool given = m->origin && (strcmp(m->origin, "flag") == 0 || strcmp(m->origin, "API call") == 0);
        const bool loaded = m->rank == OPT_RANK_FILE && given; /* with the model */
        if ((loaded || m->rank == OPT_RANK_FLAG || m->rank == OPT_RANK_API) && m->text)
            add_flag(&line, opt_info((enum opt_id)i), m->text);
    }
    const char *copy = arena_strdup(&p->a, str_text(&line));
    str_free(&line);
    return copy ? copy : "";
}

static err fill(struct filler *p) {
    char date[32];
    struct span *span;
    const struct stretto_trainer *t = p->t;
    const struct model_ops *ops = t->learner->ops;
    const char *path = t->data->set->path, *slash = strrchr(path, '/');
    clock_date(date);
    p->r.title = arena_printf(&p->a, "%s", slash ? slash + 1 : path);
    p->r.command = command_line(p, slash ? slash + 1 : path);
    p->r.created = arena_printf(&p->a, "%s UTC", date);
    p->r.version = STRETTO_VERSION;
    p->r.seconds = p->m->seconds;
    p->r.scores = t->scores.table;
    if (ops->report) TRY(ops->report(p->m, &t->job, trainer_scored(t) ? &t->scores : NULL, &p->a, &p->r));
    TRY(fill_curves(p));
    TRY(fill_splits(p));
    TRY(fill_facts(p));
    TRY(fill_options(p));
    TRY(report_quality(t, &p->a, &p->r.quality));
    TRY(spans_of(p->m, &p->a, &span));
    p->r.span = span;
    p->r.nspan = p->m->nspan;
    p->r.plan = p->m->plan_text.s;
    TRY(lines(p, &t->history.notes, &p->r.note, &p->r.nnote));
    return lines(p, &t->history.warnings, &p->r.warning, &p->r.nwarning);
}

static err write_report(const struct stretto_trainer *t, const char *path) {
    struct filler p = {.t = t, .m = t->model->m};
    err e = fill(&p);
    if (e >= 0) e = report_write(&p.r, path);
    arena_free(&p.a);
    return e;
}

stretto_err stretto_trainer_report(stretto_trainer *self, const char *html_path) {
    if (trainer_is_silent(self)) return 0;
    TRY(trainer_need_model(self));
    err e;
    do e = write_report(self, html_path);
    while (e < 0 && lost_left(self, e, "to write the report"));
    return keep_output(self, e, self->run_dir ? "--run-dir" : "--out"); /* without a run folder this is `stretto report` */
}

stretto_err stretto_trainer_plot(stretto_trainer *self, const char *svg_path) {
    if (trainer_is_silent(self)) return 0;
    TRY(trainer_need_model(self));
    const struct model_ops *ops = self->learner->ops;
    if (!ops->plot) return FAIL_AT(E106, "--plot", "no --plot", "a model of %s has no picture", self->learner->name);
    return keep_output(self, ops->plot(self->model->m, self->data->set, &self->job.use, &self->scores, svg_path), "--plot");
}

stretto_err stretto_trainer_trace(stretto_trainer *self, const char *json_path) {
    struct arena a = {0};
    struct str text = {0};
    struct span *span;
    if (trainer_is_silent(self)) return 0;
    TRY(trainer_need_model(self));
    err e = spans_of(self->model->m, &a, &span);
    if (e >= 0) trace_json(&text, span, self->model->m->nspan);
    if (e >= 0) e = file_write_text(json_path, &text);
    arena_free(&a);
    return keep_output(self, e, "--trace");
}
