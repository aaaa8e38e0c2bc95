/* folder.c - see folder.h. */
#include "data/folder.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"

enum { NAME_MOST = 255 };

bool folder_is(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* An ending ".csv" is that of any longer name, an ending "part-" the beginning of a name without a dot. */
static bool is_part(const char *name, const char *const *ending) {
    const size_t n = strlen(name);
    if (name[0] == '.' || name[0] == '_') return false;
    for (; *ending; ending++) {
        const size_t k = strlen(*ending);
        const bool dot = (*ending)[0] == '.';
        if (dot ? n > k && strcmp(name + n - k, *ending) == 0 : !strchr(name, '.') && strncmp(name, *ending, k) == 0) return true;
    }
    return false;
}

bool folder_has(const char *path, const char *const *ending) {
    DIR *d = opendir(path);
    bool found = false;
    for (const struct dirent *f = d ? readdir(d) : NULL; f && !found; f = readdir(d)) found = is_part(f->d_name, ending);
    if (d) closedir(d);
    return found;
}

static int by_name(const void *x, const void *y) { return strcmp(*(const char *const *)x, *(const char *const *)y); }

err folder_list(struct arena *memory, const char *path, const char *const *ending, const char ***out, i32 *n) {
    char whole[PATH_MAX];
    const char **found = NULL;
    i64 cap = 0;
    err e = 0;
    DIR *d = opendir(path);
    *n = 0;
    if (!d) return FAIL_AT(E701, path, NULL, "cannot read the folder: %s", strerror(errno));
    for (const struct dirent *f = readdir(d); f && e >= 0; f = readdir(d)) {
        if (!is_part(f->d_name, ending)) continue;
        snprintf(whole, sizeof whole, "%.3000s%s%.*s", path, path[strlen(path) - 1] == '/' ? "" : "/", NAME_MOST, f->d_name);
        if (folder_is(whole)) continue;
        e = mem_grow((void **)&found, *n, &cap, sizeof *found);
        if (e >= 0) e = arena_keep(memory, &found[*n], whole);
        *n += e >= 0;
    }
    closedir(d);
    if (e >= 0 && *n > 1) qsort(found, (size_t)*n, sizeof *found, by_name);
    if (e >= 0 && !(*out = arena_new(memory, (size_t)(*n + 1) * sizeof **out))) e = -E601;
    if (e >= 0 && *n > 0) memcpy(*out, found, (size_t)*n * sizeof *found);
    mem_free(found);
    return e;
}
