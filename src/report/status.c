/* status.c - see status.h. */
#include "report/status.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "report/text.h"

#define EVERY_S 1.0   /* minimum interval of records while only the step changes */
#define PHASE_S 0.1   /* minimum interval of records */
#define SILENT_S 10.0
#define TMP ".tmp"
enum { RECORD = 640 };

/* ------------------------------------------------------------------ writing ------------------------------------------------- */

/* Replaces characters other than letters, digits, '-' and '.' in a host name: they would break the line. */
static void clean(char *s) {
    for (; *s; s++)
        if (*s < ' ' || *s == '"' || *s == '\\') *s = '?';
}

/* Formats a record as JSON, independent of the locale. */
static i32 render(const struct status_record *r, char out[RECORD]) {
    const i32 n = str_print(out, RECORD,
                            "{\"rank\":%d,\"world\":%d,\"host\":\"%s\",\"pid\":%d,\"member\":%d,\"members\":%d,\"step\":%lld,"
                            "\"steps\":%lld,\"phase\":\"%s\",\"windows_per_s\":%.4g,\"share\":%.4g,\"period\":%.3g,"
                            "\"time\":%.3f,\"exit\":%d}\n",
                            r->rank, r->world, r->host, r->pid, r->member, r->members, (long long)r->step, (long long)r->steps,
                            r->phase, r->windows_per_s, r->share, r->period, r->time, r->exit);
    return imin(n, RECORD - 1);
}

/* Writes a record without fsync: it serves current readers only. Errors are ignored. */
static void put(struct status *s) {
    char text[RECORD];
    const f64 now = clock_now(), gap = now - s->wrote;
    if (!s->open) return;
    if (s->wrote > 0 && gap > EVERY_S) s->now.period = 0.5 * (s->now.period + gap);
    s->wrote = now;
    memcpy(s->told, s->now.phase, sizeof s->told);
    s->now.time = clock_wall();
    const i32 n = render(&s->now, text);
    const int fd = open(s->tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0) return;
    const bool whole = write(fd, text, (size_t)n) == n;
    if (close(fd) == 0 && whole && rename(s->tmp, s->path) == 0) return;
    unlink(s->tmp);
}

/* Writes a delayed change once the interval has passed. */
static void put_if_due(struct status *s) {
    const f64 gap = clock_now() - s->wrote;
    if (gap >= EVERY_S || (gap >= PHASE_S && strcmp(s->now.phase, s->told) != 0)) put(s);
}

static void on_event(void *self, const struct event *e) {
    struct status *s = self;
    const bool text = e->kind == EVENT_NOTE || e->kind == EVENT_DETAIL || e->kind == EVENT_WARNING;
    if (text || e->kind == EVENT_SAVED || e->kind == EVENT_END) return;
    if (e->kind == EVENT_PHASE || e->kind == EVENT_WORK) {
        if (e->kind == EVENT_PHASE) snprintf(s->now.phase, sizeof s->now.phase, "%s", e->text);
        put_if_due(s);
        return;
    }
    s->now.member = e->member;
    s->now.members = e->members;
    s->now.step = e->step;
    s->now.steps = e->steps;
    if (e->windows_per_s > 0 && isfinite(e->windows_per_s)) s->now.windows_per_s = e->windows_per_s;
    if (e->device_share > 0) s->now.share = e->device_share;
    if (e->kind == EVENT_TICK || e->kind == EVENT_BEGIN) snprintf(s->now.phase, sizeof s->now.phase, "train");
    put_if_due(s);
}

struct sink status_sink(struct status *s) { return (struct sink){on_event, s}; }

static void name_of(const char *run_dir, i32 rank, char out[STATUS_PATH]) {
    snprintf(out, STATUS_PATH, "%.4096s/status/rank-%d.json", run_dir, rank);
}

/* Removes the record of a rank that no longer exists, and what the rank was writing when it died; whether there was any. */
static bool remove_record(const char *run_dir, i32 rank) {
    char path[STATUS_PATH], tmp[STATUS_PATH + 8];
    name_of(run_dir, rank, path);
    snprintf(tmp, sizeof tmp, "%s" TMP, path);
    const bool partial = unlink(tmp) == 0;
    return unlink(path) == 0 || partial;
}

void status_open(struct status *s, const char *run_dir, i32 rank, i32 world) {
    char folder[STATUS_PATH];
    struct utsname u;
    *s = (struct status){.now = {.rank = rank, .world = world, .phase = "data", .period = EVERY_S, .exit = -1}};
    s->now.pid = (i32)getpid();
    if (uname(&u) == 0) snprintf(s->now.host, sizeof s->now.host, "%.*s", STATUS_HOST - 1, u.nodename);
    clean(s->now.host);
    snprintf(folder, sizeof folder, "%.4096s/status", run_dir);
    if (mkdir(folder, 0755) != 0 && errno != EEXIST) return;
    name_of(run_dir, rank, s->path);
    snprintf(s->tmp, sizeof s->tmp, "%s" TMP, s->path);
    for (i32 k = world; rank == 0 && k < STATUS_MOST; k++)
        if (!remove_record(run_dir, k)) break;
    s->open = true;
    put(s);
}

void status_end(struct status *s, const char *phase, i32 exit_status) {
    if (!s->open) return;
    snprintf(s->now.phase, sizeof s->now.phase, "%s", phase);
    s->now.exit = exit_status;
    put(s);
    s->open = false;
}

void status_failed(struct status *s, err e) { status_end(s, e == -E804 ? "differs" : "failed", err_exit_status(e)); }

/* ------------------------------------------------------------------ reading ------------------------------------------------- */

bool status_read(const char *run_dir, i32 rank, struct status_record *out) {
    char path[STATUS_PATH];
    struct js *o = NULL;
    name_of(run_dir, rank, path);
    if (!file_exists(path) || js_load(path, &o) < 0) return false;
    *out = (struct status_record){.rank = (i32)js_i64(js_get(o, "rank"), rank),
                                  .world = (i32)js_i64(js_get(o, "world"), 1),
                                  .pid = (i32)js_i64(js_get(o, "pid"), 0),
                                  .member = (i32)js_i64(js_get(o, "member"), 0),
                                  .members = (i32)js_i64(js_get(o, "members"), 1),
                                  .step = js_i64(js_get(o, "step"), 0),
                                  .steps = js_i64(js_get(o, "steps"), 0),
                                  .windows_per_s = js_f64(js_get(o, "windows_per_s"), 0),
                                  .share = js_f64(js_get(o, "share"), 0),
                                  .period = js_f64(js_get(o, "period"), EVERY_S),
                                  .time = js_f64(js_get(o, "time"), 0),
                                  .exit = (i32)js_i64(js_get(o, "exit"), -1)};
    snprintf(out->host, sizeof out->host, "%s", js_str(js_get(o, "host"), ""));
    snprintf(out->phase, sizeof out->phase, "%s", js_str(js_get(o, "phase"), ""));
    js_free(o);
    return true;
}

void status_read_all(const char *run_dir, struct status_record *out, i32 *n) {
    *n = 0;
    for (i32 k = 0, world = 1; k < world && k < STATUS_MOST; k++) {
        if (!status_read(run_dir, k, &out[*n])) {
            world = k == 0 ? STATUS_MOST : world; /* rank 0 may not have written one yet */
            continue;
        }
        world = *n == 0 ? imax(out[0].world, k + 1) : world;
        (*n)++;
    }
}

bool status_is_silent(const struct status_record *r, f64 now) {
    return r->exit < 0 && now - r->time > dmax(SILENT_S, 3 * r->period);
}

/* ------------------------------------------------------------------ output -------------------------------------------------- */

static const char *state_of(const struct status_record *r, f64 now) {
    if (r->exit >= 0) return r->phase;
    return status_is_silent(r, now) ? "silent" : "runs";
}

void status_table(const struct status_record *r, i32 n, f64 now, struct str *out) {
    i32 wide = 4;
    for (i32 i = 0; i < n; i++) wide = imax(wide, (i32)strlen(r[i].host));
    str_addf(out, "rank  %-*s  %8s  %-10s  %6s  %15s  %9s  %4s  %7s  state\n", wide, "host", "pid", "phase", "member", "step",
             "windows/s", "rows", "age");
    for (i32 i = 0; i < n; i++) {
        char step[48], member[24], share[16] = "-";
        snprintf(step, sizeof step, "%lld/%lld", (long long)r[i].step, (long long)r[i].steps);
        snprintf(member, sizeof member, "%d/%d", imin(r[i].member + 1, r[i].members), r[i].members);
        if (r[i].share > 0) snprintf(share, sizeof share, "%.0f%%", 100 * r[i].share);
        str_addf(out, "%4d  %-*s  %8d  %-10s  %6s  %15s  %9s  %4s  %7s  %s", r[i].rank, wide, r[i].host, r[i].pid, r[i].phase,
                 member, step, text_si(r[i].windows_per_s).s, share, text_seconds(dmax(0, now - r[i].time)).s,
                 state_of(&r[i], now));
        if (r[i].exit > 0) str_addf(out, " (exit %d)", r[i].exit);
        str_add(out, "\n");
    }
}

void status_json(const struct status_record *r, i32 n, f64 now, bool finished, struct str *out) {
    str_addf(out, "{\"finished\":%s,\"ranks\":[", finished ? "true" : "false");
    for (i32 i = 0; i < n; i++) {
        char text[RECORD];
        i32 len = render(&r[i], text);
        str_addf(out, "%s%.*s,\"age\":%.3f,\"state\":\"%s\"}", i ? "," : "", (int)(len - 2), text, dmax(0, now - r[i].time),
                 state_of(&r[i], now));
    }
    str_add(out, "]}");
}
