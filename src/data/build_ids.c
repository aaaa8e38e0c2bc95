/* build_ids.c - finds the columns of words or whole numbers that name the series of a panel, for the remedy of repeated times.
 *
 *     store dept date          times repeat, but not within one store and department, where rows are one step apart:
 *     101   1    2024-01-01    --id store,dept
 *     101   2    2024-01-01
 *
 * A covariate that happens to differ between duplicates does not pass: the rows of each of its values have no common step. */
#define _GNU_SOURCE
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/spill.h"
#include "base/str.h"
#include "data/build.h"
#include "data/names.h"

enum { CANDIDATES = 12, LEAST_ROWS = 3, REGULAR = 75, REPEATED = 75, PERCENT = 100 };

struct ids {
    const struct build *b;
    i32 n;
    const struct column *c[ID_PARTS];
};

static f64 value_of(const struct build *b, const struct column *c, i64 i) {
    return c->type == COL_CATEGORY ? (f64)c->code[b->row[i]] : c->number[b->row[i]];
}

static int compare_ids(const struct ids *k, i64 a, i64 z) {
    for (i32 j = 0; j < k->n; j++) {
        const f64 x = value_of(k->b, k->c[j], a), y = value_of(k->b, k->c[j], z);
        if (x < y || x > y) return x < y ? -1 : 1;
    }
    return 0;
}

static int by_ids_and_time(const void *pa, const void *pz, void *self) {
    const struct ids *k = self;
    const i64 a = *(const i64 *)pa, z = *(const i64 *)pz, ta = k->b->time[a], tz = k->b->time[z];
    const int ids = compare_ids(k, a, z);
    return ids ? ids : ta < tz ? -1 : ta > tz ? 1 : a < z ? -1 : a > z;
}

/* True if rows of the same ids have different times, one step apart, in series of a few rows at least.  order: [n] scratch. */
static bool separates(struct ids *k, i64 *order, i32 *series) {
    const struct build *b = k->b;
    i64 pairs = 0, regular = 0, run = 1, step = 0;
    for (i64 i = 0; i < b->n; i++) order[i] = i;
    qsort_r(order, (size_t)b->n, sizeof *order, by_ids_and_time, k);
    *series = 1;
    for (i64 i = 1; i < b->n; i++) {
        const i64 apart = b->time[order[i]] - b->time[order[i - 1]];
        if (compare_ids(k, order[i - 1], order[i]) != 0) {
            if (run < LEAST_ROWS) return false;
            run = 1, step = 0, ++*series;
            continue;
        }
        if (apart == 0) return false;
        /* months are 28 to 31 days, years 365 or 366 */
        regular += step > 0 && llabs(apart - step) * 8 <= step;
        pairs += step > 0;
        step = apart, run++;
    }
    return *series > 1 && run >= LEAST_ROWS && PERCENT * regular >= REGULAR * pairs;
}

static bool has_role(const struct build *b, const struct column *c) {
    const i32 at = (i32)(c - b->t->col);
    bool role = false;
    for (i32 k = 0; k < b->ntarget + b->npast + b->nknown; k++) role |= b->col[k] == at;
    for (i32 k = 0; k < b->ntime; k++) role |= b->time_col[k] == at;
    return role;
}

/* Words, or whole numbers, in every row. */
static bool could_be_id(const struct build *b, const struct column *c) {
    if ((c->type != COL_CATEGORY && c->type != COL_NUMBER) || has_role(b, c) || name_listed(b->o->ignore, c->name)) return false;
    bool varies = false;
    for (i64 i = 0; i < b->n; i++) {
        const f64 v = value_of(b, c, i);
        if (isnan(v) || v < 0 || v != floor(v)) return false;
        varies |= v < value_of(b, c, 0) || v > value_of(b, c, 0);
    }
    return varies;
}

static i32 candidates(const struct build *b, const struct column *out[CANDIDATES]) {
    i32 n = 0;
    for (i32 i = 0; i < b->t->ncol && n < CANDIDATES; i++)
        if (could_be_id(b, &b->t->col[i])) out[n++] = &b->t->col[i];
    return n;
}

static int by_number(const void *a, const void *b) {
    const i64 x = *(const i64 *)a, y = *(const i64 *)b;
    return x < y ? -1 : x > y;
}

static bool times_repeat(const struct build *b, i64 *room) {
    i64 kinds = 1;
    memcpy(room, b->time, (size_t)b->n * sizeof *room);
    qsort(room, (size_t)b->n, sizeof *room, by_number);
    for (i64 i = 1; i < b->n; i++) kinds += room[i] != room[i - 1];
    return PERCENT * kinds <= REPEATED * b->n;
}

/* One column, or else two. */
static bool choose(struct ids *k, i64 *order, i32 *series) {
    const struct column *c[CANDIDATES];
    const i32 n = candidates(k->b, c);
    k->n = 1;
    for (i32 i = 0; i < n; i++) {
        k->c[0] = c[i];
        if (separates(k, order, series)) return true;
    }
    k->n = 2;
    for (i32 i = 0; i < n; i++)
        for (i32 j = i + 1; j < n; j++) {
            k->c[0] = c[i], k->c[1] = c[j];
            if (separates(k, order, series)) return true;
        }
    return false;
}

err build_find_ids(const struct build *b, struct str *ids, i32 *series) {
    struct ids k = {.b = b};
    i64 *order;
    *series = 0;
    if (b->n < 2 * LEAST_ROWS) return 0;
    NEW_SPILL(order, b->n);
    if (!times_repeat(b, order) || !choose(&k, order, series)) *series = 0;
    for (i32 j = 0; *series > 0 && j < k.n; j++) str_list_add(ids, k.c[j]->name);
    mem_free(order);
    return str_ok(ids);
}
