/* tiny.h - series for the tests of this folder: made from arrays or from chosen columns of a plain CSV file under shared/. */
#ifndef STRETTO_TESTS_BASES_TINY_H
#define STRETTO_TESTS_BASES_TINY_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "data/series.h"
#include "t.h"

/* A series of ncol target columns with room for values, all missing. */
static inline struct series *tiny_series(i64 nrow, i32 ncol, i32 season) {
    struct series *s = mem_alloc(sizeof *s);
    s->nrow = nrow;
    s->ncol = s->ntarget = ncol;
    s->freq.season = season;
    s->v = mem_alloc((size_t)(nrow * ncol) * sizeof(f32));
    s->mean = mem_alloc((size_t)ncol * sizeof(f64));
    s->dev = mem_alloc((size_t)ncol * sizeof(f64));
    for (i64 i = 0; i < nrow * ncol; i++) s->v[i] = NAN;
    for (i32 c = 0; c < ncol; c++) s->dev[c] = 1;
    return s;
}

static inline void tiny_free(struct series *s) {
    mem_free(s->v);
    mem_free(s->mean);
    mem_free(s->dev);
    mem_free(s->time);
    mem_free(s);
}

/* Columns from..from+ncol-1 (counted from 0) of a file with header and plain cells; what is no number is missing. */
static inline struct series *tiny_csv(const char *name, i32 from, i32 ncol, i32 season) {
    char line[4096];
    i64 rows = -1, i = -1;
    FILE *f = fopen(t_shared(name), "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) rows++;
    rewind(f);
    struct series *s = tiny_series(rows, ncol, season);
    while (fgets(line, sizeof line, f)) {
        char *at = line;
        for (i32 c = 0; i >= 0 && c < from + ncol; c++) {
            size_t n = strcspn(at, ",\r\n");
            f64 v;
            if (c >= from && str_to_f64(at, n, '.', &v)) s->v[(c - from) * rows + i] = (f32)v;
            at += n + (at[n] == ',');
        }
        i++;
    }
    fclose(f);
    return s;
}

/* Z-scores from rows [0, rows). */
static inline void tiny_scale(struct series *s, i64 rows) {
    for (i32 c = 0; c < s->ncol; c++) {
        f32 *x = s->v + c * s->nrow;
        f64 n = 0, sum = 0, square = 0;
        for (i64 i = 0; i < rows; i++)
            if (!isnan(x[i])) n += 1, sum += (f64)x[i];
        for (i64 i = 0; i < rows; i++)
            if (!isnan(x[i])) square += ((f64)x[i] - sum / n) * ((f64)x[i] - sum / n);
        s->mean[c] = sum / n;
        s->dev[c] = sqrt(square / n);
        for (i64 i = 0; i < s->nrow; i++) x[i] = (f32)(((f64)x[i] - s->mean[c]) / s->dev[c]);
    }
}

#endif
