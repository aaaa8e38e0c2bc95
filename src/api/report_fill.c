/* report_fill.c - gathers what a report shows from a finished trainer. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "api/api.h"
#include "base/clock.h"
#include "report/report.h"
#include "report/trace.h"

enum { STEPS_SHOWN = 3, HISTORY_HORIZONS = 3 };

struct filler {
    const struct stretto_trainer *t;
    const struct forecaster *f;
    const struct series *s;
    struct arena a;
    struct report r;
    struct score_view view, fold;
};

static const char *textf(struct filler *p, const char *fmt, ...) PRINTF_LIKE(2, 3);
static const char *textf(struct filler *p, const char *fmt, ...) {
    char buf[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(buf, sizeof buf, fmt, ap);
    va_end(ap);
    const char *copy = arena_strdup(&p->a, buf);
    return copy ? copy : "";
}

static bool original(const struct filler *p) { return strcmp(p->t->o.score_scale, "z") != 0; }

/* --- scores and error by step --- */
static err fill_scores(struct filler *p) {
    const struct stretto_trainer *t = p->t;
    char span[72];
    if (!t->scored) return 0;
    span_label(p->s, t->split.validation, t->split.test, span);
    TRY(score_view(p->f, &t->scores, &t->o, textf(p, "test %s", span), &p->view));
    p->r.scores = p->view.table;
    return 0;
}

static err fill_steps(struct filler *p) {
    static const enum role role[SCORE_ROWS] = {ROLE_MODEL, ROLE_BASE, ROLE_NAIVE, ROLE_SNAIVE, ROLE_RIDGE};
    const struct forecast_scores *sc = &p->t->scores;
    struct report_line *line;
    if (!p->t->scored) return 0;
    ARENA_NEW(&p->a, line, SCORE_ROWS);
    p->r.line = line;
    p->r.horizon = sc->horizon;
    p->r.step_metric = strcmp(p->f->spec.loss, "mse") != 0 ? "MAE" : original(p) ? "RMSE" : "MSE";
    for (i32 r = 0; r < SCORE_ROWS; r++) {
        f64 *v;
        if (!sc->row[r]) continue;
        ARENA_NEW(&p->a, v, sc->horizon);
        for (i32 k = 0; k < sc->horizon; k++) v[k] = forecast_error(p->f, sc->row[r], k, original(p));
        line[p->r.nline++] = (struct report_line){.name = sc->name[r], .role = role[r], .value = v};
    }
    return 0;
}

/* --- forecasts --- */
static err fill_forecast(struct filler *p, const struct score_sample *w, struct report_forecast *out) {
    const struct forecast_spec *spec = &p->f->spec;
    i32 h = spec->horizon, past = (i32)lmin(w->origin, lmin(spec->context, lmax(HISTORY_HORIZONS * h, 24)));
    f64 *v, *time = NULL;
    char label[32];
    ARENA_NEW(&p->a, v, past + 5 * h);
    if (p->s->time) ARENA_NEW(&p->a, time, past + h);
    row_label(p->s, w->origin, label);
    *out = (struct report_forecast){
        .title = textf(p, "%s from %s", p->s->name[w->col], label), .nhistory = past, .horizon = h, .time = time};
    out->history = v;
    out->actual = v + past;
    out->model = v + past + h;
    out->base = p->f->base && p->f->nmember > 0 ? v + past + 2 * h : NULL;
    for (i32 i = 0; i < past + h; i++) {
        i64 row = w->origin - past + i;
        bool shown = row < p->s->nrow && !series_filled(p->s, w->col, row);
        v[i] = shown ? series_raw(p->s, w->col, row) : (f64)NAN;
        if (time) time[i] = row_seconds(p->s, row);
    }
    for (i32 k = 0; k < h; k++) {
        v[past + h + k] = w->mean[k];
        v[past + 2 * h + k] = w->base[k];
        if (!w->band) continue;
        v[past + 3 * h + k] = w->band[(i64)k * spec->nband];
        v[past + 4 * h + k] = w->band[(i64)k * spec->nband + spec->nband - 1];
    }
    if (w->band && spec->nband > 1) {
        out->low = v + past + 3 * h;
        out->high = v + past + 4 * h;
        out->low_q = spec->band[0];
        out->high_q = spec->band[spec->nband - 1];
    }
    return 0;
}

static err fill_forecasts(struct filler *p) {
    struct report_forecast *out;
    const struct forecast_scores *sc = &p->t->scores;
    if (!p->t->scored || sc->nsample == 0) return 0;
    ARENA_NEW(&p->a, out, sc->nsample);
    for (i32 i = 0; i < sc->nsample; i++) TRY(fill_forecast(p, &sc->sample[i], &out[i]));
    p->r.forecast = out;
    p->r.nforecast = sc->nsample;
    return 0;
}

/* --- curves --- */
static err fill_curve(struct filler *p, i32 member, struct report_curve *out) {
    const struct course *c = &p->t->course;
    f64 *ts, *tv, *vs, *vv;
    ARENA_NEW(&p->a, ts, c->n + 1);
    ARENA_NEW(&p->a, tv, c->n + 1);
    ARENA_NEW(&p->a, vs, c->n + 1);
    ARENA_NEW(&p->a, vv, c->n + 1);
    *out = (struct report_curve){.train_step = ts, .train = tv, .valid_step = vs, .valid = vv, .best = -1};
    for (i64 i = 0; i < c->n; i++) {
        const struct curve_point *q = &c->point[i];
        if (q->member != member || q->refit) continue; /* a refit begins anew, on other rows */
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
    i32 n = p->f->nmember;
    if (n == 0) return 0;
    ARENA_NEW(&p->a, curve, n);
    for (i32 m = 0; m < n; m++) TRY(fill_curve(p, m, &curve[m]));
    p->r.curve = curve;
    p->r.ncurve = n;
    p->r.loss = p->f->spec.loss;
    return 0;
}

/* --- parts --- */
static err fill_choice(struct filler *p) {
    const struct choice *c = &p->f->choice;
    struct score_table *t;
    struct score_row *row;
    ARENA_NEW(&p->a, t, 1);
    ARENA_NEW(&p->a, row, CHOICE_ROWS);
    *t = (struct score_table){.title = "candidates for the base, MSE on forward-chaining folds (deviations)",
                              .row = row,
                              .nrow = c->nrow,
                              .skill_metric = 0,
                              .best_naive = c->naive,
                              .nmetric = c->nfold};
    for (i32 k = 0; k < c->nfold; k++) t->metric[k] = textf(p, "fold %d", k + 1);
    for (i32 r = 0; r < c->nrow; r++) {
        row[r] = (struct score_row){
            .name = base_kind_name(c->row[r]), .role = r == c->chosen ? ROLE_BASE : ROLE_QUIET, .skill = (f64)NAN};
        for (i32 k = 0; k < c->nfold; k++) row[r].value[k] = c->loss[r][k];
    }
    p->r.parts.fold = t;
    return 0;
}

static err fill_mix(struct filler *p) {
    const struct mix *m = &p->f->mix;
    struct score_table *t;
    struct score_row *row;
    ARENA_NEW(&p->a, t, 1);
    ARENA_NEW(&p->a, row, m->nrow);
    *t = (struct score_table){.title = textf(p, "families of the base mix over %d rolling origins (deviations)", m->norigin),
                              .row = row,
                              .nrow = m->nrow,
                              .best_naive = -1,
                              .nmetric = 2,
                              .metric = {"MAE", "weight"}};
    for (i32 r = 0; r < m->nrow; r++) {
        bool season = m->row[r].part.season > 1;
        row[r] = (struct score_row){.role = m->row[r].part.weight > 0 ? ROLE_BASE : ROLE_QUIET, .skill = (f64)NAN,
                                    .value = {m->row[r].mae, m->row[r].part.weight}};
        row[r].name = season ? textf(p, "%s (%d)", base_kind_name(m->row[r].part.kind), m->row[r].part.season)
                             : base_kind_name(m->row[r].part.kind);
    }
    p->r.parts.fold = t;
    return 0;
}

static err fill_parts(struct filler *p) {
    const struct forecast_spec *spec = &p->f->spec;
    struct report_parts *parts = &p->r.parts;
    struct str base = {0};
    if (!p->f->base) return 0;
    TRY(base_label(p->f->base, &base));
    parts->base = textf(p, "%s", str_text(&base));
    str_free(&base);
    if (p->f->has_choice) TRY(fill_choice(p));
    if (p->f->has_mix) TRY(fill_mix(p));
    parts->correction =
        p->f->nmember == 0
            ? "none"
            : textf(p, "%s %dx%d%s%s%s, zero-initialised output, %d seed%s", p->t->o.cell, spec->layers, spec->hidden,
                    spec->projection ? textf(p, " projected to %d", spec->projection) : "",
                    spec->bidirectional ? " both ways" : "", spec->unroll ? " that goes on from its own output" : "",
                    p->f->nmember, p->f->nmember > 1 ? "s" : "");
    parts->guarded = p->f->has_guard;
    parts->t = p->f->guard.t;
    parts->a = p->f->nmember > 0 ? p->f->weight : 0;
    parts->blocks = p->f->guard.nblock;
    parts->base_error = parts->full_error = (f64)NAN;
    const struct forecast_scores *sc = &p->t->scores;
    if (p->t->scored && sc->row[SCORE_BASE]) {
        parts->metric = p->r.step_metric;
        parts->base_error = forecast_error(p->f, sc->row[SCORE_BASE], -1, original(p));
        parts->full_error = forecast_error(p->f, sc->row[SCORE_MODEL], -1, original(p));
    }
    if (p->f->has_choice)
        parts->note = textf(p, "ridge against the best naive one: %+.1f %% mean gain, t = %.2f over %d folds (taken when t > 2)",
                            100 * (exp(p->f->choice.gain) - 1), p->f->choice.t, p->f->choice.nfold);
    return 0;
}

/* --- facts --- */
static err fill_splits(struct filler *p) {
    const struct split *sp = &p->t->split;
    i64 row[4] = {0, sp->train, sp->validation, sp->test};
    static const char *const name[3] = {"train", "validation", "test"};
    i64 windows[3] = {p->f->train_windows, p->f->valid_windows, p->t->scores.windows};
    struct report_split *out;
    ARENA_NEW(&p->a, out, 3);
    for (i32 i = 0; i < 3; i++) {
        char first[32], last[32];
        row_label(p->s, row[i], first);
        row_label(p->s, lmax(row[i], row[i + 1] - 1), last);
        out[i] = (struct report_split){name[i], row[i], row[i + 1], textf(p, "%s", first), textf(p, "%s", last), windows[i]};
    }
    p->r.split = out;
    p->r.nsplit = 3;
    return 0;
}

static err fill_facts(struct filler *p) {
    struct report_fact *data, *machine;
    const struct machine *m = p->t->shop.machine;
    ARENA_NEW(&p->a, data, 4);
    ARENA_NEW(&p->a, machine, 6);
    data[0] = (struct report_fact){"file", p->t->data->path};
    data[1] = (struct report_fact){"read", p->t->data->summary};
    data[2] = (struct report_fact){"frequency", p->s->freq.name};
    data[3] = (struct report_fact){"season", textf(p, "%d rows", p->s->freq.season)};
    p->r.data = data;
    p->r.ndata = 4;
    machine[0] = (struct report_fact){"processor", m->cpu};
    machine[1] = (struct report_fact){"cores allowed", textf(p, "%d", m->ncore)};
    machine[2] = (struct report_fact){"threads", textf(p, "%d", m->ndevice)};
    machine[3] = (struct report_fact){"kernels", textf(p, "%s%s", p->t->shop.use.kern->name,
                                                       p->f->spec.precision == PREC_BF16 ? ", recurrent products in bf16" : "")};
    machine[4] = (struct report_fact){"memory", textf(p, "%.1f GiB, peak of this run %.1f MiB", (f64)m->memory / 1073741824.0,
                                                      (f64)mem_stats().peak / 1048576.0)};
    machine[5] = (struct report_fact){"planned buffers", textf(p, "%.1f MiB", (f64)p->f->planned_bytes / 1048576.0)};
    p->r.machine = machine;
    p->r.nmachine = 6;
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

/* Cuts a text of lines into an array. */
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
static err fill_timeline(struct filler *p) {
    const struct forecaster *f = p->f;
    struct span *out;
    if (f->nspan == 0) return 0;
    ARENA_NEW(&p->a, out, f->nspan);
    for (i32 i = 0; i < f->nspan; i++)
        out[i] = (struct span){.lane = textf(p, "thread %d", f->span[i].lane),
                               .name = f->span[i].name,
                               .t0 = f->span[i].t0 - f->span[0].t0,
                               .t1 = f->span[i].t1 - f->span[0].t0};
    p->r.span = out;
    p->r.nspan = f->nspan;
    return 0;
}

/* How the rounds of slices of time went. */
static err fill_slices(struct filler *p) {
    const struct forecaster *f = p->f;
    struct report_slices *out;
    if (!f->slice_picture[0].nslice) return 0;
    ARENA_NEW(&p->a, out, WATCH_LAYERS);
    for (i32 k = 0; k < f->watch.nlayer; k++) {
        const struct slice_picture *s = &f->slice_picture[k];
        const struct chain_count *all = f->watch.layer[k].all;
        i64 first = all[0].first + all[1].first, again = all[0].again + all[1].again;
        out[k] = (struct report_slices){.layer = s->name,
                                        .nslice = s->nslice,
                                        .steps = s->steps,
                                        .forgets = f->watch.layer[k].w,
                                        .useful = (f64)first / (f64)lmax(1, first + again),
                                        .serial = lmax(all[0].serial, all[1].serial),
                                        .trained = all[0].steps};
        for (i32 way = 0; way < 2; way++) {
            out[k].rounds[way] = (f64)all[way].rounds / (f64)lmax(1, all[way].steps);
            out[k].again[way] = (f64)all[way].again / (f64)lmax(1, all[way].first);
            out[k].gap[way] = (f64)s->gap[way];
            out[k].nround[way] = s->rounds[way];
            out[k].ran[way] = s->ran[way];
        }
    }
    p->r.slices = out;
    p->r.nslices = f->watch.nlayer;
    p->r.slice_gap = f->slice_gap;
    return 0;
}

/* A word of the shell, however long: in single quotes, unless every character is harmless. */
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

/* The command that would do it again: what was given by flag or call. */
static const char *command_line(struct filler *p, const char *data) {
    struct str line = {0};
    str_add(&line, "stretto train");
    add_word(&line, data);
    for (i32 i = 0; i < OPT_COUNT; i++) {
        const struct opt_meta *m = &p->t->o.meta[i];
        if ((m->rank == OPT_RANK_FLAG || m->rank == OPT_RANK_API) && m->text)
            add_flag(&line, opt_info((enum opt_id)i), m->text);
    }
    const char *copy = arena_strdup(&p->a, str_text(&line));
    str_free(&line);
    return copy ? copy : "";
}

static i64 parameters(const struct forecaster *f) { return f->nmember > 0 ? f->net.ntheta : 0; }

static err fill(struct filler *p) {
    char date[32];
    const struct stretto_trainer *t = p->t;
    const char *slash = strrchr(t->data->path, '/');
    clock_date(date);
    p->r.title = textf(p, "%s", slash ? slash + 1 : t->data->path);
    p->r.command = command_line(p, slash ? slash + 1 : t->data->path);
    p->r.created = textf(p, "%s UTC", date);
    p->r.version = STRETTO_VERSION;
    p->r.seconds = p->f->seconds;
    p->r.parameters = parameters(p->f);
    TRY(fill_scores(p));
    TRY(fill_steps(p));
    TRY(fill_forecasts(p));
    TRY(fill_curves(p));
    TRY(fill_parts(p));
    TRY(fill_splits(p));
    TRY(fill_facts(p));
    TRY(fill_options(p));
    TRY(fill_timeline(p));
    TRY(fill_slices(p));
    p->r.plan = p->f->plan_text.s;
    TRY(lines(p, &t->course.notes, &p->r.note, &p->r.nnote));
    return lines(p, &t->course.warnings, &p->r.warning, &p->r.nwarning);
}

static void done(struct filler *p) {
    score_view_free(&p->view);
    arena_free(&p->a);
}

err trainer_report(const struct stretto_trainer *t, const char *path) {
    struct filler p = {.t = t, .f = t->model->f, .s = t->data->s};
    err e = fill(&p);
    if (e >= 0) e = report_write(&p.r, path);
    done(&p);
    return e;
}

err trainer_plot(const struct stretto_trainer *t, const char *path) {
    struct filler p = {.t = t, .f = t->model->f, .s = t->data->s};
    err e = fill_forecasts(&p);
    if (e >= 0 && p.r.nforecast == 0) e = FAIL_AT(E106, "--plot", "--test ROWS", "there is no test part to draw");
    if (e >= 0) e = report_plot(&p.r.forecast[p.r.nforecast - 1], path);
    done(&p);
    return e;
}
