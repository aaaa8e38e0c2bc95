/* jsonl.c - see jsonl.h. */
#define _GNU_SOURCE
#include "report/jsonl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "report/text.h"

#define REFIT "\"refit\":true"
#define EARLY "\"early\":true"

/* Integer after "key": in one of our lines; `none` if absent. */
static i64 field(const char *line, size_t n, const char *key, i64 none) {
    const char *at = memmem(line, n, key, strlen(key));
    return at ? strtoll(at + strlen(key), NULL, 10) : none;
}

enum { PLACES = 4 };

/* True if a line lies after the point where a run resumes. Extra validations at a time limit always do. */
static bool behind(const char *line, size_t n, const struct event *begin) {
    const i64 at[PLACES] = {begin->refit, begin->member, begin->rollbacks, begin->kept};
    const i64 its[PLACES] = {memmem(line, n, REFIT, strlen(REFIT)) != NULL, field(line, n, "\"member\":", 0),
                             field(line, n, "\"rollbacks\":", 0), field(line, n, "\"step\":", -1)};
    if (memmem(line, n, EARLY, strlen(EARLY))) return true;
    for (i32 i = 0; i < PLACES; i++)
        if (its[i] != at[i]) return its[i] > at[i];
    return false;
}

/* Length of the text to keep: whole lines up to the point where the run starts or resumes. */
static size_t keep(const char *text, size_t size, const struct event *begin) {
    size_t kept = 0;
    while (kept < size) {
        const char *line = text + kept, *end = memchr(line, '\n', size - kept);
        if (!end || behind(line, (size_t)(end - line), begin)) break;
        kept += (size_t)(end - line) + 1;
    }
    return kept;
}

static err open_end(struct jsonl *j) {
    const int fd = open(j->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0) return file_failed(j->path);
    if (j->fd >= 0) close(j->fd);
    j->fd = fd;
    return 0;
}

static err cut(struct jsonl *j, const struct event *begin) {
    char *text = NULL;
    i64 size = 0;
    TRY(file_load(j->path, INT64_MAX, &text, &size));
    const size_t kept = keep(text, (size_t)size, begin);
    err e = (i64)kept < size ? file_write_all(j->path, text, (i64)kept) : 0;
    if (e >= 0 && (i64)kept < size) e = open_end(j);
    mem_free(text);
    return e;
}

err jsonl_open(struct jsonl *j, const char *path) {
    *j = (struct jsonl){.fd = -1};
    snprintf(j->path, sizeof j->path, "%s", path);
    return open_end(j);
}

static void add(struct str *b, const char *key, f64 v) {
    str_addf(b, ",\"%s\":%s", key, text_json_number(v).s);
}

static err write_all(struct jsonl *j) {
    TRY(str_ok(&j->line));
    for (size_t done = 0; done < j->line.len;) {
        ssize_t n = write(j->fd, j->line.s + done, j->line.len - done);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return file_failed(j->path);
        done += (size_t)n;
    }
    return 0;
}

static err write_line(struct jsonl *j, const struct event *e) {
    struct str *b = &j->line;
    b->len = 0;
    str_addf(b, "{\"step\":%lld", (long long)e->step);
    add(b, "epoch", e->epoch);
    add(b, "seconds", e->seconds);
    str_add(b, e->kind == EVENT_VALID ? ",\"split\":\"valid\"" : ",\"split\":\"train\"");
    add(b, "train", e->train);
    add(b, "valid", e->valid);
    add(b, "lr", e->lr);
    add(b, "grad_norm", e->grad_norm);
    add(b, "windows_per_s", e->windows_per_s);
    add(b, "device_share", e->device_share);
    if (e->slices > 0) {
        str_addf(b, ",\"slices\":%d", e->slices);
        add(b, "rounds", e->rounds);
        add(b, "forgets", e->forgets);
        add(b, "efficiency", e->useful);
        str_addf(b, ",\"serial_steps\":%lld", (long long)e->serial);
    }
    str_addf(b, ",\"best\":%s,\"member\":%d", e->best ? "true" : "false", e->member);
    if (e->rollbacks > 0) str_addf(b, ",\"rollbacks\":%lld", (long long)e->rollbacks);
    str_addf(b, "%s%s}\n", e->refit ? "," REFIT : "", e->early ? "," EARLY : "");
    return write_all(j);
}

static void on_event(void *self, const struct event *e) {
    struct jsonl *j = self;
    err r = 0;
    if (j->fd < 0 || j->failed.code) return;
    if (e->kind == EVENT_BEGIN) r = cut(j, e);
    if (e->kind == EVENT_STEP || e->kind == EVENT_VALID) r = write_line(j, e);
    if (r < 0) j->failed = *err_last();
}

struct sink jsonl_sink(struct jsonl *j) { return (struct sink){on_event, j}; }

err jsonl_close(struct jsonl *j) {
    if (!j) return 0;
    str_free(&j->line);
    if (j->fd >= 0 && close(j->fd) != 0 && !j->failed.code) {
        file_failed(j->path);
        j->failed = *err_last();
    }
    j->fd = -1;
    if (!j->failed.code) return 0;
    err_put(&j->failed);
    return -j->failed.code;
}
