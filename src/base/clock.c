/* clock.c - see clock.h. */
#define _GNU_SOURCE
#include "base/clock.h"

#include <time.h>

f64 clock_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (f64)t.tv_sec + 1e-9 * (f64)t.tv_nsec;
}

void clock_date(char out[32]) {
    time_t now = time(NULL);
    struct tm tm;
    gmtime_r(&now, &tm);
    strftime(out, 32, "%Y-%m-%d %H:%M:%S", &tm);
}
