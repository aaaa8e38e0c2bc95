/* calendar.c - see calendar.h. */
#include "learn/forecast/calendar.h"

#include <math.h>

#include "data/time.h"

static const char *const hour_name[] = {"0",  "1",  "2",  "3",  "4",  "5",  "6",  "7",  "8",  "9",  "10", "11",
                                        "12", "13", "14", "15", "16", "17", "18", "19", "20", "21", "22", "23"};
static const char *const day_name[] = {"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"};
static const char *const month_name[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

/* 1970-01-01 was a Thursday. */
static u16 bin_of(i64 t) {
    struct civil c;
    time_split(t, &c);
    const i64 days = time_days(c.year, c.month, c.day), weekday = ((days + 3) % 7 + 7) % 7;
    return (u16)(((c.month - 1) * CALENDAR_DAYS + (i32)weekday) * CALENDAR_HOURS + c.hour);
}

err calendar_new(const struct series *s, i64 first, i64 end, i32 rows, struct arena *a, struct calendar *out) {
    *out = (struct calendar){.first = first, .end = end};
    if (!s->time || end <= first) return 0;
    ARENA_NEW(a, out->bin, end - first);
    ARENA_NEW(a, out->sum, (i64)rows * CALENDAR_BINS);
    for (i64 i = first; i < end; i++) out->bin[i - first] = bin_of(series_time(s, i));
    return 0;
}

void calendar_add(struct calendar *c, const struct series *s, i32 row, i32 col, i64 origin, i32 h, const f32 *y, const f32 *f) {
    const f64 dev = s->dev[col];
    if (!c->bin) return;
    struct calendar_sums *sums = c->sum + (i64)row * CALENDAR_BINS;
    for (i32 k = 0; k < h && origin + k < c->end; k++) {
        if (isnan(y[k]) || origin + k < c->first) continue;
        const f64 e = (f64)y[k] - (f64)f[k], ae = fabs(e);
        struct calendar_sums *at = &sums[c->bin[origin + k - c->first]];
        at->absolute += ae * dev;
        at->square += e * e * dev * dev;
        at->scaled_absolute += ae;
        at->scaled_square += e * e;
        at->n++;
    }
}

i32 calendar_size(enum calendar_part part) {
    return part == CALENDAR_HOUR ? CALENDAR_HOURS : part == CALENDAR_DAY ? CALENDAR_DAYS : CALENDAR_MONTHS;
}

const char *calendar_label(enum calendar_part part, i32 i) {
    return part == CALENDAR_HOUR ? hour_name[i] : part == CALENDAR_DAY ? day_name[i] : month_name[i];
}

static i32 place(enum calendar_part part, i32 bin) {
    if (part == CALENDAR_HOUR) return bin % CALENDAR_HOURS;
    return part == CALENDAR_DAY ? bin / CALENDAR_HOURS % CALENDAR_DAYS : bin / CALENDAR_HOURS / CALENDAR_DAYS;
}

struct calendar_sums calendar_of(const struct calendar *c, i32 row, enum calendar_part part, i32 i) {
    const struct calendar_sums *sums = c->sum + (i64)row * CALENDAR_BINS;
    struct calendar_sums all = {0};
    for (i32 bin = 0; bin < CALENDAR_BINS; bin++) {
        if (place(part, bin) != i) continue;
        all.absolute += sums[bin].absolute;
        all.square += sums[bin].square;
        all.scaled_absolute += sums[bin].scaled_absolute;
        all.scaled_square += sums[bin].scaled_square;
        all.n += sums[bin].n;
    }
    return all;
}

bool calendar_matters(const struct calendar *c, const struct freq *f, enum calendar_part part) {
    enum { DAY = 86400 };
    i32 full = 0;
    if (!c->bin) return false;
    const bool within_days = f->months == 0 && f->step > 0 && f->step < DAY, days = within_days || f->step == DAY;
    if ((part == CALENDAR_HOUR && !within_days) || (part == CALENDAR_DAY && !days) || f->months >= 12) return false;
    for (i32 i = 0; i < calendar_size(part); i++) full += calendar_of(c, 0, part, i).n > 0;
    return full > 1;
}
