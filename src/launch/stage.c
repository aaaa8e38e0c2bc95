/* stage.c - see stage.h. */
#include "launch/stage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/hdfs.h"
#include "base/http.h"
#include "base/mem.h"

enum { BLOCK = 512, MAPS_MOST = 4 << 20, LIBRARY_MOST = 1 << 30 };

err stage_folder(const char *wish, char out[STAGE_PATH]) {
    if (!hdfs_is(wish))
        return FAIL_AT(E103, "--stage", "--stage hdfs://NAMENODE:9870   or   --stage hdfs://NAMENODE:9870/FOLDER",
                       "\"%.200s\" is no folder of HDFS", wish);
    size_t n = strlen(wish);
    while (n > 0 && wish[n - 1] == '/') n--;
    const char *user = *http_hadoop_user() ? http_hadoop_user() : "root";
    if (*stage_path(wish) && stage_path(wish) < wish + n)
        snprintf(out, STAGE_PATH, "%.*s", (int)lmin((i64)n, 3000), wish);
    else
        snprintf(out, STAGE_PATH, "%.*s/user/%.200s/.stretto", (int)lmin((i64)n, 3000), wish, user);
    return 0;
}

const char *stage_path(const char *url) {
    const char *address = strstr(url, "://");
    address = address ? address + strlen("://") : url;
    return address + strcspn(address, "/");
}

/* ------------------------------------------------------------------ the archive --------------------------------------------- */

static void put_octal(char *field, size_t size, i64 value) {
    char text[24];
    snprintf(text, sizeof text, "%0*llo", (int)size - 1, (long long)value);
    memcpy(field, text, size - 1);
}

/* A member in the format ustar; without times and owners, so that equal content gives equal bytes. */
static void add_member(struct str *tar, const char *name, const char *data, i64 size) {
    static const char zero[BLOCK];
    char head[BLOCK] = {0};
    u32 sum = 0;
    memcpy(head, name, strlen(name) < 100 ? strlen(name) : 99);
    put_octal(head + 100, 8, 0755);
    put_octal(head + 108, 8, 0);
    put_octal(head + 116, 8, 0);
    put_octal(head + 124, 12, size);
    put_octal(head + 136, 12, 0);
    memset(head + 148, ' ', 8);
    head[156] = '0';
    memcpy(head + 257,
           "ustar\0"
           "00",
           8);
    for (i32 i = 0; i < BLOCK; i++) sum += (u8)head[i];
    put_octal(head + 148, 7, sum);
    str_addn(tar, head, BLOCK);
    str_addn(tar, data, (size_t)size);
    str_addn(tar, zero, (size_t)((BLOCK - size % BLOCK) % BLOCK));
}

static err add_file(struct str *tar, const char *folder, const char *path) {
    const char *slash = strrchr(path, '/');
    char name[100], *data = NULL;
    i64 size;
    snprintf(name, sizeof name, "%.20s%.79s", folder, slash ? slash + 1 : path);
    TRY(file_load(path, LIBRARY_MOST, &data, &size));
    add_member(tar, name, data, size);
    mem_free(data);
    return str_ok(tar);
}

/* Libraries that a node of a cluster may lack: those that the program is linked with, and what they need. */
static bool travels(const char *path) {
    static const char *const stem[] = {"libyaml-", "libhwloc.", "libjansson.", "libzstd.", "libz.", "libudev.", "libcap."};
    const char *slash = strrchr(path, '/');
    for (size_t i = 0; slash && i < COUNT(stem); i++)
        if (strncmp(slash + 1, stem[i], strlen(stem[i])) == 0 && strstr(slash, ".so")) return true;
    return false;
}

/* The path behind the address, rights, offset, device and inode of a line of /proc/self/maps; NULL = none. */
static const char *mapped_path(const char *line) {
    const char *path = strchr(line, '/');
    return path && path > line && path[-1] == ' ' ? path : NULL;
}

/* The name by which the loader looks for a library is that of the link: libz.so.1, not libz.so.1.2.13. */
static void add_library_name(const char *path, char out[100]) {
    const char *slash = strrchr(path, '/'), *so = strstr(slash, ".so");
    const char *end = so + strlen(".so");
    if (*end == '.') end += 1 + strcspn(end + 1, ".");
    snprintf(out, 100, "lib/%.*s", (int)lmin(end - slash - 1, 90), slash + 1);
}

static err add_library(struct str *tar, const char *path) {
    char name[100], *data = NULL;
    i64 size;
    add_library_name(path, name);
    TRY(file_load(path, LIBRARY_MOST, &data, &size));
    add_member(tar, name, data, size);
    mem_free(data);
    return str_ok(tar);
}

/* A file of /proc has no size. */
static err read_maps(struct str *out) {
    struct file_in f;
    char piece[4096];
    i64 got = 1;
    TRY(file_open("/proc/self/maps", &f));
    err e = 0;
    while (e >= 0 && got > 0 && out->len < MAPS_MOST) {
        e = file_read_some(&f, piece, sizeof piece, &got);
        if (e >= 0) str_addn(out, piece, (size_t)got);
    }
    file_close(&f);
    return e < 0 ? e : str_ok(out);
}

static err add_libraries(struct str *tar) {
    char before[STAGE_PATH] = "";
    struct str text = {0};
    err e = read_maps(&text);
    for (char *line = text.s, *next; e >= 0 && line && *line; line = next) {
        next = line + strcspn(line, "\n");
        if (*next) *next++ = 0;
        const char *path = mapped_path(line);
        if (!path || !travels(path) || strcmp(path, before) == 0) continue;
        snprintf(before, sizeof before, "%s", path);
        e = add_library(tar, path);
    }
    str_free(&text);
    return e;
}

err stage_pack(const char *folder, const char *program, const char *plugin, struct str *tar, char url[STAGE_PATH]) {
    static const char zero[2 * BLOCK];
    TRY(add_file(tar, "bin/", program));
    if (plugin) TRY(add_file(tar, "lib/stretto/", plugin));
    TRY(add_libraries(tar));
    str_addn(tar, zero, sizeof zero);
    TRY(str_ok(tar));
    snprintf(url, STAGE_PATH, "%.3500s/program-%016llx.tar", folder,
             (unsigned long long)hash_bytes(HASH_SEED, str_text(tar), tar->len));
    return 0;
}

/* ------------------------------------------------------------------ files --------------------------------------------------- */

err stage_name(const char *folder, const char *local, i64 *bytes, char url[STAGE_PATH]) {
    const char *slash = strrchr(local, '/');
    struct file_map m;
    TRY(file_map(local, &m));
    *bytes = m.size;
    snprintf(url, STAGE_PATH, "%.3500s/%016llx-%.200s", folder, (unsigned long long)hash_bytes(HASH_SEED, m.p, (size_t)m.size),
             slash ? slash + 1 : local);
    file_unmap(&m);
    return 0;
}

err stage_send(const char *url, const void *p, i64 n, bool *sent) {
    struct hdfs_status s;
    bool there;
    char folder[STAGE_PATH];
    TRY(hdfs_find(url, &there, &s));
    *sent = !there || s.bytes != n;
    if (!*sent) return 0;
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(url, '/') - url), url);
    TRY(hdfs_make_dir(folder));
    return hdfs_put(url, p, n);
}

err stage_send_file(const char *url, const char *local, bool *sent) {
    struct file_map m;
    TRY(file_map(local, &m));
    const err e = stage_send(url, m.p, m.size, sent);
    file_unmap(&m);
    return e;
}
