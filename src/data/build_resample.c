/* build_resample.c - --resample STEP[:mean|sum|last]: rows at any times, or at steps of several lengths, become rows of one step.
 *
 *     --resample 1h:sum     10:05 2 | 10:40 3 | 11:59 1        ->      10:00 5 | 11:00 1
 *
 * Times move down to the step that they lie in; rows of one time are then merged as --dups does.  Steps of weeks begin on Monday,
 * those of months with the month or with a multiple of it in the year, others at multiples of the step since 1970-01-01. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/spill.h"
#include "data/build.h"

enum { DAY = 86400, WEEK = 7 * DAY, MONDAY = 4 * DAY /* 1970-01-05 */, STEP_TEXT = 40 };

static const char fix[] = "--resample 1h   or   --resample 1d:sum";

static err read_rule(struct build *b, const char *rule) {
    static const char *const word[] = {"mean", "sum", "last"};
    size_t k = 0;
    while (k < COUNT(word) && strcmp(rule, word[k]) != 0) k++;
    if (k == COUNT(word)) return FAIL_AT(E103, "--resample", fix, "\"%.40s\" is neither mean, sum nor last", rule);
    b->sums = k == 1;
    b->dups = k == 2 ? DUPS_LAST : DUPS_MEAN;
    return 0;
}

err build_resample(struct build *b) {
    const char *text = text_or(b->o->resample, NULL), *colon = text ? strchr(text, ':') : NULL;
    char step[STEP_TEXT];
    if (!text) return 0;
    if (!b->time) return FAIL_AT(E106, "--resample", "--time COLUMN", "the rows have no times");
    if (strcmp(text_or(b->o->freq, "auto"), "auto") != 0 && !b->o->of_model)
        return FAIL_AT(E106, "--resample", "no --freq", "it sets the step of the rows, as --freq does");
    const size_t n = colon ? (size_t)(colon - text) : strlen(text);
    snprintf(step, sizeof step, "%.*s", (int)(n < sizeof step ? n : sizeof step - 1), text);
    if (freq_parse(step, &b->freq) < 0) return FAIL_AT(E103, "--resample", fix, "\"%s\" is no step of time", step);
    b->resampled = true;
    return read_rule(b, colon ? colon + 1 : "mean");
}

static i64 floor_to(i64 t, i64 step, i64 from) {
    const i64 d = t - from, rest = d % step;
    return t - (rest < 0 ? rest + step : rest);
}

void build_floor_times(struct build *b) {
    const struct freq *f = &b->freq;
    for (i64 i = 0; b->resampled && i < b->n; i++) {
        if (f->months == 0) {
            b->time[i] = floor_to(b->time[i], f->step, f->step % WEEK == 0 ? MONDAY : 0);
            continue;
        }
        struct civil c;
        time_split(b->time[i], &c);
        const i64 month = floor_to((i64)c.year * 12 + c.month - 1, f->months, 0);
        b->time[i] = time_days(month / 12, (i32)(month % 12) + 1, 1) * DAY;
    }
}

/* ------------------------------------------------------------------ a remedy ------------------------------------------------ */

static int by_number(const void *a, const void *b) {
    const i64 x = *(const i64 *)a, y = *(const i64 *)b;
    return x < y ? -1 : x > y;
}

err build_resample_fix(const struct build *b, char out[RESAMPLE_FIX]) {
    static const struct {
        const char *text;
        i64 step;
    } steps[] = {{"1s", 1},     {"10s", 10}, {"1min", 60}, {"5min", 300},        {"15min", 900},      {"1h", 3600},
                 {"6h", 21600}, {"1d", DAY}, {"1w", WEEK}, {"1month", 31 * DAY}, {"1year", 366 * DAY}};
    i64 *apart;
    size_t k = 0;
    NEW_SPILL(apart, b->n);
    for (i64 i = 1; i < b->n; i++) apart[i - 1] = b->time[i] - b->time[i - 1];
    qsort(apart, (size_t)(b->n - 1), sizeof *apart, by_number);
    const i64 median = apart[(b->n - 1) / 2], most = apart[b->n - 2];
    mem_free(apart);
    while (k + 1 < COUNT(steps) && steps[k].step < median) k++;
    snprintf(out, RESAMPLE_FIX, "--resample %s:mean%s   (or :sum, or :last)", steps[k].text,
             most > steps[k].step ? " --gaps mask" : "");
    return 0;
}
