/* record.c - see record.h. */
#define _GNU_SOURCE
#include "search/record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"

enum { RECORD_BYTES = 1 << 28, TRIALS_MOST = 1000000 };

/* ------------------------------------------------------------------ reading ------------------------------------------------- */

static err damaged(const char *name, i32 line) {
    char where[256];
    snprintf(where, sizeof where, "%.200s:%d", name, line);
    return FAIL_AT(E104, where, "remove the file, which begins the search anew   or   -o OTHER",
                   "the line is no record of a trial of this search");
}

static err other_search(const char *name) {
    return FAIL_AT(E705, name, "-o OTHER   or   remove the file, which begins anew",
                   "the record is of another search: data, given options, seed or version differ");
}

static err check_head(const struct js *head, const char *name, const char *about) {
    struct str was = {0}, is = {0};
    struct js *now = NULL;
    err e = js_parse(about, strlen(about), "about", &now);
    if (e >= 0) e = js_text(now, &is, 0);
    if (e >= 0 && js_i64(js_get(head, "search"), 0) == 1 && js_get(head, "about")) e = js_text(js_get(head, "about"), &was, 0);
    if (e >= 0 && strcmp(str_text(&was), str_text(&is)) != 0) e = other_search(name);
    js_free(now);
    str_free(&was);
    str_free(&is);
    return e;
}

static bool read_line(const struct js *from, const struct search *s, struct record_line *l) {
    const i64 trial = js_i64(js_get(from, "trial"), -1), fit = js_i64(js_get(from, "fit"), -1);
    const struct js *error = js_get(from, "error");
    const char *why = js_str(js_get(from, "failed"), NULL);
    *l = (struct record_line){.trial = (i32)trial, .fit = (i32)fit, .failed = why != NULL,
                              .seconds = js_f64(js_get(from, "seconds"), 0),
                              .elapsed = js_f64(js_get(from, "elapsed"), 0)};
    if (trial < 0 || trial > TRIALS_MOST || fit < 0 || fit >= s->ladder.nfit) return false;
    if (!point_read(&s->space, js_get(from, "set"), &l->at)) return false;
    if (why) snprintf(l->why, sizeof l->why, "%.*s", SEARCH_WHY - 1, why);
    if (!why && js_len(error) != s->ladder.nparts) return false;
    for (i32 p = 0; p < s->ladder.nparts && !why; p++) l->error[p] = js_f64(js_at(error, p), (f64)NAN);
    return true;
}

static err keep(struct record *r, const struct record_line *l) {
    GROW(r->line, r->n, r->cap);
    r->line[r->n++] = *l;
    r->elapsed = dmax(r->elapsed, l->elapsed);
    return 0;
}

static err take(const struct js *v, i32 number, const char *name, const char *about, const struct search *s, struct record *out) {
    struct record_line l;
    if (number == 1) return check_head(v, name, about);
    if (!read_line(v, s, &l)) return damaged(name, number);
    return keep(out, &l);
}

err record_read(const char *text, size_t n, const char *name, const char *about, const struct search *s, struct record *out) {
    i32 number = 0;
    for (size_t at = 0; at < n;) {
        const char *end = memchr(text + at, '\n', n - at);
        struct js *v = NULL;
        if (!end) break; /* cut off when the search was killed */
        const size_t len = (size_t)(end - text) - at;
        number++;
        if (js_parse(text + at, len, name, &v) < 0) return damaged(name, number);
        const err e = take(v, number, name, about, s, out);
        js_free(v);
        TRY(e);
        at += len + 1;
    }
    return 0;
}

/* ------------------------------------------------------------------ writing ------------------------------------------------- */

static err append(struct record *r, struct js *line) {
    struct str text = {0};
    err e = js_text(line, &text, 0);
    js_free(line);
    str_add(&text, "\n");
    if (e >= 0) e = str_ok(&text);
    for (size_t done = 0; e >= 0 && r->fd >= 0 && done < text.len;) {
        const ssize_t n = write(r->fd, text.s + done, text.len - done);
        if (n > 0) done += (size_t)n;
        else if (n < 0 && errno != EINTR) e = file_failed(r->path);
    }
    str_free(&text);
    return file_option(e, "--run-dir");
}

err record_add(struct record *r, const struct search *s, struct record_line *l, f64 elapsed) {
    struct js *o = js_object(), *error;
    l->elapsed = elapsed;
    TRY(keep(r, l));
    js_put_i64(o, "trial", l->trial);
    js_put_i64(o, "fit", l->fit);
    js_put(o, "set", point_json(&s->space, &l->at));
    if (l->failed) {
        js_put_text(o, "failed", l->why);
    } else {
        error = js_array();
        for (i32 p = 0; p < s->ladder.nparts; p++) js_push(error, js_new_f64(l->error[p]));
        js_put(o, "error", error);
    }
    js_put_f64(o, "seconds", l->seconds);
    js_put_f64(o, "elapsed", elapsed);
    return append(r, o);
}

/* Whole lines stay; one that was cut off would join the next one. */
static err read_file(const char *path, const char *about, const struct search *s, struct record *out, bool *is_new) {
    char *text;
    i64 n;
    *is_new = !file_exists(path);
    if (*is_new) return 0;
    TRY(file_load(path, RECORD_BYTES, &text, &n));
    i64 whole = n;
    while (whole > 0 && text[whole - 1] != '\n') whole--;
    err e = record_read(text, (size_t)whole, path, about, s, out);
    if (e >= 0 && whole < n) e = file_write_all(path, text, whole);
    *is_new = whole == 0;
    mem_free(text);
    return e;
}

static err write_head(struct record *r, const char *about) {
    struct js *o = js_object(), *what = NULL;
    js_put_i64(o, "search", 1);
    if (js_parse(about, strlen(about), "about", &what) < 0) return -E1;
    js_put(o, "about", what);
    return append(r, o);
}

err record_open(const char *path, const char *about, const struct search *s, struct record *out) {
    bool is_new = true;
    *out = (struct record){.fd = -1};
    if (!path) return 0;
    TRY(read_file(path, about, s, out, &is_new));
    if (!(out->path = mem_strdup(path))) return -E601;
    out->fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (out->fd < 0) return file_option(file_failed(path), "--run-dir");
    return is_new ? write_head(out, about) : 0;
}

const struct record_line *record_find(const struct record *r, i32 trial, i32 fit) {
    for (i32 i = 0; i < r->n; i++)
        if (r->line[i].trial == trial && r->line[i].fit == fit) return &r->line[i];
    return NULL;
}

void record_close(struct record *r) {
    if (r->fd >= 0) close(r->fd);
    mem_free(r->line);
    mem_free(r->path);
    *r = (struct record){.fd = -1};
}
