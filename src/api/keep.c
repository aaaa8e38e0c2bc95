/* keep.c - see keep.h. */
#define _GNU_SOURCE
#include "api/keep.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "comm/comm.h"

enum { PLACES = 4, REPORT_BYTES = 1 << 18, TEXT_BYTES = 1 << 16, PATHS = 2 * PATH_MAX, ENDING = 8 };
static const char unfinished[] = ".part", earlier[] = ".earlier";

/* ------------------------------------------------------------------ before training ----------------------------------------- */

/* The files that the run will write at the end, with their sizes. */
struct need {
    const char *path, *option;
    i64 bytes;
    struct file_room room;
    bool known;
};

static err too_little(const struct need *n, f64 needed, f64 free, const char *what) {
    FAIL(E703, "%s for %s: %.2f MB are needed at the end of the training, %.2f MB %s", what, n->path, needed / 1e6, free / 1e6,
         free < n->room.most ? "are free" : "are allowed (ulimit -f)");
    return file_option(-E703, n->option);
}

/* Adds up the needs on each file system; E703 names the first file that does not fit. */
static err check_room(struct need *need, i32 n) {
    for (i32 i = 0; i < n; i++) {
        struct stat st;
        f64 sum = 0;
        const char *path = need[i].path;
        const bool device = path && stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
        need[i].known = path && *path && !device && file_room(path, &need[i].room);
        if (!need[i].known) continue;
        if ((f64)need[i].bytes > need[i].room.most)
            return too_little(&need[i], (f64)need[i].bytes, need[i].room.most, "files are limited to less than is needed");
        for (i32 k = 0; k <= i; k++)
            if (need[k].known && need[k].room.device == need[i].room.device) sum += (f64)need[k].bytes;
        if (sum > need[i].room.bytes) return too_little(&need[i], sum, need[i].room.bytes, "there is too little space");
    }
    return 0;
}

static bool reserve_path(const struct stretto_trainer *t, char path[PATH_MAX]) {
    return t->run_dir && run_dir_path(t, "reserve", path) >= 0;
}

void keep_make_room(void *trainer) {
    char path[PATH_MAX];
    if (reserve_path(trainer, path)) unlink(path);
}

/* Reserves disk space in RUN for report and model; for the report only if that is too much and -o is on another disk. */
static err reserve(const struct stretto_trainer *t, const struct need *report, const struct need *model) {
    char path[PATH_MAX];
    if (!reserve_path(t, path) || !report->known) return 0;
    const bool other = model->known && model->room.device != report->room.device;
    err e = file_reserve(path, (i64)dmin((f64)(report->bytes + model->bytes), report->room.most));
    if (e < 0 && other) e = file_reserve(path, report->bytes);
    return file_option(e, "--run-dir");
}

err keep_foresee(void *trainer, i64 model, i64 checkpoint) {
    struct stretto_trainer *t = trainer;
    char in_run[PATH_MAX];
    if (t->foreseen || !t->run_dir) return 0;
    t->foreseen = true;
    keep_make_room(t);
    TRY(run_dir_path(t, "report.html", in_run));
    struct need need[] = {{in_run, "--run-dir", REPORT_BYTES, {0}, false}, {t->model_path, "--out", model, {0}, false},
                          {t->o.log, "--log", TEXT_BYTES, {0}, false},     {t->o.plot, "--plot", TEXT_BYTES, {0}, false},
                          {t->o.trace, "--trace", TEXT_BYTES, {0}, false}, {t->o.scores, "--scores", TEXT_BYTES, {0}, false}};
    TRY(check_room(need, COUNT(need)));
    if (need[0].known && (f64)(2 * checkpoint) > need[0].room.bytes - (f64)model)
        event_note(&t->events, EVENT_WARNING, "checkpoints will not fit: two of %.2f MB, and %.2f MB are free for %s",
                   (f64)checkpoint / 1e6, need[0].room.bytes / 1e6, t->run_dir);
    return reserve(t, &need[0], &need[1]);
}

/* ------------------------------------------------------------------ places -------------------------------------------------- */

static const char *variable(const char *name) {
    const char *text = getenv(name);
    return text && text[0] == '/' ? text : NULL;
}

/* FOLDER/NAME-HASH.model, the same for every process that knows the run folder. */
static bool elsewhere(const struct stretto_trainer *t, const char *folder, const char *more, char path[PATHS]) {
    char full[PATH_MAX];
    if (!folder || !realpath(t->run_dir, full)) return false;
    const char *slash = strrchr(full, '/');
    const u64 hash = comm_hash(COMM_HASH, full, strlen(full));
    return snprintf(path, PATHS, "%s%s/%.100s-%016llx.model", folder, more, slash ? slash + 1 : full,
                    (unsigned long long)hash) < PATHS - ENDING;
}

/* Folder k of those that may hold the model, from 0; false = it is not available. */
static bool place(const struct stretto_trainer *t, i32 k, char path[PATHS]) {
    if (!t->run_dir) return false;
    if (k == 0) return snprintf(path, PATHS, "%s/trained.model", t->run_dir) < PATHS - ENDING;
    if (k == 1) return snprintf(path, PATHS, "%s.trained", t->run_dir) < PATHS - ENDING;
    if (k == 3) return elsewhere(t, variable("TMPDIR") ? variable("TMPDIR") : "/tmp", "", path);
    if (variable("XDG_STATE_HOME")) return elsewhere(t, variable("XDG_STATE_HOME"), "/stretto", path);
    return elsewhere(t, variable("HOME"), "/.local/state/stretto", path);
}

/* True if the file belongs to this user: in a shared folder, files of others are neither read nor replaced. */
static bool is_own(const char *path, bool otherwise) {
    struct stat st;
    if (lstat(path, &st) != 0) return otherwise;
    return S_ISREG(st.st_mode) && st.st_uid == geteuid();
}

static void forget(const char *path, const char *ending) {
    char name[PATHS + ENDING + 1];
    snprintf(name, sizeof name, "%s%s", path, ending);
    if (is_own(name, false)) unlink(name);
}

void keep_forget(const struct stretto_trainer *t) {
    char path[PATHS];
    for (i32 k = 0; k < PLACES; k++) {
        if (!place(t, k, path)) continue;
        forget(path, "");
        forget(path, unfinished);
        forget(path, earlier);
    }
    keep_make_room((void *)(uintptr_t)t);
}

void keep_put_back(const struct stretto_trainer *t) {
    char path[PATHS], aside[PATHS + ENDING + 1];
    for (i32 k = 0; k < PLACES; k++) {
        if (!place(t, k, path)) continue;
        snprintf(aside, sizeof aside, "%s%s", path, earlier);
        if (is_own(aside, false) && is_own(path, true)) rename(aside, path);
    }
}

void keep_set_aside(const struct stretto_trainer *t) {
    char path[PATHS], aside[PATHS + ENDING + 1];
    for (i32 k = 0; k < PLACES; k++) {
        if (!place(t, k, path)) continue;
        snprintf(aside, sizeof aside, "%s%s", path, earlier);
        if (is_own(path, false) && is_own(aside, true) && rename(path, aside) == 0)
            event_note(&t->events, EVENT_WARNING, "moved the unsaved model of an earlier run to %s; it is deleted when this run "
                       "completes", aside);
        forget(path, ""); /* it could not be renamed: a resume of this run must not find it */
        forget(path, unfinished);
    }
    keep_make_room((void *)(uintptr_t)t);
}

/* ------------------------------------------------------------------ an output fails ----------------------------------------- */

/* A run that reached its time limit continues from its checkpoint, so the kept model is not its final one. */
static bool is_over(const struct stretto_trainer *t) { return t->model->m->stopped != STOP_TIME; }

static bool keep_model(const struct stretto_trainer *t, char where[PATHS]) {
    for (i32 k = 0; k < PLACES; k++) {
        if (!place(t, k, where) || !is_own(where, true)) continue;
        /* a name that keep_find does not look for */
        if (!is_over(t)) memcpy(where + strlen(where), unfinished, sizeof unfinished);
        if (k >= 2 && file_make_parent(where) < 0) continue;
        if (stretto_model_save(t->model, where) >= 0) return true;
    }
    return false;
}

err keep_output(struct stretto_trainer *t, err e, const char *option) {
    if (e >= 0) return e;
    file_option(e, option);
    if (!t->late.code) {
        t->late = *err_last();
        t->late_option = option;
    }
    return e;
}

/* The remedy: `stretto resume RUN` writes the missing outputs, there or elsewhere. */
static void remedy(const struct stretto_trainer *t, struct err_record *r) {
    const bool disk = r->code == E702 || r->code == E703;
    size_t n = disk ? 0 : strlen(r->fix);
    if (!t->run_dir) return;
    n += (size_t)snprintf(r->fix + n, sizeof r->fix - n, "%s%sstretto resume %.200s", n ? "\n" : "",
                          r->code == E703 ? "make room, then: " : "", t->run_dir);
    if (disk && strcmp(t->late_option, "--run-dir") != 0 && n < sizeof r->fix)
        snprintf(r->fix + n, sizeof r->fix - n, "\nstretto resume %.200s %s OTHER/NAME", t->run_dir, t->late_option);
}

err keep_report(struct stretto_trainer *t, bool saved) {
    char where[PATHS];
    struct err_record r = t->late;
    if (!r.code) return 0;
    keep_make_room(t);
    const bool kept = keep_model(t, where); /* resume reads it, even if -o has a copy */
    if (saved) snprintf(where, sizeof where, "%s", t->model_path);
    const size_t n = strlen(r.text);
    if (kept || saved)
        snprintf(r.text + n, sizeof r.text - n, "\nthe %s model is in %.400s", is_over(t) ? "trained" : "unfinished", where);
    else snprintf(r.text + n, sizeof r.text - n, "\nno place took the trained model");
    remedy(t, &r);
    err_put(&r);
    return -r.code;
}

/* ------------------------------------------------------------------ resume -------------------------------------------------- */

void keep_find(const struct stretto_trainer *t, stretto_model **out) {
    char path[PATHS];
    *out = NULL;
    for (i32 k = 0; k < PLACES && t->resume; k++) {
        if (!place(t, k, path) || !is_own(path, false)) continue;
        if (stretto_model_load(path, out) >= 0) {
            event_note(&t->events, EVENT_NOTE, "the training is over, its model is in %s: what is missing is written", path);
            return;
        }
        event_note(&t->events, EVENT_WARNING, "%s cannot be read: %s", path, err_last()->text);
        err_clear();
    }
}
