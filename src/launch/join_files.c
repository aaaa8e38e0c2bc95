/* join_files.c - see join_files.h.  Every file is written under another name and renamed, so that no reader sees a part of it. */
#include "launch/join_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"

enum { LINE_MOST = 1 << 16 };

void join_path(char out[LAUNCH_PATH], const char *run_dir, const char *session, const char *name) {
    snprintf(out, LAUNCH_PATH, "%.3800s/join/%.200s%s%.200s", run_dir, session, *name ? "/" : "", name);
}

void place_of(struct join_place *p, const char *run_dir, const char *session) {
    join_path(p->folder, run_dir, session, "");
    p->remote = file_is_remote(p->folder);
}

static void path_of(const struct join_place *p, const char *name, char out[LAUNCH_PATH + 256]) {
    snprintf(out, LAUNCH_PATH + 256, "%s/%.200s", p->folder, name);
}

err place_write(const struct join_place *p, const char *name, const char *text) {
    char path[LAUNCH_PATH + 256];
    path_of(p, name, path);
    TRY(file_make_parent(path));
    return file_write_all(path, text, (i64)strlen(text));
}

static bool remote_line(const char *path, char *out, size_t size) {
    const struct err_record before = *err_last();
    char *text = NULL;
    i64 n;
    out[0] = 0;
    const bool read = file_load(path, LINE_MOST, &text, &n) >= 0;
    if (read) snprintf(out, size, "%.*s", (int)strcspn(text, "\n"), text);
    mem_free(text);
    err_put(&before);
    return read;
}

bool place_read(const struct join_place *p, const char *name, char *out, size_t size) {
    char path[LAUNCH_PATH + 256];
    path_of(p, name, path);
    return file_exists(path) && (p->remote ? remote_line(path, out, size) : file_first_line(path, out, size));
}

bool place_has(const struct join_place *p, const char *name) {
    char path[LAUNCH_PATH + 256];
    path_of(p, name, path);
    return file_exists(path);
}

i64 place_number(const struct join_place *p, const char *name, i64 otherwise) {
    char text[32];
    i64 v = 0;
    return place_read(p, name, text, sizeof text) && str_to_i64(text, strlen(text), &v) ? v : otherwise;
}

void place_name(char out[64], i64 round, const char *what, i32 member) {
    if (member < 0)
        snprintf(out, 64, "%lld/%s", (long long)round, what);
    else
        snprintf(out, 64, "%lld/%s-%d", (long long)round, what, member);
}

void place_hello(char out[64], i32 member) { snprintf(out, 64, "hello-%d", member); }

i32 join_ended(const char *run_dir, const char *session) {
    struct join_place p;
    place_of(&p, run_dir, session);
    return (i32)place_number(&p, "end", -1);
}

void join_why(const char *run_dir, const char *session, char *out, size_t size) {
    struct join_place p;
    place_of(&p, run_dir, session);
    if (!place_read(&p, "why", out, size)) out[0] = 0;
}

i32 join_present(const char *run_dir, const char *session, i32 members) {
    struct join_place p;
    char name[64];
    i32 n = 0;
    place_of(&p, run_dir, session);
    for (i32 i = 0; i < members; i++) {
        place_hello(name, i);
        n += place_has(&p, name);
    }
    return n;
}
