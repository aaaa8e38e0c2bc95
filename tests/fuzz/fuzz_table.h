/* fuzz_table.h - what the fuzz targets of binary tables and JSON lines share: bytes -> table -> series.  The first byte chooses
 * the options.  What is recognized ends in a table whose cells are sound, or in one error; no memory is kept. */
#ifndef STRETTO_TESTS_FUZZ_TABLE_H
#define STRETTO_TESTS_FUZZ_TABLE_H
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

/* Columns that the options name. */
struct fuzz_names {
    const char *cat, *time, *ignore, *times;
};

static void look(const struct table *t) {
    if (t->nrow < 1 || t->ncol < 1) abort();
    for (i32 k = 0; k < t->ncol; k++) {
        const struct column *c = &t->col[k];
        i64 missing = 0;
        if (!c->name || !c->name[0]) abort();
        if ((c->type == COL_NUMBER) != (c->number != NULL) || (c->type == COL_TIME) != (c->time != NULL)) abort();
        for (i64 i = 0; i < t->nrow; i++) {
            if (c->number && c->number[i] != c->number[i]) missing++;
            if (c->code && (c->code[i] < -1 || c->code[i] >= c->nword)) abort();
            if (c->code && c->code[i] < 0) missing++;
        }
        if (!c->time && missing != c->missing) abort();
    }
}

static int fuzz_table(const uint8_t *data, size_t size, struct fuzz_names name) {
    static char path[64];
    static int fd = -1;
    if (fd < 0) {
        fd = memfd_create("fuzz", 0);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    }
    const u8 flags = data[0];
    if (ftruncate(fd, 0) != 0 || pwrite(fd, data + 1, size - 1, 0) != (ssize_t)(size - 1)) return 0;
    struct read_options o = READ_OPTIONS_DEFAULT;
    if (flags & 1) o.cat = name.cat;
    if (flags & 2) o.time = name.time;
    if (flags & 4) o.ignore = name.ignore;
    if (flags & 8) o.time_format = "%Y-%m-%d %H:%M";
    if (flags & 16) o.na = "0,NA,-9";
    if (flags & 32) o.time = name.times;
    const i64 before = mem_stats().live;
    mem_set_limit(512 << 20);
    struct table *t = NULL;
    const err e = table_read(path, &o, &t);
    if (e < 0 && !err_last()->text[0]) abort();
    if (e >= 0) {
        struct series_options so = {.target = flags & 64 ? "all" : "", .gaps = "mask", .dups = "mean", .freq = "auto"};
        struct findings f;
        look(t);
        (void)check_table(t, &so, &f, NULL);
    }
    table_free(t);
    if (mem_stats().live != before) abort();
    return 0;
}

#endif
