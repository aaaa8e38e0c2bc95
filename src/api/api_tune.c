/* api_tune.c - `stretto tune`: a search for better options; see tune.h. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/tune.h"
#include "base/clock.h"
#include "base/file.h"

#define USUAL_LIMIT 600. /* seconds, where neither time nor trials are given */

void stretto_tune_stop(void) { tune_stop = 1; }

static void forward(void *self, const struct event *e) {
    const struct tune *t = self;
    if (!tune_silent(t)) forward_event(e, t->fn, t->user);
}

/* ------------------------------------------------------------------ the run directory --------------------------------------- */

static err lock_folder(struct tune *t) {
    TRY(file_option(file_make_dir(t->run_dir), "--run-dir"));
    return run_dir_lock(t->run_dir, false, &t->lock);
}

/* What a search must have in common with its record. */
static err about(const struct tune *t, struct str *out) {
    char hash[32];
    struct js *o = js_object(), *given = js_object();
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)t->data->kind->hash(t->data));
    js_put_text(o, "version", STRETTO_VERSION);
    js_put_text(o, "data", hash);
    js_put_i64(o, "width", t->width);
    for (i32 i = 0; i < OPT_COUNT; i++) {
        const struct opt_info *info = opt_info((enum opt_id)i);
        const enum opt_group group = info->group;
        const bool free = group == OPT_OUTPUT || group == OPT_VERB || group == OPT_MACHINE || i == OPT_time_limit;
        if (opt_given(&t->o, (enum opt_id)i) && !free) js_put_text(given, info->name, t->o.meta[i].text);
    }
    js_put(o, "options", given);
    const err e = js_text(o, out, 0);
    js_free(o);
    return e;
}

/* The fits of an earlier command, on all ranks. */
static err share_record(struct tune *t) {
    struct comm *c = t->ctx.comm;
    struct record *r = &t->record;
    if (comm_size(c) == 1) return 0;
    i64 n = r->n;
    TRY(comm_broadcast(c, "fits", &n, sizeof n));
    if (tune_silent(t)) {
        NEW(r->line, n + 1);
        r->n = (i32)n;
        r->cap = n + 1;
    }
    TRY(comm_broadcast(c, "elapsed", &r->elapsed, sizeof r->elapsed));
    return n > 0 ? comm_broadcast(c, "record", r->line, n * (i64)sizeof *r->line) : 0;
}

static err open_record(struct tune *t) {
    char path[4200];
    struct str text = {0};
    err e = about(t, &text);
    snprintf(path, sizeof path, "%s/trials.jsonl", t->run_dir);
    const bool kept = t->run_dir[0] && !tune_silent(t);
    if (e >= 0 && kept) e = lock_folder(t);
    if (e >= 0) e = record_open(kept ? path : NULL, str_text(&text), &t->search, &t->record);
    str_free(&text);
    if (comm_size(t->ctx.comm) > 1) e = comm_share_failure(t->ctx.comm, "record", e);
    if (e >= 0) e = share_record(t);
    TRY(e);
    t->began = clock_now() - t->record.elapsed;
    if (t->record.n > 0)
        event_note(&t->events, EVENT_NOTE, "goes on with %d fits that %s holds (%.0f s)", t->record.n, path, t->record.elapsed);
    return 0;
}

/* ------------------------------------------------------------------ the search ---------------------------------------------- */

static err same_everywhere(struct tune *t) {
    struct comm *c = t->ctx.comm;
    struct str text = {0};
    if (comm_size(c) == 1) return 0;
    err e = about(t, &text);
    if (e >= 0) e = comm_check_equal(c, "search", comm_hash(COMM_HASH, str_text(&text), text.len),
                                     "the same program, command, config and data file on every host");
    str_free(&text);
    return e;
}

/* Point forecasts are compared by the metric of their skill, quantiles and distributions by the error of the quantiles. */
static void choose_metric(struct tune *t) {
    const bool squared = strcmp(t->usual.loss, "mse") == 0, z = strcmp(t->o.score_scale, "z") == 0;
    if (strcmp(t->learner->name, "forecast") != 0) return;
    if (strcmp(t->usual.head, "point") != 0 && !z) snprintf(t->metric, sizeof t->metric, "wQL");
    else snprintf(t->metric, sizeof t->metric, "%s", squared ? (z ? "MSE" : "RMSE") : "MAE");
}

static err open_search(struct tune *t) {
    t->limit = t->o.time_limit > 0 ? t->o.time_limit : opt_is_auto(&t->o, OPT_trials) ? USUAL_LIMIT : 0;
    snprintf(t->run_dir, sizeof t->run_dir, "%s", t->o.run_dir ? t->o.run_dir : "");
    TRY(opt_copy(&t->usual, &t->o));
    TRY(run_context_open(&t->o, &t->events, NULL, true, &t->ctx));
    TRY(tune_open_data(t));
    TRY(tune_open_workers(t));
    choose_metric(t);
    i32 all = t->nworker;
    if (comm_size(t->ctx.comm) > 1) {
        TRY(comm_broadcast(t->ctx.comm, "threads", &all, sizeof all));
        all *= comm_size(t->ctx.comm);
    }
    t->width = imin(SEARCH_JOBS, imax(SEARCH_WIDTH, all));
    TRY(same_everywhere(t));
    TRY(open_record(t));
    event_note(&t->events, EVENT_NOTE, "search over %d options, %d fit%s at once; validation: %d parts of %lld records, %d fit%s "
               "of a whole trial", t->search.space.n, all, all == 1 ? "" : "s", t->nparts,
               (long long)(t->to[0] - t->from[0]), t->search.ladder.nfit, t->search.ladder.nfit == 1 ? "" : "s");
    return 0;
}

/* ------------------------------------------------------------------ results ------------------------------------------------- */

/* A file that cannot be written is no reason to withhold the others. */
static err write_files(struct tune *t) {
    char path[4200];
    struct str yaml = {0};
    err e = 0;
    if (t->run_dir[0]) {
        snprintf(path, sizeof path, "%s/report.html", t->run_dir);
        e = file_option(tune_page(t, path), "--run-dir");
        snprintf(path, sizeof path, "%s/best.yaml", t->run_dir);
        if (e >= 0) e = tune_yaml(t, &yaml);
        if (e >= 0) e = file_option(file_write_text(path, &yaml), "--run-dir");
        str_free(&yaml);
    }
    if (!t->o.plot || !*t->o.plot) return e;
    const struct err_record why = *err_last();
    const err drawn = file_option(tune_page(t, t->o.plot), "--plot");
    if (e < 0) err_put(&why);
    return e < 0 ? e : drawn;
}

static err give(struct tune *t, bool json, char **out, char **best_yaml) {
    struct str text = {0}, yaml = {0};
    if (tune_silent(t)) {
        TRY(text_give(&text, out));
        return text_give(&yaml, best_yaml);
    }
    TRY(text_end(json ? tune_json(t, &text) : tune_table(t, &text), &text, out));
    TRY(text_end(tune_yaml(t, &yaml), &yaml, best_yaml));
    return write_files(t);
}

static void end(struct tune *t, err e) {
    const struct err_record why = *err_last();
    if (t->ctx.comm && e < 0) comm_abort(t->ctx.comm);
    tune_close_workers(t);
    record_close(&t->record);
    search_free(&t->search);
    mem_free(t->task);
    dataset_free(t->data);
    if (t->ctx.comm && e >= 0) comm_succeed(t->ctx.comm);
    run_context_close(&t->ctx);
    if (t->lock >= 0) close(t->lock);
    opt_free(&t->usual);
    opt_free(&t->o);
    if (e < 0) err_put(&why);
}

/* Stopped before the defaults have been fitted: nothing to give. */
static err need_defaults(const struct tune *t) {
    if (t->search.n > 0 && trial_level(&t->search, 0) == t->search.ladder.nlevel - 1) return 0;
    if (t->stopped) return FAIL_AT(E806, NULL, "the same command again", "stopped before the defaults have been fitted");
    return FAIL_AT(E807, "--time-limit", "a longer --time-limit   (the same command goes on)",
                   "the time was over before the defaults have been fitted on every part of validation");
}

stretto_err stretto_tune(stretto_config *config, stretto_data *data, stretto_event_fn *fn, void *user, int json, char **out,
                         char **best_yaml) {
    struct tune *t;
    *out = *best_yaml = NULL;
    NEW(t, 1);
    *t = (struct tune){.given = data->set, .fn = fn, .user = user, .lock = -1, .record.fd = -1};
    events_add(&t->events, (struct sink){forward, t});
    err e = opt_copy(&t->o, &config->o);
    if (e >= 0) e = open_search(t);
    if (e >= 0) e = tune_run(t);
    if (e >= 0) e = need_defaults(t);
    if (e >= 0) e = give(t, json != 0, out, best_yaml);
    if (e >= 0 && t->stopped) e = STRETTO_STOP_SIGNAL;
    end(t, e);
    mem_free(t);
    tune_stop = 0;
    return e;
}
