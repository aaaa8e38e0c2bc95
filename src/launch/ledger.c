/* ledger.c - writes and reads RUN/supervisor.log; newest checkpoint and completion of a run, from its folder.
 *
 *     {"time":1763800000.120,"event":"begin","world":4,"left":3,"command":"stretto train .."}          a submission begins
 *     {"time":1763800000.251,"event":"start","world":4,"pid":812,"left":3,"command":"mpirun .."}       its job is started
 *     {"time":1763800009.013,"event":"ended","world":4,"signal":9,"checkpoint":600,"left":3}          the job has ended
 *     {"time":1763800900.500,"event":"end","world":4,"exit":0,"checkpoint":900,"left":2}              the submission ends
 *
 * Each line is one write, synced before the supervisor acts on it, so a restarted supervisor continues where the log ends.  The
 * reader skips lines that are not JSON: a crash may cut the last one short. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/checkpoints.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/hdfs.h"
#include "base/json.h"
#include "base/mem.h"
#include "launch/supervise.h"

enum { LOG_MOST = 64 << 20 };
#define CLOCK_SLACK 0.05 /* clocks of file systems have a coarse resolution */

/* ------------------------------------------------------------------ the run folder ------------------------------------------ */

static bool younger(const char *path, f64 since) {
    struct stat st;
    if (stat(path, &st) != 0) return false;
    return (f64)st.st_mtim.tv_sec + 1e-9 * (f64)st.st_mtim.tv_nsec >= since - CLOCK_SLACK;
}

/* Number of a checkpoint by the name of its folder; -1 = it is none. parts: one that is being written counts, too. */
static i64 number_of(const char *name, bool parts) {
    const char *ending = name + strspn(name, "0123456789");
    const bool counts = strcmp(ending, ".ckpt") == 0 || (parts && strcmp(ending, ".part") == 0);
    return counts && ending > name ? strtoll(name, NULL, 10) : -1;
}

/* Number and path of the next checkpoint in a folder; -1 = no more. */
static i64 next_checkpoint(DIR *dir, const char *folder, bool parts, char path[4500]) {
    for (struct dirent *d; dir && (d = readdir(dir));) {
        const i64 number = number_of(d->d_name, parts);
        if (number < 0) continue;
        snprintf(path, 4500, "%s/%.255s", folder, d->d_name);
        return number;
    }
    return -1;
}

/* The newest checkpoint in a folder of HDFS. */
struct newest {
    f64 since;
    i64 number;
};

static err note_newest(void *self, const char *name, const struct hdfs_status *s) {
    struct newest *n = self;
    if ((f64)s->time / 1000 >= n->since - CLOCK_SLACK) n->number = lmax(n->number, number_of(name, false));
    return 0;
}

i64 run_checkpoint_apart(const char *folder, f64 since) {
    const struct err_record before = *err_last();
    struct newest n = {.since = since, .number = -1};
    if (hdfs_list(folder, note_newest, &n) < 0) err_put(&before);
    return n.number;
}

i64 run_checkpoint(const char *run_dir, f64 since) {
    char folder[4200], path[4500];
    i64 best = -1;
    if (checkpoints_apart()) return run_checkpoint_apart(checkpoints_apart(), since);
    snprintf(folder, sizeof folder, "%s/checkpoints", run_dir);
    DIR *dir = opendir(folder);
    for (i64 number; (number = next_checkpoint(dir, folder, false, path)) >= 0;)
        if (number > best && younger(path, since)) best = number;
    if (dir) closedir(dir);
    return best;
}

void run_clear(const char *run_dir) {
    char folder[4200], path[4500];
    if (checkpoints_apart()) {
        if (hdfs_remove(checkpoints_apart()) < 0) err_clear();
        return;
    }
    snprintf(folder, sizeof folder, "%s/checkpoints", run_dir);
    DIR *dir = opendir(folder);
    while (next_checkpoint(dir, folder, true, path) >= 0)
        if (file_remove_dir(path) < 0) err_clear(); /* leftover files are harmless */
    if (dir) closedir(dir);
    rmdir(folder);
}

bool run_finished(const char *run_dir, f64 since) {
    char path[4200];
    struct js *o = NULL;
    snprintf(path, sizeof path, "%s/run.json", run_dir);
    if (!younger(path, since) || js_load(path, &o) < 0) return false;
    const bool finished = js_bool(js_get(o, "finished"), false);
    js_free(o);
    return finished;
}

/* ------------------------------------------------------------------ the log ------------------------------------------------- */

static err take_lock(struct ledger *l, const char *run_dir) {
    char path[4200];
    snprintf(path, sizeof path, "%s/supervisor.lock", run_dir);
    l->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (l->lock < 0) return file_failed(path);
    if (file_lock(l->lock)) return 0;
    return FAIL_AT(E704, NULL, "wait until that one is over, or end it with kill PID (supervisor.log has what it did)",
                   "another supervisor has the run folder %s", run_dir);
}

/* Applies one event: begin starts a submission; end closes it unless its exit status is 75 or 76 (stopped, to be continued). */
static void follow(struct ledger_past *past, const struct js *o, const char *command) {
    const char *what = js_str(js_get(o, "event"), "");
    if (strcmp(what, "begin") == 0)
        *past = (struct ledger_past){.open = strcmp(js_str(js_get(o, "command"), ""), command) == 0, .checkpoint = -1, .left = -1,
                                     .since = js_f64(js_get(o, "time"), 0)};
    past->checkpoint = js_i64(js_get(o, "checkpoint"), past->checkpoint);
    past->left = (i32)js_i64(js_get(o, "left"), past->left);
    const i64 status = js_i64(js_get(o, "exit"), 0);
    if (strcmp(what, "end") == 0 && status != err_exit_status(-E802) && status != err_exit_status(-E807)) past->open = false;
}

static void read_log(const struct ledger *l, const char *command, struct ledger_past *past) {
    char *text = NULL;
    i64 size = 0;
    if (!file_exists(l->path) || file_load(l->path, LOG_MOST, &text, &size) < 0) return;
    for (char *line = text; *line;) {
        struct js *o = NULL;
        const size_t n = strcspn(line, "\n");
        if (js_parse(line, n, l->path, &o) >= 0) follow(past, o, command);
        js_free(o);
        line += n + (line[n] == '\n');
    }
    mem_free(text);
}

/* Ends an incomplete last line with a line feed, so that the next event starts on a line of its own. */
static err close_line(const struct ledger *l) {
    const off_t size = lseek(l->fd, 0, SEEK_END);
    char last = '\n';
    if (size > 0 && pread(l->fd, &last, 1, size - 1) != 1) return file_failed(l->path);
    return last == '\n' || write(l->fd, "\n", 1) == 1 ? 0 : file_failed(l->path);
}

err ledger_open(struct ledger *l, const char *run_dir, const char *command, struct ledger_past *past) {
    *l = (struct ledger){.fd = -1, .lock = -1};
    *past = (struct ledger_past){.checkpoint = -1, .left = -1};
    TRY(file_make_dir(run_dir));
    snprintf(l->path, sizeof l->path, "%s/supervisor.log", run_dir);
    TRY(take_lock(l, run_dir));
    read_log(l, command, past);
    l->fd = open(l->path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (l->fd < 0) return file_failed(l->path);
    return close_line(l);
}

static void put_if(struct js *o, const char *name, i64 v) {
    if (v >= 0) js_put_i64(o, name, v);
}

err ledger_write(struct ledger *l, i32 world, const struct ledger_event *e) {
    struct js *o = js_object();
    struct str line = {0};
    str_add(&line, "");
    js_put_f64(o, "time", clock_wall());
    js_put_text(o, "event", e->what);
    js_put_i64(o, "world", world);
    put_if(o, "pid", e->pid);
    put_if(o, "exit", e->exit);
    put_if(o, "signal", e->signal);
    put_if(o, "checkpoint", e->checkpoint);
    put_if(o, "left", e->left);
    if (e->down >= 0) js_put_f64(o, "down", e->down);
    if (e->command) js_put_text(o, "command", e->command);
    err r = js_text(o, &line, 0);
    js_free(o);
    str_add(&line, "\n");
    if (r >= 0) r = str_ok(&line);
    if (r >= 0 && (write(l->fd, line.s, line.len) != (ssize_t)line.len || fdatasync(l->fd) != 0)) r = file_failed(l->path);
    str_free(&line);
    return r;
}

void ledger_close(struct ledger *l) {
    if (l->fd >= 0) close(l->fd);
    if (l->lock >= 0) close(l->lock);
    l->fd = l->lock = -1;
}
