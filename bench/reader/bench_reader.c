/* bench_reader.c - one measurement of the text reader, or the file to measure with.
 *
 *     bench_reader gen KIND ROWS FILE     KIND: floats (3 numbers, 6 decimals), full (all digits), time (time + 2 numbers)
 *     bench_reader read THREADS FILE      prints: seconds, processor seconds, peak resident bytes, checksum */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/rng.h"
#include "data/table.h"
#include "data/time.h"

static f64 uniform(u64 stream, u64 i) {
    u32 w[4];
    rng_words(1, RNG_TEST, (u32)stream, i, w);
    return (f64)((u64)w[0] << 21 ^ w[1]) * 0x1p-53;
}

static int generate(const char *kind, i64 rows, const char *path) {
    FILE *f = fopen(path, "w");
    if (!f) return 1;
    bool times = !strcmp(kind, "time"), full = !strcmp(kind, "full");
    static const struct freq seconds = {.step = 1};
    fputs(times ? "time,a,b\n" : "a,b,c\n", f);
    for (i64 i = 0; i < rows; i++) {
        char text[32];
        f64 a = 1000 * uniform(1, (u64)i), b = uniform(2, (u64)i) - 0.5, c = 50 * uniform(3, (u64)i);
        if (times) {
            time_format(1000000000 + i, &seconds, text);
            fprintf(f, "%s,%.6f,%.6f\n", text, a, b);
        } else {
            fprintf(f, full ? "%.17g,%.17g,%.17g\n" : "%.6f,%.6f,%.6f\n", a, b, c);
        }
    }
    return fclose(f) != 0;
}

static f64 cpu_seconds(void) {
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return (f64)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) + 1e-6 * (f64)(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

static int measure(i32 threads, const char *path) {
    struct read_options o = READ_OPTIONS_DEFAULT;
    o.threads = threads;
    struct table *t;
    f64 begin = clock_now(), used = cpu_seconds();
    if (table_read(path, &o, &t) < 0) {
        fprintf(stderr, "%s: %s\n", err_last()->where, err_last()->text);
        return 1;
    }
    f64 seconds = clock_now() - begin, sum = 0;
    used = cpu_seconds() - used;
    for (i32 c = 0; c < t->ncol; c++)
        for (i64 i = 0; t->col[c].number && i < t->nrow; i += 1001) sum += t->col[c].number[i];
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    printf("%.4f %.4f %lld %.9g\n", seconds, used, (long long)use.ru_maxrss * 1024, sum);
    table_free(t);
    return 0;
}

int main(int argc, char **argv) {
    if (argc == 5 && !strcmp(argv[1], "gen")) return generate(argv[2], strtoll(argv[3], NULL, 10), argv[4]);
    if (argc == 4 && !strcmp(argv[1], "read")) return measure((i32)strtol(argv[2], NULL, 10), argv[3]);
    fputs("usage: bench_reader gen KIND ROWS FILE | read THREADS FILE\n", stderr);
    return 2;
}
