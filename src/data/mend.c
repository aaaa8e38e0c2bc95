/* mend.c - quotes file and column names for the shell commands in error messages. A pasted command must never overwrite its
 * input. */
#include "data/mend.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/input.h"
#include "base/str.h"

enum { NAME_MOST = 200, TRIES = 1000 };

static bool ends(const char *s, size_t n, const char *end) {
    const size_t k = strlen(end);
    return n > k && !memcmp(s + n - k, end, k);
}

/* True for pipes, devices and remote files, which a command cannot read (again). */
static bool no_file(const char *path) {
    return file_is_remote(path) || !strcmp(path, input_label("-")) || !strncmp(path, "/dev/", 5) || !strncmp(path, "/proc/", 6);
}

/* Adds single quotes unless every character is safe in a shell. */
static void quote(const char *s, char *out, size_t size) {
    size_t n = 0;
    for (const char *p = s; *p; p++) n += isalnum((u8)*p) || strchr("._-+/=:,@%", *p) || (u8)*p >= 0x80;
    if (s[0] && s[n] == 0 && s[0] != '-') {
        snprintf(out, size, "%.*s", NAME_MOST, s);
        return;
    }
    n = 0;
    out[n++] = '\'';
    for (const char *p = s; *p && n + 6 < size; p++) {
        if (*p == '\'') n += (size_t)snprintf(out + n, size - n, "'\\'");
        out[n++] = *p;
    }
    out[n++] = '\'';
    out[n] = 0;
}

const char *mend_words(const char *list, char out[MEND_PATH]) {
    quote(list, out, MEND_PATH);
    return out;
}

const char *mend_word(const char *name, char out[MEND_PATH]) {
    struct str item = {0};
    str_list_add(&item, name);
    mend_words(str_text(&item), out);
    str_free(&item);
    return out;
}

const char *mend_ignore(const char *name, char out[MEND_IGNORE]) {
    char word[MEND_PATH];
    snprintf(out, MEND_IGNORE, "--ignore %s", mend_word(name, word));
    return out;
}

const char *mend_from(const char *path, char out[MEND_PATH]) {
    char name[MEND_PATH - 20];
    const size_t n = strlen(path);
    const char *unpack = ends(path, n, ".gz") ? "gzip" : ends(path, n, ".zst") ? "zstd" : NULL;
    quote(no_file(path) ? "FILE" : path, name, sizeof name);
    snprintf(out, MEND_PATH, unpack ? "<(%s -dc %s)" : "%s%s", unpack ? unpack : "", name);
    return out;
}

const char *mend_data(const char *path, char out[MEND_PATH]) {
    return mend_words(no_file(path) && !file_is_remote(path) ? "FILE" : path, out);
}

const char *mend_cell(const char *cell, const char *column, bool numbers, char *out, size_t size) {
    char word[MEND_PATH], name[MEND_PATH];
    mend_word(column, name);
    if (numbers) snprintf(out, size, "a number in this cell   or   --ignore %s", name);
    else
        snprintf(out, size, "--na %s   (it means missing)   or   --cat %s   or   --ignore %s", mend_word(cell, word), name, name);
    return out;
}

const char *mend_to(const char *path, const char *what, char out[MEND_PATH]) {
    char name[MEND_PATH];
    if (no_file(path)) path = "FILE.csv";
    size_t n = strlen(path);
    if (ends(path, n, ".gz")) n -= 3;
    else if (ends(path, n, ".zst")) n -= 4;
    size_t stem = n;
    while (stem > 0 && path[stem - 1] != '.' && path[stem - 1] != '/') stem--;
    const bool dot = stem > 1 && path[stem - 1] == '.' && path[stem - 2] != '/' && n - stem < 16;
    stem = dot ? stem - 1 : n;
    for (i32 k = 1; k < TRIES; k++) {
        char again[8] = "";
        if (k > 1) snprintf(again, sizeof again, "-%d", k);
        snprintf(name, sizeof name, "%.*s-%s%s%.*s", (int)(stem < NAME_MOST ? stem : NAME_MOST), path, what, again,
                 (int)(n - stem), path + stem);
        if (!file_exists(name)) break;
    }
    quote(name, out, MEND_PATH);
    return out;
}
