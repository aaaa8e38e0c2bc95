/* run_dir.c - the folder of a run: lock, config.json, run.json, metrics.jsonl, checkpoints.
 *
 *     RUN/lock           held with flock by the process that writes here (E704 for a second one)
 *     RUN/config.json    every option with the value it was resolved to, as JSON that --config and `resume` read
 *     RUN/data.json      fingerprint of the data that were read (run_data.c)
 *     RUN/plan.txt       the plan of the training, with the turns it took: `stretto train --plan` repeats them
 *     RUN/run.json       {"data": ..., "model": ...} for `stretto resume` */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/api.h"
#include "api/config.h"
#include "api/earlier.h"
#include "api/mirror.h"
#include "api/plan_shape.h"
#include "base/checkpoints.h"
#include "base/file.h"
#include "base/input.h"
#include "base/json.h"
#include "ckpt/checkpoint.h"
#include "data/mend.h"
#include "report/jsonl.h"

static err path_in(const char *dir, const char *name, char out[PATH_MAX]) {
    i32 n = snprintf(out, PATH_MAX, "%s/%s", dir, name);
    return n < PATH_MAX ? 0 : FAIL(E702, "the path of the run folder is too long: %s", dir);
}

/* A run folder that may not be written to: `resume` has no --run-dir, so it continues a copy. */
static err read_only(err e, const char *run_dir) {
    char fix[2 * MEND_PATH + 120], from[MEND_PATH];
    if (e != -E702 || err_last()->fix[0]) return e;
    struct err_record r = *err_last();
    snprintf(fix, sizeof fix, "cp -r %s resumed.run && chmod -R u+w resumed.run && stretto resume resumed.run -o resumed.model",
             mend_data(run_dir, from));
    snprintf(r.fix, sizeof r.fix, "%s", fix);
    err_put(&r);
    return e;
}

err run_dir_lock(const char *run_dir, bool resume, int *lock) {
    char path[PATH_MAX];
    TRY(path_in(run_dir, "lock", path));
    *lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (*lock >= 0 && resume && access(run_dir, W_OK) != 0) {
        close(*lock);
        *lock = -1;
    }
    if (*lock < 0) return resume ? read_only(file_failed(path), run_dir) : file_option(file_failed(path), "--run-dir");
    if (file_lock(*lock)) return 0;
    close(*lock);
    *lock = -1;
    return FAIL_AT(E704, NULL,
                   resume ? "wait until the other run is over" : "--run-dir OTHER   (or wait until the other run is over)",
                   "another process is writing to the run folder %s", run_dir);
}

err run_dir_path(const struct stretto_trainer *t, const char *name, char out[PATH_MAX]) {
    return path_in(t->run_dir, name, out);
}

err run_dir_write(const struct stretto_trainer *t, const char *name, struct str *text) {
    char path[PATH_MAX];
    err e = path_in(t->run_dir, name, path);
    if (e >= 0) return file_option(file_write_text(path, text), "--run-dir");
    str_free(text);
    return e;
}

/* Absolute path of a file, which need not exist yet: a resume may start in another folder. */
static const char *whole_path(const char *path, char full[2 * PATH_MAX]) {
    char here[PATH_MAX];
    if (file_is_remote(path) || input_is(path)) return path;
    if (!path || realpath(path, full)) return path ? full : NULL;
    if (path[0] == '/' || !getcwd(here, sizeof here)) return path;
    snprintf(full, 2 * PATH_MAX, "%s/%s", here, path);
    return full;
}

static void put_path(struct js *o, const char *name, const char *path) {
    char full[2 * PATH_MAX];
    js_put_text(o, name, whole_path(path, full));
}

/* Options of which the training asks whether somebody gave them: config.json has their values only. */
static const enum opt_id asked[] = {OPT_calendar, OPT_refit_all};

static struct js *given_json(const struct options *o) {
    struct js *list = js_array();
    for (size_t i = 0; i < COUNT(asked); i++)
        if (opt_given(o, asked[i])) js_push(list, js_new_text(opt_info(asked[i])->name));
    return list;
}

static bool has_text(const struct js *list, const char *text) {
    for (i64 i = 0; i < (i64)js_len(list); i++)
        if (strcmp(js_str(js_at(list, i), ""), text) == 0) return true;
    return false;
}

/* A bit for each of these options that nobody gave; 0 where run.json does not say. */
static u8 not_given(const struct stretto_trainer *t) {
    char path[PATH_MAX];
    struct js *o = NULL;
    u8 none = 0;
    if (path_in(t->run_dir, "run.json", path) < 0 || !file_exists(path) || js_load(path, &o) < 0) return err_clear(), 0;
    const struct js *list = js_get(o, "given");
    for (size_t i = 0; i < COUNT(asked) && list; i++)
        if (!has_text(list, opt_info(asked[i])->name)) none |= (u8)(1u << i);
    js_free(o);
    return none;
}

err run_dir_given(struct stretto_trainer *t) {
    u8 none = 0;
    if (!t->run_dir || !t->resume) return 0;
    if (!trainer_is_silent(t)) none = not_given(t);
    TRY(comm_broadcast(t->ctx.comm, "given", &none, sizeof none));
    for (size_t i = 0; i < COUNT(asked); i++) {
        struct opt_meta *m = &t->o.meta[asked[i]];
        if (none >> i & 1 && m->rank == OPT_RANK_FILE) m->rank = OPT_RANK_PRESET; /* as in the run that began */
    }
    return 0;
}

static err write_run(const struct stretto_trainer *t, bool finished) {
    struct js *o = js_object();
    struct str text = {0};
    if (t->data->set->in_memory) js_put_text(o, "data", INPUT_MEMORY);
    else put_path(o, "data", t->data->set->piped ? "-" : t->data->set->path);
    put_path(o, "model", t->model_path);
    js_put_text(o, "version", STRETTO_VERSION);
    js_put_bool(o, "finished", finished);
    js_put(o, "given", given_json(&t->o));
    err e = js_text(o, &text, 2);
    js_free(o);
    if (e >= 0) return run_dir_write(t, "run.json", &text);
    str_free(&text);
    return e;
}

/* Options with files that a resume reads or writes again. Model and run folder are in run.json, so that other runs can use
 * this config file. */
static err whole_paths(struct options *o) {
    char full[2 * PATH_MAX];
    for (i32 i = 0; i < OPT_COUNT; i++) {
        const char *text = o->meta[i].text;
        const struct opt_from same = {.rank = o->meta[i].rank, .origin = o->meta[i].origin};
        if (opt_info((enum opt_id)i)->type != OPT_PATH || !text || !*text) continue;
        const bool own = i == OPT_out || i == OPT_run_dir;
        TRY(opt_set_id(o, (enum opt_id)i, own ? "" : whole_path(text, full), &same));
    }
    return 0;
}

/* The options in config.json, with which the run was begun or last resumed; those of now, where there is none. */
static err options_before(const struct stretto_trainer *t, struct options *before) {
    char path[PATH_MAX];
    TRY(path_in(t->run_dir, "config.json", path));
    if (!file_exists(path)) return opt_copy(before, &t->o);
    err e = opt_defaults(before, api_lists());
    if (e >= 0) e = config_load(path, before);
    if (e < 0) opt_free(before);
    return e;
}

/* A time limit given to `resume` holds for that call only: config.json keeps the limit of the run. */
static err keep_time_limit(const struct stretto_trainer *t, struct options *o) {
    struct options before;
    TRY(options_before(t, &before));
    const struct opt_meta *m = &before.meta[OPT_time_limit];
    const err e = opt_set_id(o, OPT_time_limit, m->text, &(struct opt_from){.rank = OPT_RANK_FLAG, .origin = m->origin});
    opt_free(&before);
    return e;
}

/* The checkpoint holds the states of these optimisers. */
static err same_optimiser(const struct stretto_trainer *t, const struct options *before, enum opt_id id) {
    const char *now = t->o.meta[id].text, *then = before->meta[id].text;
    char option[64], fix[128];
    if (strcmp(now, then) == 0) return 0;
    snprintf(option, sizeof option, "--%s %s", opt_info(id)->name, now);
    snprintf(fix, sizeof fix, "without --%s   or   the new optimizer in a new run", opt_info(id)->name);
    return FAIL_AT(E106, option, fix, "%s was begun with --%s %s, and its checkpoint holds the state of that optimizer",
                   t->run_dir, opt_info(id)->name, then);
}

/* What `resume` changes: refused before anything is written, or told. */
static err check_changes(struct stretto_trainer *t) {
    struct options before;
    if (!run_dir_has_checkpoint(t)) return 0;
    TRY(options_before(t, &before));
    err e = same_optimiser(t, &before, OPT_worker_optim);
    if (e >= 0) e = same_optimiser(t, &before, OPT_server_optim);
    if (e >= 0 && strcmp(t->o.store, before.store) != 0 && !trainer_is_silent(t))
        event_note(&t->events, EVENT_WARNING, "the run goes on with --store %s, up to here it had --store %s", t->o.store,
                   before.store);
    opt_free(&before);
    return e;
}

err run_dir_config(const struct stretto_trainer *t) {
    struct str text = {0};
    struct options o;
    if (!t->run_dir || trainer_is_silent(t)) return 0;
    err e = opt_copy(&o, &t->o);
    if (e >= 0) e = whole_paths(&o);
    if (e >= 0 && t->resume) e = keep_time_limit(t, &o);
    if (e >= 0) opt_dump_json(&o, 1u << VERB_train, &text);
    opt_free(&o);
    if (e >= 0) e = run_dir_write(t, "config.json", &text);
    return e < 0 ? e : write_run(t, false);
}

/* A new run deletes the checkpoints of the previous run in its folder. */
static err forget(const struct stretto_trainer *t) {
    char path[PATH_MAX];
    TRY(checkpoints_of(t->run_dir, path));
    return ckpt_clear(path);
}

static err forget_file(const struct stretto_trainer *t, const char *name) {
    char path[PATH_MAX];
    TRY(path_in(t->run_dir, name, path));
    return unlink(path) == 0 || errno == ENOENT ? 0 : FAIL(E702, "cannot replace %s: %s", path, strerror(errno));
}

err run_dir_finish(struct stretto_trainer *t) {
    const struct str *plan = &t->model->m->plan_text;
    if (t->run_dir && plan->len > 0) {
        struct str text = {0};
        str_addn(&text, plan->s, plan->len);
        plan_shape_line(&t->o, &text);
        TRY(run_dir_write(t, "plan.txt", &text));
    }
    if (t->run_dir && t->model->m->stopped != STOP_TIME) { /* a run that reached its time limit can continue */
        TRY(write_run(t, true));
        mirror_end(t);
        TRY(forget(t));
    }
    if (t->model->m->stopped == STOP_TIME) status_end(&t->status, "unfinished", err_exit_status(-E807));
    else status_end(&t->status, "done", 0);
    return 0;
}

static err open_metrics(struct stretto_trainer *t) {
    char path[PATH_MAX];
    TRY(path_in(t->run_dir, "metrics.jsonl", path));
    if (!t->resume && file_exists(path) && unlink(path) != 0) return FAIL(E702, "cannot replace %s: %s", path, strerror(errno));
    NEW(t->metrics, 1);
    TRY(jsonl_open(t->metrics, path));
    events_add(&t->events, jsonl_sink(t->metrics));
    return 0;
}

/* Opens the status record of this rank (`stretto top`). */
static void open_status(struct stretto_trainer *t) {
    const i32 world = t->ctx.comm ? comm_size(t->ctx.comm) : (i32)t->o.ranks;
    if (comm_watch_requested()) status_open(&t->status, t->run_dir, comm_rank(t->ctx.comm), world);
    events_add(&t->events, status_sink(&t->status));
}

stretto_err stretto_trainer_run_dir(stretto_trainer *t, const char *path, int resume) {
    if (file_is_remote(path))
        return FAIL_AT(E106, "--run-dir", "a folder of this host; the checkpoints of a model in HDFS are copied to MODEL.run",
                       "the run folder cannot be in HDFS");
    TRY(file_option(file_make_dir(path), "--run-dir"));
    mem_free(t->run_dir);
    if (!(t->run_dir = mem_strdup(path))) return -E601;
    t->resume = resume != 0;
    if (!trainer_is_silent(t)) TRY(run_dir_lock(t->run_dir, t->resume, &t->lock));
    if (t->resume) TRY(check_changes(t));
    open_status(t);
    return 0;
}

err run_dir_begin(struct stretto_trainer *t) {
    if (!t->run_dir || trainer_is_silent(t)) return 0; /* ranks > 0 read the folder, rank 0 writes it */
    if (!t->resume) {
        comm_delete_records(t->run_dir);
        if (run_dir_has_checkpoint(t))
            event_note(&t->events, EVENT_WARNING, "%s held a checkpoint of a run that was stopped: this run starts from scratch "
                       "(`stretto resume %s` would have continued it)", t->run_dir, t->run_dir);
        TRY(earlier_set_aside(t->run_dir));
        TRY(forget_file(t, "run.json"));
        TRY(forget(t));
        TRY(forget_file(t, "data.json"));
    }
    return open_metrics(t);
}

/* Takes over lock and metrics of the dead rank 0. If that fails, because its process is still exiting or the disk is full,
 * training continues without them. */
static void take_over(struct stretto_trainer *t) {
    t->resume = true; /* append to its metrics */
    trainer_listen(t);
    if (!t->run_dir) return;
    if (run_dir_lock(t->run_dir, false, &t->lock) < 0 || open_metrics(t) < 0 || mirror_open(t) < 0)
        event_note(&t->events, EVENT_WARNING, "the first rank died, and its files are no longer written: %s", err_last()->text);
    err_clear();
}

void run_dir_renumber(struct stretto_trainer *t, bool first) {
    const struct status_record before = t->status.now;
    if (t->status.open) {
        status_open(&t->status, t->run_dir, comm_rank(t->ctx.comm), comm_size(t->ctx.comm));
        t->status.now.member = before.member;
        t->status.now.members = before.members;
        t->status.now.step = before.step;
        t->status.now.steps = before.steps;
    }
    if (first) take_over(t);
}

bool run_dir_has_checkpoint(const struct stretto_trainer *t) {
    char folder[PATH_MAX], path[4096];
    i64 number;
    if (!t->run_dir || checkpoints_of(t->run_dir, folder) < 0) return false;
    return ckpt_find(folder, 0, path, &number) >= 0;
}

/* Writes a failure into the status record; later calls have no effect. */
err run_dir_status(struct stretto_trainer *t, err e) {
    if (e < 0) status_failed(&t->status, e);
    return e;
}

void run_dir_close(struct stretto_trainer *t) {
    mirror_close(t);
    status_end(&t->status, "ended", 0);
    if (t->metrics) jsonl_close(t->metrics);
    mem_free(t->metrics);
    t->metrics = NULL;
    if (t->lock >= 0) close(t->lock);
    t->lock = -1;
}

stretto_err stretto_run_fetch(const char *run, char **run_dir_out) {
    if (file_is_remote(run)) return mirror_fetch(run, run_dir_out);
    *run_dir_out = mem_strdup(run);
    return *run_dir_out ? 0 : -E601;
}

stretto_err stretto_run_paths(const char *run_dir, char **data_path, char **model_path) {
    char path[PATH_MAX];
    struct js *o = NULL;
    int lock = -1;
    *data_path = *model_path = NULL;
    if (run_dir_lock(run_dir, true, &lock) >= 0) earlier_recover(run_dir);
    else err_clear();
    if (lock >= 0) close(lock);
    TRY(path_in(run_dir, "run.json", path));
    if (!file_exists(path))
        return FAIL_AT(E705, NULL,
                       "the folder that `stretto train` names at the end (MODEL.run)   or   stretto train DATA -o MODEL   "
                       "(from the beginning)",
                       "%s has no run.json: it is no run folder, or its run ended before the training", run_dir);
    TRY(js_load(path, &o));
    const char *data = js_str(js_get(o, "data"), ""), *model = js_str(js_get(o, "model"), "");
    if (js_bool(js_get(o, "finished"), false)) {
        if (checkpoints_of(run_dir, path) >= 0) ckpt_clear(path); /* the run was killed before it deleted them */
        const bool gone = !file_is_remote(model) && !file_exists(model);
        err e = FAIL_AT(E705, NULL, "a new run with stretto train (--steps for a longer one)",
                        "the run in %s is finished: its model %s %s%s", run_dir, gone ? "was" : "is", model,
                        gone ? ", which is not there any more" : "");
        js_free(o);
        return e;
    }
    *data_path = mem_strdup(data);
    *model_path = mem_strdup(model);
    js_free(o);
    return *data_path && *model_path ? 0 : -E601;
}
