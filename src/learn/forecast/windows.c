/* windows.c - the windows that a fit trains on, validates on and calibrates with. */
#include <stdio.h>

#include "learn/forecast/fit.h"

enum { VALID_ORIGINS = 1024 };

/* Origins in [from, to) whose whole horizon ends before `to`, at least a context after the start. */
struct window_set windows_in(const struct forecast_spec *s, i64 from, i64 to) {
    return (struct window_set){.first = lmax(from, s->context), .end = to - s->horizon + 1, .stride = 1};
}

/* Origins `stride` rows apart come to every phase of the season where the two have no common divisor. */
static bool every_phase(i64 stride, i64 season) {
    while (season > 0) {
        const i64 rest = stride % season;
        stride = season;
        season = rest;
    }
    return stride == 1;
}

i64 forecast_stride(i64 about, i64 season) {
    i64 up = about, down = about;
    while (!every_phase(up, lmax(1, season))) up++;
    while (!every_phase(down, lmax(1, season))) down--; /* 1 at last */
    return up * down <= about * about ? up : down;
}

/* About VALID_ORIGINS of them, evenly spread. */
struct window_set windows_thinned(struct window_set w, i64 season) {
    i64 n = window_origins(&w);
    if (n > VALID_ORIGINS) w.stride = forecast_stride((n + VALID_ORIGINS - 1) / VALID_ORIGINS, season);
    return w;
}

err forecast_check_length(const struct split *split, const struct forecast_spec *spec) {
    i64 train = window_origins(&(struct window_set){spec->context, split->train - spec->horizon + 1, 1});
    if (train >= 1) return 0;
    i64 rows = split->test, held = rows - split->train, need = spec->context + spec->horizon + held;
    i64 room = rows - held - spec->context;
    const i64 context = rows - held - spec->horizon, part = rows / 5;
    char fix[512] = "at least 4 rows";
    i32 n = 0;
    if (room >= 1)
        n += snprintf(fix, sizeof fix, "--horizon %lld   (needs %lld rows)", (long long)room,
                      (long long)(need - spec->horizon + room));
    if (context >= 1 && n < 400)
        snprintf(fix + n, sizeof fix - (size_t)n, "%s--context %lld   (needs %lld rows)", n ? "\n" : "", (long long)context,
                 (long long)(need - spec->context + context));
    else if (!n && rows >= 4)
        snprintf(fix, sizeof fix, "--horizon %lld --context %lld --validation %lld --test %lld   (needs %lld rows)",
                 (long long)lmax(1, part), (long long)lmax(1, part), (long long)lmax(1, part), (long long)lmax(1, part),
                 (long long)lmax(4, 4 * part));
    return FAIL_AT(
        E301, NULL, fix,
        "the series is too short: context %d + horizon %d + validation %lld + test %lld = %lld rows needed, it has %lld",
        spec->context, spec->horizon, (long long)(split->validation - split->train),
        (long long)(split->test - split->validation), (long long)need, (long long)rows);
}
