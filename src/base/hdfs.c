/* hdfs.c - see hdfs.h: status, names, folders, and whole files written under another name first.
 *
 *     CREATE PATH.tmp  ->  GETFILESTATUS: all bytes are there  ->  RENAME, replacing PATH  ->  GETFILESTATUS: it is this file
 *
 * HDFS replaces a file by RENAME with OVERWRITE in one step. A gateway that ignores this option gets DELETE and RENAME. */
#include "base/hdfs.h"

#include <string.h>

#include "base/hdfs_ask.h"
#include "base/json.h"

enum { PATH_BYTES = 4096 };

static void take_status(const struct js *s, struct hdfs_status *out) {
    *out = (struct hdfs_status){.folder = strcmp(js_str(js_get(s, "type"), ""), "DIRECTORY") == 0,
                                .bytes = js_i64(js_get(s, "length"), -1),
                                .time = js_i64(js_get(s, "modificationTime"), -1),
                                .id = js_i64(js_get(s, "fileId"), -1)};
}

static err not_json(const char *path) {
    return FAIL_AT(E706, path, "hdfs://HOST:9870/PATH   (dfs.namenode.http-address of hdfs-site.xml)",
                   "the server does not answer like WebHDFS");
}

/* The answer of an operation as JSON; *root NULL where the path is absent and absent is asked for. */
static err ask_json(struct hdfs *h, const struct hdfs_ask *a, struct js **root) {
    struct str text = {0};
    *root = NULL;
    err e = hdfs_ask(h, a, &text);
    const bool here = e >= 0 && !(a->absent && *a->absent);
    if (here && js_parse(str_text(&text), text.len, "the answer", root) < 0) e = not_json(h->path);
    str_free(&text);
    return e;
}

err hdfs_status_of(struct hdfs *h, bool *absent, struct hdfs_status *out) {
    struct js *root;
    *out = (struct hdfs_status){.bytes = -1, .id = -1};
    TRY(ask_json(h, &(struct hdfs_ask){.query = "op=GETFILESTATUS", .absent = absent}, &root));
    if (!root) return 0;
    take_status(js_get(root, "FileStatus"), out);
    js_free(root);
    return out->folder || out->bytes >= 0 ? 0 : not_json(h->path);
}

err hdfs_stat(const char *path, struct hdfs_status *out) {
    struct hdfs h;
    TRY(hdfs_begin(path, &h));
    const err e = hdfs_status_of(&h, NULL, out);
    hdfs_end(&h);
    return e;
}

err hdfs_find(const char *path, bool *there, struct hdfs_status *out) {
    struct hdfs h;
    bool absent = false;
    *there = false;
    TRY(hdfs_begin(path, &h));
    const err e = hdfs_status_of(&h, &absent, out);
    hdfs_end(&h);
    *there = e >= 0 && !absent;
    return e;
}

err hdfs_list(const char *path, err (*each)(void *self, const char *name, const struct hdfs_status *s), void *self) {
    struct hdfs h;
    struct js *root;
    bool absent = false;
    TRY(hdfs_begin(path, &h));
    err e = ask_json(&h, &(struct hdfs_ask){.query = "op=LISTSTATUS", .absent = &absent}, &root);
    hdfs_end(&h);
    const struct js *all = js_get(js_get(root, "FileStatuses"), "FileStatus");
    for (i64 i = 0; e >= 0 && i < js_len(all); i++) {
        struct hdfs_status s;
        take_status(js_at(all, i), &s);
        e = each(self, js_str(js_get(js_at(all, i), "pathSuffix"), ""), &s);
    }
    js_free(root);
    return e;
}

/* ------------------------------------------------------------------ names --------------------------------------------------- */

enum outcome { DONE, REFUSED, GONE /* the path does not exist */ };

/* An operation that answers {"boolean": ..}, or nothing where it is done. */
static err change(struct hdfs *h, const char *method, const char *query, enum outcome *out) {
    struct str text = {0};
    struct js *root = NULL;
    bool absent = false;
    err e = hdfs_ask(h, &(struct hdfs_ask){.method = method, .query = query, .writes = true, .absent = &absent}, &text);
    if (e >= 0 && text.len > 0) e = js_parse(text.s, text.len, "the answer", &root) < 0 ? not_json(h->path) : 0;
    *out = absent ? GONE : js_bool(js_get(root, "boolean"), text.len == 0) ? DONE : REFUSED;
    js_free(root);
    str_free(&text);
    return e;
}

static err remove_path(struct hdfs *h) {
    enum outcome done; /* refused: there is none */
    return change(h, "DELETE", "op=DELETE&recursive=true", &done);
}

err hdfs_remove(const char *path) {
    struct hdfs h;
    TRY(hdfs_begin(path, &h));
    const err e = remove_path(&h);
    hdfs_end(&h);
    return e;
}

err hdfs_make_dir(const char *path) {
    struct hdfs h;
    enum outcome done;
    TRY(hdfs_begin(path, &h));
    err e = change(&h, "PUT", "op=MKDIRS", &done);
    hdfs_end(&h);
    return e >= 0 && done != DONE ? FAIL_AT(E702, path, NULL, "HDFS did not make the folder") : e;
}

/* The part of a path that HDFS knows: without scheme and hosts. */
static const char *name_of(const char *path) {
    const char *hosts = strstr(path, "://") + 3;
    return hosts + strcspn(hosts, "/");
}

static err try_rename(struct hdfs *h, const char *to, const char *option, enum outcome *done) {
    struct str query = {0};
    str_add(&query, "op=RENAME&destination=");
    http_escape(&query, name_of(to), "/");
    str_add(&query, option);
    err e = str_ok(&query);
    if (e >= 0) e = change(h, "PUT", query.s, done);
    str_free(&query);
    return e;
}

/* A rename whose answer is lost finds nothing at the next attempt, so the outcome decides: `to` is the renamed file. */
static err is_there(const char *to, i64 id, i64 bytes, bool *same) {
    struct hdfs_status now;
    bool there;
    TRY(hdfs_find(to, &there, &now));
    *same = there && (id >= 0 ? now.id == id : now.folder || now.bytes == bytes);
    return 0;
}

static err rename_to(struct hdfs *h, const char *to, const struct hdfs_status *s) {
    bool same = false;
    enum outcome done;
    TRY(try_rename(h, to, "&renameoptions=OVERWRITE", &done));
    if (done != DONE) TRY(is_there(to, s->id, s->bytes, &same));
    if (done == REFUSED && !same) { /* a gateway that does not know the option */
        TRY(hdfs_remove(to));
        TRY(try_rename(h, to, "", &done));
    }
    TRY(is_there(to, s->id, s->bytes, &same));
    return same ? 0 : FAIL_AT(E702, to, "end the other process, then run again",
                              "HDFS did not rename %.400s: is another process writing this file?", h->path);
}

err hdfs_rename(const char *from, const char *to) {
    struct hdfs h;
    struct hdfs_status s;
    TRY(hdfs_begin(from, &h));
    err e = hdfs_status_of(&h, NULL, &s);
    if (e >= 0) e = rename_to(&h, to, &s);
    hdfs_end(&h);
    return e;
}

err hdfs_writable(const char *path) {
    char folder[PATH_BYTES];
    struct hdfs h;
    bool absent = false;
    struct hdfs_status s;
    TRY(hdfs_find(path, &absent, &s));
    if (s.folder) return FAIL_AT(E702, path, NULL, "cannot write: this is a directory");
    const char *name = name_of(path), *slash = strrchr(name, '/');
    if (!slash || !slash[1]) return FAIL_AT(E702, path, "hdfs://HOST:9870/FOLDER/NAME", "cannot write: the path names no file");
    const i32 n = (i32)(slash == name ? slash + 1 - path : slash - path);
    if (n >= PATH_BYTES) return FAIL_AT(E702, path, NULL, "cannot write: the path is too long");
    str_print(folder, sizeof folder, "%.*s", n, path);
    TRY(hdfs_begin(folder, &h));
    err e = hdfs_ask(&h, &(struct hdfs_ask){.query = "op=CHECKACCESS&fsaction=-wx", .writes = true, .absent = &absent}, NULL);
    hdfs_end(&h);
    if (e >= 0 && absent)
        e = FAIL_AT(E702, path, "hdfs dfs -mkdir -p FOLDER", "cannot write: there is no folder %.400s", name_of(folder));
    return e;
}

/* ------------------------------------------------------------------ writing ------------------------------------------------- */

static err create(struct hdfs *h, const void *p, i64 n, struct hdfs_status *s) {
    const struct hdfs_ask a = {
        .method = "PUT", .query = "op=CREATE&overwrite=true", .body = p, .n = n, .writes = true, .data = true};
    struct hdfs_tries tries = {0};
    err e;
    do { /* a data node that ends early may answer all the same */
        TRY(hdfs_ask(h, &a, NULL));
        TRY(hdfs_status_of(h, NULL, s));
        if (s->bytes == n) return 0;
        h->passes = true;
        e = FAIL_AT(E702, h->path, "run the same command again", "HDFS keeps %lld of the %lld bytes that were written",
                    (long long)s->bytes, (long long)n);
    } while (hdfs_again(h, &tries));
    return e;
}

err hdfs_put(const char *path, const void *p, i64 n) {
    char tmp[PATH_BYTES];
    struct hdfs h;
    struct hdfs_status s;
    if (str_print(tmp, sizeof tmp, "%s.tmp", path) >= PATH_BYTES) return FAIL_AT(E702, path, NULL, "the path is too long");
    TRY(hdfs_begin(tmp, &h));
    err e = create(&h, p, n, &s);
    if (e >= 0) e = rename_to(&h, path, &s);
    if (e < 0) { /* nothing half written stays, as far as HDFS can be reached */
        const struct err_record why = *err_last();
        (void)remove_path(&h);
        err_put(&why);
    }
    hdfs_end(&h);
    return e;
}
