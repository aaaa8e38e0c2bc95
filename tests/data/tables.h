/* tables.h - what the tests of table readers share: seeds of the fuzzer as files, comparison of tables. */
#ifndef STRETTO_TESTS_DATA_TABLES_H
#define STRETTO_TESTS_DATA_TABLES_H

#include "t.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "data/table.h"

/* Equal names, kinds, words and cells; from one file format to another the numbers of fields may differ. */
static inline void same_tables(const struct table *a, const struct table *b) {
    assert_int_equal(a->nrow, b->nrow);
    assert_int_equal(a->ncol, b->ncol);
    for (i32 k = 0; k < a->ncol; k++) {
        const struct column *x = &a->col[k], *y = &b->col[k];
        assert_string_equal(x->name, y->name);
        assert_int_equal(x->type, y->type);
        assert_int_equal(x->missing, y->missing);
        assert_int_equal(x->nword, y->nword);
        assert_int_equal(x->zoned, y->zoned);
        assert_int_equal(x->zone, y->zone);
        for (i32 w = 0; w < x->nword; w++) assert_string_equal(x->word[w], y->word[w]);
        for (i64 i = 0; i < a->nrow; i++) {
            const bool none = x->number && isnan(x->number[i]) && isnan(y->number[i]);
            if (x->number && !none) assert_memory_equal(&x->number[i], &y->number[i], 8);
            if (x->time) assert_int_equal(x->time[i], y->time[i]);
            if (x->code) assert_int_equal(x->code[i], y->code[i]);
        }
    }
}

/* The same, with columns at the same places in the files. */
static inline void same_files(const struct table *a, const struct table *b) {
    same_tables(a, b);
    for (i32 k = 0; k < a->ncol; k++) assert_int_equal(a->col[k].field, b->col[k].field);
}

#ifdef TESTS_DIR
/* The bytes of a seed, without the byte that chooses the fuzzer's options. */
static inline char *table_seed(const char *kind, const char *name, i64 *n) {
    char path[400], *bytes;
    snprintf(path, sizeof path, "%s/fuzz/corpus/%s/%s", TESTS_DIR, kind, name);
    T_OK(file_load(path, 1 << 20, &bytes, n));
    memmove(bytes, bytes + 1, (size_t)--*n);
    return bytes;
}

/* Writes a file into the folder of the tests; the path is good until the second call after this. */
static inline const char *table_put(const char *name, const char *bytes, i64 n) {
    static char path[2][300];
    static i32 turn;
    char *to = path[turn ^= 1];
    snprintf(to, 300, "%s/%s", t_dir(), name);
    FILE *f = fopen(to, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, (size_t)n, f), n);
    assert_int_equal(fclose(f), 0);
    return to;
}


static inline struct table *table_of_seed(const char *kind, const char *name, const struct read_options *o) {
    struct table *t;
    i64 n;
    char *bytes = table_seed(kind, name, &n);
    const char *slash = strrchr(name, '/');
    T_OK(table_read(table_put(slash ? slash + 1 : name, bytes, n), o, &t));
    mem_free(bytes);
    return t;
}

/* The rows of the seeds that are called plain, as CSV text: bools as 0 and 1, and no days, which CSV has as words. */
static inline void seeds_are_the_csv_table(const char *kind, const char *const *names) {
    static const char plain[] = "ds,y,n,big,f,b,d,w,day\n2011-01-01,1.5,7,1,0.5,1,-1.25,a,x\n"
                                "2011-01-02,,-9,9223372036854775808,,0,,,x\n2011-01-03,-2,,3,2,,12345678901234567890.5,b,x\n";
    struct read_options o = READ_OPTIONS_DEFAULT;
    struct table *csv;
    const i64 before = mem_stats().live;
    o.ignore = "day";
    T_OK(table_read(t_file("plain.csv", plain), &o, &csv));
    for (; *names; names++) {
        struct table *t = table_of_seed(kind, *names, &o);
        same_files(t, csv);
        table_free(t);
    }
    table_free(csv);
    assert_int_equal(mem_stats().live, before);
}
#endif

#endif
