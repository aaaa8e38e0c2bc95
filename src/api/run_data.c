/* run_data.c - RUN/data.json: what the run read, and whether a resumed run reads the same.
 *
 *     train     resolve -> data.json
 *     resume    data.json, compared -> the same: resolve with its split
 *                                      changed: E215, or with --data-changed resolve with its split -> data.json
 *               no data.json        -> warning -> resolve -> data.json
 *
 * Rank 0 compares; the other ranks end with its error, or take its split. */
#include <stdio.h>

#include "api/api.h"
#include "base/file.h"

static const char file_name[] = "data.json";

/* The result of the comparison on rank 0. */
struct finding {
    struct err_record failure; /* code 0 = continue the run */
    struct split split;        /* split of the run; test 0 = unknown, use the options */
};

static err refuse(const struct stretto_trainer *t, const struct data_change *c) {
    const char *path = c->file ? c->file : t->data->set->path;
    char where[256], fix[600];
    if (c->line) snprintf(where, sizeof where, "%.230s:%lld", path, (long long)c->line);
    else snprintf(where, sizeof where, "%.250s", path);
    if (c->verdict == DATA_LOST)
        return FAIL_AT(E215, where, "the file as it was when the run began   or   a new run with stretto train", "%s\n%s",
                       c->text, c->why);
    if (t->data->set->in_memory) snprintf(fix, sizeof fix, "the table as it was when the run began   or   option data-changed");
    else
        snprintf(fix, sizeof fix, "the file as it was when the run began   or   %sstretto resume %.400s --data-changed",
                 t->data->set->piped ? "cat DATA | " : "", t->run_dir);
    return FAIL_AT(E215, where, fix, "%s", c->text);
}

static void warn_changed(const struct stretto_trainer *t, const struct data_change *c) {
    event_note(&t->events, EVENT_WARNING, c->verdict == DATA_BEYOND ?
                   "the data changed: %s; the parts stay where they were, rows behind the test part are not used" :
                   "the data changed: %s; training continues with the data as they are, the parts stay where they were", c->text);
}

/* A run without a fingerprint, or with one that cannot be compared, continues. */
static err warn_unknown(const struct stretto_trainer *t, const char *why) {
    event_note(&t->events, EVENT_WARNING, "the data cannot be compared with those that the run began with: %s", why);
    return 0;
}

/* Errors that prevent the comparison but not the training. */
static bool is_unknown(err e) { return e == -E104 || e == -E106 || e == -E901 || e == -E902; }

static err judge(struct stretto_trainer *t, const struct js *print, struct split *split) {
    struct data_change c;
    TRY(t->data->set->kind->compare(t->data->set, print, &c));
    t->has_print = c.verdict == DATA_SAME;
    if (t->data->set->kind->place && !t->has_print) t->data->set->kind->place(&t->o, t->data->set, &c);
    if (c.verdict == DATA_LOST || (!t->has_print && !t->o.data_changed)) return refuse(t, &c);
    if (!t->has_print) warn_changed(t, &c);
    *split = c.split; /* also for equal data: an earlier resume may have kept the split for a longer file */
    return 0;
}

static err look(struct stretto_trainer *t, struct split *split) {
    char path[4096];
    struct js *print = NULL;
    TRY(run_dir_path(t, file_name, path));
    if (!file_exists(path))
        return run_dir_has_checkpoint(t) ? warn_unknown(t, "an earlier version of stretto began it and wrote no data.json") : 0;
    err e = js_load(path, &print);
    if (e >= 0) e = judge(t, print, split);
    js_free(print);
    if (!is_unknown(e)) return e;
    const struct err_record why = *err_last();
    err_clear();
    return warn_unknown(t, e == -E104 ? "data.json of the run is damaged" : why.text);
}

err run_data_check(struct stretto_trainer *t) {
    struct finding f = {0};
    if (!t->run_dir || !t->resume || !t->data->set->kind->compare) return 0;
    if (!trainer_is_silent(t) && look(t, &f.split) < 0) f.failure = *err_last();
    TRY(comm_broadcast(t->ctx.comm, "data", &f, sizeof f));
    t->job.split = f.split;
    if (f.failure.code == 0) return 0;
    err_put(&f.failure);
    return -f.failure.code;
}

err run_data_print(struct stretto_trainer *t) {
    const struct dataset *d = t->data->set;
    struct js *o = NULL;
    str_free(&t->print);
    if (!t->run_dir || trainer_is_silent(t) || t->has_print || !d->kind->print) return 0;
    err e = d->kind->print(d, &t->job.split, &o);
    if (e == -E106) { /* without the file, a resume reports that it cannot compare */
        err_clear();
        return 0;
    }
    if (e >= 0) e = js_text(o, &t->print, 0);
    js_free(o);
    return e;
}

err run_data_write(struct stretto_trainer *t) {
    return t->print.len > 0 ? run_dir_write(t, file_name, &t->print) : 0;
}
