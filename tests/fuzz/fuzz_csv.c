/* fuzz_csv.c - libFuzzer target: bytes -> table -> series -> cache.  The first two bytes choose the options; a table that can
 * be read must be read the same by one thread and by two. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "data/check.h"
#include "data/series_build.h"
#include "data/table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void same(const struct table *a, const struct table *b) {
    if (a->nrow != b->nrow || a->ncol != b->ncol) abort();
    for (i32 c = 0; c < a->ncol; c++) {
        const struct column *x = &a->col[c], *y = &b->col[c];
        if (x->type != y->type || x->missing != y->missing || x->nword != y->nword || strcmp(x->name, y->name) != 0) abort();
        for (i64 i = 0; i < a->nrow; i++) {
            if (x->number && memcmp(&x->number[i], &y->number[i], 8) != 0) abort();
            if (x->time && x->time[i] != y->time[i]) abort();
            if (x->code && (x->code[i] != y->code[i] || x->code[i] >= x->nword)) abort();
            if (table_line(a, i) != table_line(b, i)) abort();
        }
    }
}

static void try_build(const struct table *t, const struct series_options *so) {
    struct series *s = NULL;
    struct findings f;
    mem_set_limit(256 << 20);
    if (series_build(t, so, &s) >= 0 && series_scale(s, s->nrow) < 0 && err_last()->code != 212) abort();
    series_free(s);
    (void)check_table(t, so, &f, NULL);
}

/* One series; a panel named by the first column, or by the first two. */
static void try_series(const struct table *t, u8 flags) {
    static const char *const gaps[] = {"error", "mask", "interpolate", "zero"}, *const dups[] = {"error", "mean", "first",
                                                                                                 "last"};
    struct series_options so = {.target = flags & 1 ? "all" : "", .gaps = gaps[flags >> 1 & 3], .dups = dups[flags >> 3 & 3],
                                .freq = flags & 32 ? "1h" : "auto", .time_format = flags & 64 ? "row" : NULL};
    try_build(t, &so);
    so.id = flags & 1 ? "1" : "1,2";
    so.target = "last";
    so.fixed = flags & 64 ? "2" : "";
    so.least_rows = (i32)(flags & 3) - 1;
    try_build(t, &so);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static char path[64];
    static int fd = -1;
    if (fd < 0) {
        fd = memfd_create("fuzz", 0);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    }
    if (size < 2) return 0;
    u8 flags = data[0], more = data[1];
    if (ftruncate(fd, 0) != 0 || pwrite(fd, data + 2, size - 2, 0) != (ssize_t)(size - 2)) return 0;
    struct read_options o = READ_OPTIONS_DEFAULT;
    if (more & 1) o.header = more >> 1 & 1;
    if (more & 4) o.cat = "1";
    if (more & 8) o.time = "1";
    if (more & 16) o.time = "1,2";
    if (more & 32) o.decimal = ',';
    if (more & 64) o.time_format = "%Y-%m-%d %H:%M";
    if (more & 128) o.na = "0,NA,-9";
    i64 before = mem_stats().live;
    mem_set_limit(512 << 20);
    struct table *t = NULL, *u = NULL;
    err e = table_read(path, &o, &t);
    o.threads = 2;
    o.chunk = 1 + flags % 61;
    i32 code = err_last()->code;
    char text[1024];
    snprintf(text, sizeof text, "%s", err_last()->text);
    err again = table_read(path, &o, &u);
    if (again != e || (e < 0 && (code != err_last()->code || strcmp(text, err_last()->text) != 0))) abort();
    if (e >= 0) {
        same(t, u);
        try_series(t, flags);
    }
    table_free(t);
    table_free(u);
    if (mem_stats().live != before) abort();
    return 0;
}
