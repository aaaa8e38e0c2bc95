/* build_gaps.c - the time step between rows, and the absent rows that --gaps inserts. */
#include <stdio.h>
#include <string.h>

#include "base/spill.h"
#include "base/str.h"
#include "data/build.h"
#include "data/check.h"

struct gap_count {
    i64 absent, gaps, single;  /* absent steps, gaps, gaps of one step */
    i64 first, longest;        /* row after the gap */
    i64 longest_steps;
    i64 off, first_off;        /* rows whose time is not a multiple of the step */
    i64 clocks;                /* one-hour gaps at a possible change to daylight saving time */
};

enum { FINE = 300, WEEK = 7 * 86400, WEEKS = 4 };

/* The week beside the day, where rows are five minutes to half a day apart and show it a few times. */
static i32 week_of(const struct build *b) {
    const i64 step = b->freq.months > 0 ? 0 : b->freq.step;
    const i64 rows = step >= FINE && step < WEEK / 7 && WEEK % step == 0 ? WEEK / step : 0;
    return b->n >= WEEKS * rows ? (i32)rows : 0;
}

/* --season 24 or --season 24,168 */
static err give_season(struct build *b) {
    const char *p = text_or(b->o->season, "auto");
    i32 *to[] = {&b->freq.season, &b->freq.season2};
    char item[32];
    b->freq.season2 = strcmp(p, "auto") == 0 ? week_of(b) : 0;
    if (strcmp(p, "auto") == 0) return 0;
    for (size_t n = 0; str_list_next(&p, item, sizeof item); n++) {
        i64 rows;
        if (n == COUNT(to) || !str_to_i64(item, strlen(item), &rows) || rows < 1 || rows > INT32_MAX)
            return FAIL_AT(E103, NULL, "--season 24   or   --season 24,168", "--season %s: one or two whole numbers of rows are "
                           "needed", b->o->season);
        *to[n] = (i32)rows;
    }
    return 0;
}

static err find_step(struct build *b) {
    const char *freq = text_or(b->o->freq, "auto");
    const bool given = strcmp(freq, "auto") != 0 && !b->resampled;
    if (!b->resampled) b->freq.season = 1;
    if (given) TRY(freq_parse(freq, &b->freq));
    if (given && b->freq.months > 0 && b->time) b->freq.day = freq_day(b->time, b->n);
    if (!given && !b->resampled && b->time) freq_infer(b->time, b->n, &b->freq);
    for (i32 k = 0; k < b->ntime; k++) {
        const struct column *c = &b->t->col[b->time_col[k]];
        if (!c->zoned) continue;
        b->freq.zoned = true;
        b->freq.zone = c->zone;
    }
    return give_season(b);
}

static struct gap_count count_gaps(const struct build *b) {
    struct gap_count g = {0};
    for (i64 i = 1; i < b->n; i++) {
        i64 steps = time_steps(b->time[i - 1], b->time[i], &b->freq);
        if (steps == 1) continue;
        if (steps < 1) {
            if (!g.off++) g.first_off = i;
            continue;
        }
        i64 absent = steps - 1;
        if (!g.gaps++) g.first = i;
        g.absent += absent;
        g.single += absent == 1;
        const bool hour = b->freq.step > 0 && b->time[i] - b->time[i - 1] == 3600 + b->freq.step;
        g.clocks += hour && time_clocks_change(b->time[i] - 3600, true);
        if (absent > g.longest_steps) g.longest_steps = absent, g.longest = i;
    }
    return g;
}

/* Refuses a --freq that is not the step of the rows, where these have one: coarser, or so fine that most steps would be absent.
 * --gaps interpolate and zero say what the steps between the rows are. */
static err other_step(const struct build *b) {
    struct freq own;
    i64 same = 0, finer = 0;
    freq_infer(b->time, b->n, &own);
    if (!strcmp(text_or(b->o->freq, "auto"), "auto") || b->o->of_model) return 0;
    if (own.step == b->freq.step && own.months == b->freq.months) return 0;
    for (i64 i = 1; i < b->n; i++) {
        const i64 steps = time_steps(b->time[i - 1], b->time[i], &own);
        if (steps < 0) return 0;
        same += steps == 1;
        finer += time_steps(b->time[i - 1], b->time[i], &b->freq) > 0;
    }
    const bool fills = finer == b->n - 1 && (b->gaps == GAPS_INTERPOLATE || b->gaps == GAPS_ZERO);
    if (10 * same < 9 * (b->n - 1) || fills) return 0;
    char fix[200];
    snprintf(fix, sizeof fix, "--freq auto   (%s, as the rows are)%s", own.name,
             finer == b->n - 1 ? "   or   --gaps interpolate   (fill the steps between them)" : "");
    return FAIL_AT(E210, b->t->path, fix, "--freq %s is not the step of the rows: they are %s", b->o->freq, own.name);
}

static err irregular(const struct build *b, const struct gap_count *g) {
    char where[256], from[32], to[32], resample[RESAMPLE_FIX], fix[RESAMPLE_FIX + 200];
    struct freq none = {0};
    TRY(build_resample_fix(b, resample));
    snprintf(fix, sizeof fix, "%s%s\n--time-format row   (rows are the time)   or   another --freq", resample,
             b->panel ? "" : "\n--time-delta   (records are the steps, the time between them is an input)");
    table_where(b->t, b->row[g->first_off], NULL, where);
    time_format(b->time[g->first_off - 1], &none, from);
    time_format(b->time[g->first_off], &none, to);
    return FAIL_AT(E210, where, fix,
                   "%s steps expected, %lld of %lld rows lie between them\nfirst: from %s to %s", b->freq.name, (long long)g->off,
                   (long long)b->n, from, to);
}

/* "1 hour" -> "one hour" */
static void one_step(const struct freq *f, char out[40]) {
    char span[32];
    freq_span(f, 1, span);
    if (!strncmp(span, "1 ", 2)) snprintf(out, 40, "one %s", span + 2);
    else snprintf(out, 40, "%s", span);
}

/* The step is far too small for these rows. */
static bool too_many(const struct build *b, const struct gap_count *g) { return g->absent > 20 * b->n + 1000000; }

static err absent_rows(const struct build *b, const struct gap_count *g) {
    char absent[32], longest[32], one[40], singles[80] = "", first_time[32], from[32], to[32], rest[420] = "", clocks[120] = "",
        first_at[256], longest_at[256];
    const struct freq *f = &b->freq;
    table_line_where(b->t, table_line(b->t, b->row[g->first]), first_at);
    table_line_where(b->t, table_line(b->t, b->row[g->longest]), longest_at);
    freq_span(f, g->absent, absent);
    freq_span(f, g->longest_steps, longest);
    one_step(f, one);
    time_format(time_add(b->time[g->first - 1], f, 1), f, first_time);
    time_format(time_add(b->time[g->longest - 1], f, 1), f, from);
    time_format(time_add(b->time[g->longest - 1], f, g->longest_steps), f, to);
    if (g->gaps > 1 && g->single)
        snprintf(singles, sizeof singles, " (%s%lld of them %s)", g->single == g->gaps ? "all " : "", (long long)g->single,
                 one);
    if (g->longest_steps > 1)
        snprintf(rest, sizeof rest, "; longest %s before %s (%s to %s)", longest, longest_at, from, to);
    if (g->clocks)
        snprintf(clocks, sizeof clocks, "\n%lld gap%s where clocks go forward to summer time: times in UTC have none",
                 (long long)g->clocks, g->clocks == 1 ? " is" : "s are");
    const char *fix = too_many(b, g) ? "a larger --freq, or --resample with a larger step: the absent rows would not fit"
                                     : "--gaps mask   (train on what is there)   or   --gaps zero   (no row means zero)";
    return FAIL_AT(E210, b->t->path, fix,
                   "%s steps expected, %s absent in %lld gap%s%s\nfirst before %s (%s)%s%s", f->name, absent, (long long)g->gaps,
                   g->gaps == 1 ? "" : "s", singles, first_at, first_time, rest, clocks);
}

/* Inserts a row for every absent step. */
static err insert(struct build *b, i64 absent) {
    i64 n = b->n + absent, *time, *row, k = 0;
    i32 *same = NULL;
    NEW_SPILL(time, n);
    if (spill_new((void **)&row, n, sizeof *row) < 0 || (b->same && spill_new((void **)&same, n, sizeof *same) < 0)) {
        mem_free(time);
        mem_free(row);
        return -err_last()->code;
    }
    for (i64 i = 0; i < b->n; i++) {
        i64 steps = i ? time_steps(b->time[i - 1], b->time[i], &b->freq) : 1;
        for (i64 s = 1; s < steps; s++) {
            time[k] = time_add(b->time[i - 1], &b->freq, s);
            row[k++] = -1;
        }
        time[k] = b->time[i];
        row[k] = b->row[i];
        if (same) same[k] = b->same[i];
        k++;
    }
    mem_free(b->time);
    mem_free(b->row);
    mem_free(b->same);
    b->time = time;
    b->row = row;
    b->same = same;
    b->n = k;
    return 0;
}

err build_grid(struct build *b) {
    TRY(find_step(b));
    if (!b->time || b->n < 2) return 0;
    TRY(other_step(b));
    struct gap_count g = count_gaps(b);
    if (g.off) return irregular(b, &g);
    if (!g.absent) return 0;
    const bool far = too_many(b, &g);
    const bool refused = b->gaps == GAPS_ERROR && !b->panel; /* of a panel the gaps inside of each series count */
    if (refused || far) TRY(build_problem(b, NO_COLUMN, absent_rows(b, &g)));
    return far ? 0 : insert(b, g.absent);
}
