/* jsonl.c - the metrics.jsonl sink. */
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

static err cannot(const char *path) {
    int n = errno;
    return err_set(n == ENOSPC ? E703 : E702, path, NULL, "cannot write %s: %s", path, strerror(n));
}

/* The integer after "key": in a line of ours; -1 when the line has none. */
static i64 field(const char *line, size_t n, const char *key) {
    const char *at = memmem(line, n, key, strlen(key));
    return at ? strtoll(at + strlen(key), NULL, 10) : -1;
}

/* Length of what may stay of a file's text: whole lines up to and including the position `at` (NULL = all of them). */
static size_t keep(const char *text, size_t size, const struct jsonl_at *at) {
    size_t kept = 0;
    while (kept < size) {
        const char *line = text + kept, *end = memchr(line, '\n', size - kept);
        if (!end) break;
        size_t n = (size_t)(end - line) + 1;
        i64 member = field(line, n, "\"member\":"), step = field(line, n, "\"step\":");
        if (at && (member > at->member || (member == at->member && step > at->step))) break;
        kept += n;
    }
    return kept;
}

/* Cuts a torn last line, and the lines after `at`. */
static err cut(const struct jsonl *j, const struct jsonl_at *at) {
    char *text = NULL;
    i64 size = 0;
    TRY(file_load(j->path, INT64_MAX, &text, &size));
    size_t kept = keep(text, (size_t)size, at);
    mem_free(text);
    return (i64)kept < size && ftruncate(j->fd, (off_t)kept) != 0 ? cannot(j->path) : 0;
}

err jsonl_open(struct jsonl *j, const char *path, const struct jsonl_at *at) {
    *j = (struct jsonl){.fd = -1};
    snprintf(j->path, sizeof j->path, "%s", path);
    int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0) return cannot(path);
    j->fd = fd;
    err e = cut(j, at);
    if (e < 0) {
        close(fd);
        j->fd = -1;
    }
    return e;
}

static void add(struct str *b, const char *key, f64 v) {
    str_addf(b, ",\"%s\":", key);
    text_json_number(b, v);
}

static err write_all(struct jsonl *j) {
    TRY(str_ok(&j->line));
    for (size_t done = 0; done < j->line.len;) {
        ssize_t n = write(j->fd, j->line.s + done, j->line.len - done);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return cannot(j->path);
        done += (size_t)n;
    }
    return 0;
}

static void on_event(void *self, const struct event *e) {
    struct jsonl *j = self;
    if (j->fd < 0 || j->failed.code || (e->kind != EVENT_STEP && e->kind != EVENT_VALID)) return;
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
    str_addf(b, ",\"best\":%s,\"member\":%d}\n", e->best ? "true" : "false", e->member);
    if (write_all(j) < 0) j->failed = *err_last();
}

struct sink jsonl_sink(struct jsonl *j) { return (struct sink){on_event, j}; }

err jsonl_close(struct jsonl *j) {
    if (!j) return 0;
    str_free(&j->line);
    if (j->fd >= 0 && close(j->fd) != 0 && !j->failed.code) {
        cannot(j->path);
        j->failed = *err_last();
    }
    j->fd = -1;
    if (!j->failed.code) return 0;
    err_put(&j->failed);
    return -j->failed.code;
}
