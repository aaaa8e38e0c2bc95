/* windows.c - the windows that a fit trains on, validates on and calibrates with. */
#include <stdio.h>

#include "learn/forecast/fit.h"

enum { VALID_ORIGINS = 1024, VALID_SERIES = 8, VALID_LEAST = 4 };

/* Origins in [from, to) whose whole horizon ends before `to`, at least a context after the start. */
struct window_set windows_in(const struct forecast_spec *s, i64 from, i64 to) {
    return (struct window_set){.first = lmax(from, s->context), .end = to - s->horizon + 1, .stride = 1};
}

/* True if origins `stride` rows apart reach every phase of the season: the two have no common divisor. */
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
    while (!every_phase(down, lmax(1, season))) down--; /* stops at 1 */
    return up * down <= about * about ? up : down;
}

/* A subset of about VALID_ORIGINS origins, evenly spread; of a panel of many series fewer, so that it has not more windows than
 * one of VALID_SERIES. */
struct window_set windows_thinned(struct window_set w, const struct series *s) {
    const i64 n = window_origins(&w);
    const i64 most = s->panel ? lmax(VALID_LEAST, VALID_ORIGINS * VALID_SERIES / lmax(VALID_SERIES, s->ntarget)) : VALID_ORIGINS;
    if (n > most) w.stride = forecast_stride((n + most - 1) / most, s->freq.season);
    return w;
}

err forecast_check_length(const struct split *split, const struct forecast_spec *spec, i32 folds) {
    i64 train =
        window_origins(&(struct window_set){.first = spec->context, .end = split->train - spec->horizon + 1, .stride = 1});
    if (train >= 1) return 0;
    const i64 rows = split->test, held = rows - split->train, need = spec->context + spec->horizon + held;
    const i64 room = rows - held - spec->context, context = rows - held - spec->horizon;
    const i64 part = lmin(lmax(1, rows / (folds + 4)), spec->horizon); /* of context, horizon, validation and each fold */
    char fix[300], less[120] = "";
    if (room >= 1 && folds == 1)
        snprintf(less, sizeof less, "--horizon %lld   (needs %lld rows)", (long long)room,
                 (long long)(need - spec->horizon + room));
    if (context >= 1)
        snprintf(fix, sizeof fix, "%s%s--context %lld   (needs %lld rows)", less, less[0] ? "\n" : "", (long long)context,
                 (long long)(need - spec->context + context));
    else if (less[0])
        snprintf(fix, sizeof fix, "%s", less);
    else if (rows >= folds + 3)
        snprintf(fix, sizeof fix, "--horizon %lld --context %lld --validation %lld --test %lld   (needs %lld rows)",
                 (long long)part, (long long)part, (long long)part, (long long)(folds * part), (long long)((folds + 3) * part));
    else
        snprintf(fix, sizeof fix, "at least %d rows", folds + 3);
    return FAIL_AT(
        E301, NULL, fix,
        "the series is too short: context %d + horizon %d + validation %lld + test %lld = %lld rows needed, it has %lld",
        spec->context, spec->horizon, (long long)(split->validation - split->train),
        (long long)(split->test - split->validation), (long long)need, (long long)rows);
}
