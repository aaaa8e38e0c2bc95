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

#endif

#endif
