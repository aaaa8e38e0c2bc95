/* fuzz_fingerprint.c - any bytes as RUN/data.json: refused, or read back as written, and compared with a series without harm. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "data/fingerprint.h"
#include "data/series_build.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

#define MUST(condition)            \
    do {                           \
        if (!(condition)) abort(); \
    } while (0)

enum { ROWS = 100 };

/* The series of the corpus: a target, a past, a known and a categorical column, a day a row. */
static struct series *read_series(void) {
    struct read_options o = READ_OPTIONS_DEFAULT;
    const struct series_options so = {.target = "a", .past = "past", .known = "ahead", .cat = "kind", .gaps = "mask",
                                      .freq = "1d"};
    struct str text = {0};
    struct table *t;
    struct series *s;
    char path[64];
    const int fd = memfd_create("series.csv", 0);
    str_add(&text, "time,a,past,ahead,kind\n");
    for (i32 i = 0; i < ROWS; i++)
        str_addf(&text, "2024-%02d-%02d,%d,%d,%d,%s\n", 1 + i / 25, 1 + i % 25, 5 + i * 37 % 11, i * 53 % 17, i * 29 % 5,
                 i % 3 ? "calm" : "wild");
    MUST(fd >= 0 && write(fd, str_text(&text), text.len) == (ssize_t)text.len);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    MUST(table_read(path, &o, &t) >= 0 && series_build(t, &so, &s) >= 0);
    table_free(t);
    str_free(&text);
    close(fd);
    return s;
}

/* Whatever was accepted is written and read as the same text. */
static void check_text(const struct fingerprint *f) {
    struct fingerprint again;
    struct str a = {0}, b = {0};
    struct js *o = fingerprint_json(f), *back = NULL;
    const bool written = js_text(o, &a, 0) >= 0; /* not with the mark of json.c for lack of memory in a name */
    js_free(o);
    if (written) {
        MUST(js_parse(str_text(&a), a.len, "again", &back) >= 0 && fingerprint_read(back, &again) >= 0);
        o = fingerprint_json(&again);
        MUST(js_text(o, &b, 0) >= 0 && strcmp(str_text(&a), str_text(&b)) == 0);
        js_free(o);
        js_free(back);
        fingerprint_free(&again);
    }
    str_free(&a);
    str_free(&b);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size) {
    static struct series *s;
    struct js *o = NULL;
    struct fingerprint f = {0};
    struct data_change change;
    if (!s) s = read_series();
    err e = js_parse((const char *)data, size, "data.json", &o);
    if (e < 0) return 0;
    e = fingerprint_read(o, &f);
    js_free(o);
    MUST(e == 0 || e == -E901 || e == -E902);
    if (e < 0) {
        MUST(err_last()->text[0]);
        return 0;
    }
    check_text(&f);
    e = fingerprint_compare(&f, s, &change);
    MUST(e == 0 || err_last()->text[0]);
    if (e == 0 && change.verdict != DATA_SAME) MUST(change.text[0]);
    if (e == 0 && change.verdict <= DATA_CHANGED)
        MUST(change.split.train >= 0 && change.split.train <= change.split.validation &&
             change.split.validation <= change.split.test && change.split.test <= s->nrow);
    fingerprint_free(&f);
    return 0;
}
