/* column_rank.c - see column_rank.h. */
#include "learn/column_rank.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/rng.h"
#include "data/time.h"
#include "learn/forest/forest.h"

enum { ORIGINS_MOST = 20000, ORIGINS_LEAST = 40, CALENDAR = 5, LEAF_ROWS = 5 };
enum { RANDOM = 3 }; /* inputs of random numbers */
enum { OWNER_CALENDAR = -1, OWNER_RANDOM = -2 };

/* The table that the forest learns from: column 0 is the target, inputs follow. */
struct lag_table {
    const struct series *s;
    i64 rows, horizon, season, first, step; /* origins first, first + step, .. */
    struct table *t;
    u64 seed;
    i32 *owner;                             /* [t->ncol] column of the series, or OWNER_.. */
};

static struct column *add_column(struct lag_table *l, i32 owner) {
    struct column *c = &l->t->col[l->t->ncol];
    char name[24];
    snprintf(name, sizeof name, "x%d", l->t->ncol);
    l->owner[l->t->ncol++] = owner;
    *c = (struct column){.type = COL_NUMBER, .field = l->t->ncol};
    if (arena_keep(&l->t->names, &c->name, name) < 0) return NULL;
    return mem_new((void **)&c->number, l->t->nrow, sizeof *c->number) < 0 ? NULL : c;
}

typedef f64 input_of(const struct lag_table *l, i32 column, i64 origin);

static err fill(struct lag_table *l, i32 owner, input_of *f, i32 column) {
    struct column *c = add_column(l, owner);
    if (!c) return -E601;
    for (i64 i = 0; i < l->t->nrow; i++) {
        c->number[i] = f(l, column, l->first + i * l->step);
        c->missing += isnan(c->number[i]);
    }
    return 0;
}

/* ------------------------------------------------------------------ inputs -------------------------------------------------- */

/* A cell that was filled by interpolation is not known at the origin. */
static f64 value(const struct lag_table *l, i32 c, i64 row) {
    return series_filled(l->s, c, row) ? (f64)NAN : series_raw(l->s, c, row);
}

static f64 target(const struct lag_table *l, i32 c, i64 t) { return value(l, c, t + l->horizon); }
static f64 last(const struct lag_table *l, i32 c, i64 t) { return value(l, c, t); }
static f64 before_last(const struct lag_table *l, i32 c, i64 t) { return value(l, c, t - 1); }

/* The newest value that lies whole seasons before the target. */
static f64 season_before(const struct lag_table *l, i32 c, i64 t) {
    const i64 seasons = (l->horizon + l->season - 1) / l->season;
    return value(l, c, t + l->horizon - seasons * l->season);
}

static f64 mean_of_season(const struct lag_table *l, i32 c, i64 t) {
    f64 sum = 0;
    i64 n = 0;
    for (i64 i = t - l->season + 1; i <= t; i++) {
        const f64 x = value(l, c, i);
        if (isnan(x)) continue;
        sum += x;
        n++;
    }
    return n > 0 ? sum / (f64)n : (f64)NAN;
}

static f64 word(const struct lag_table *l, i32 c, i64 t) { return l->s->code[c][t] < 0 ? (f64)NAN : (f64)l->s->code[c][t]; }

static f64 calendar(const struct lag_table *l, i32 part, i64 t) {
    struct civil c;
    const i64 at = series_time(l->s, t + l->horizon);
    time_split(at, &c);
    const i64 days = at >= 0 ? at / 86400 : (at - 86399) / 86400;
    const f64 of[CALENDAR] = {c.hour + c.minute / 60.0, (f64)((days % 7 + 10) % 7), c.day, c.month, (f64)c.year};
    return of[part];
}

static f64 chance(const struct lag_table *l, i32 k, i64 t) { return (f64)rng_uniform(l->seed, RNG_RANK, (u32)k, (u64)t); }

static err fill_column(struct lag_table *l, i32 c) {
    if (c >= series_first_ahead(l->s)) return fill(l, c, target, c); /* known in the future: at the step of the target */
    TRY(fill(l, c, last, c));
    TRY(fill(l, c, before_last, c));
    if (l->season == 1) return 0;
    TRY(fill(l, c, season_before, c));
    return fill(l, c, mean_of_season, c);
}

static err fill_all(struct lag_table *l) {
    TRY(fill(l, 0, target, 0));
    for (i32 c = 0; c < l->s->ncol; c++) TRY(fill_column(l, c));
    for (i32 c = 0; c < l->s->ncat; c++) TRY(fill(l, l->s->ncol + c, word, c));
    for (i32 k = 0; k < CALENDAR && l->s->time; k++) TRY(fill(l, OWNER_CALENDAR, calendar, k));
    for (i32 k = 0; k < RANDOM; k++) TRY(fill(l, OWNER_RANDOM, chance, k));
    return 0;
}

static err make_table(struct lag_table *l) {
    const struct series *s = l->s;
    const i64 origins = l->rows - l->horizon - l->season;
    const i32 most = 4 * s->ncol + s->ncat + CALENDAR + RANDOM + 1;
    if (origins < ORIGINS_LEAST)
        return FAIL_AT(E301, "--importance", "a longer file, or a smaller --horizon",
                       "%lld rows of the training are too few to rank columns %lld row%s ahead", (long long)l->rows,
                       (long long)l->horizon, l->horizon == 1 ? "" : "s");
    l->first = l->season;
    l->step = (origins + ORIGINS_MOST - 1) / ORIGINS_MOST;
    NEW(l->t, 1);
    l->t->nrow = (origins + l->step - 1) / l->step;
    NEW(l->t->col, most);
    NEW(l->owner, most);
    return fill_all(l);
}

/* ------------------------------------------------------------------ the forest ---------------------------------------------- */

static err train(struct table_set *set, const struct options *o, const struct resources *use, struct forest_spec *spec,
                 struct model **out) {
    const struct learner *forest = learner_find("forest");
    struct options mine;
    struct learn_job job = {.o = &mine, .data = &set->set, .spec = spec, .use = *use,
                            .split = {set->t->nrow, set->t->nrow, set->t->nrow}};
    job.use.events = NULL;
    *out = NULL;
    err e = opt_copy(&mine, o);
    if (e >= 0) e = opt_set_id(&mine, OPT_task, "forest", &OPT_API);
    if (e >= 0) {
        *spec = forest_spec_of(&mine);
        spec->min_leaf = imax(spec->min_leaf, LEAF_ROWS);
        e = learner_fit(forest, &job, out);
    }
    opt_free(&mine);
    return e;
}

static int by_share(const void *a, const void *b) {
    const struct column_rank *x = a, *y = b;
    return x->share > y->share ? -1 : x->share < y->share;
}

static const char *name_of(const struct series *s, i32 place) {
    if (place < s->ncol) return s->name[place];
    if (place < s->ncol + s->ncat) return s->cat_name[place - s->ncol];
    return place == s->ncol + s->ncat ? "calendar" : "random numbers";
}

static i32 place_of(const struct series *s, i32 owner) {
    return owner >= 0 ? owner : s->ncol + s->ncat + (owner == OWNER_RANDOM);
}

static err sum_up(const struct lag_table *l, const struct forest *f, struct column_ranks *out) {
    const struct series *s = l->s;
    const i32 n = s->ncol + s->ncat + 2;
    i32 *inputs;
    ARENA_NEW(&out->arena, out->of, n);
    ARENA_NEW(&out->arena, inputs, n);
    for (i32 i = 1; i < l->t->ncol; i++) inputs[place_of(s, l->owner[i])]++;
    for (i32 k = 0; k < n; k++) TRY(arena_keep(&out->arena, &out->of[k].name, name_of(s, k)));
    const f64 *value = f->permuted ? f->permuted : f->importance;
    f64 sum = 0, random = 0; /* the share of the best input of random numbers */
    for (i32 i = 0; i < f->bins.n; i++) sum += dmax(0, value[i]);
    for (i32 i = 0; i < f->bins.n && sum > 0; i++) {
        const i32 owner = l->owner[table_find(l->t, f->bins.name[i])];
        const f64 share = dmax(0, value[i]) / sum;
        out->of[place_of(s, owner)].share += share;
        if (owner == OWNER_RANDOM) random = dmax(random, share);
    }
    for (i32 k = 0; k + 1 < n; k++) out->of[k].chance = out->of[k].share <= random * inputs[k];
    for (i32 k = 0; k < n; k++)
        if (inputs[k] > 0) out->of[out->n++] = out->of[k];
    qsort(out->of, (size_t)out->n, sizeof *out->of, by_share);
    out->rows = l->t->nrow;
    out->horizon = l->horizon;
    out->trees = f->ntree;
    out->r2 = 1 - f->oob.error / f->oob.naive;
    return 0;
}

static err rank_table(struct lag_table *l, const struct options *o, const struct resources *use, struct column_ranks *out) {
    struct table_set *set;
    struct model *m = NULL;
    struct forest_spec spec;
    TRY(dataset_new(&data_table, "rows of lags", sizeof *set, &set));
    set->t = l->t;
    err e = mem_new((void **)&set->input, l->t->ncol, sizeof *set->input);
    set->set.nrow = l->t->nrow;
    set->set.ntarget = 1;
    for (i32 i = 1; i < l->t->ncol && e >= 0; i++) set->input[set->ninput++] = i;
    if (e >= 0) e = train(set, o, use, &spec, &m);
    if (e >= 0) e = sum_up(l, (const struct forest *)m, out);
    model_free(m);
    l->t = NULL;
    dataset_free(&set->set);
    return e;
}

err column_ranks_make(const struct series *s, i64 rows, i64 horizon, const struct options *o, const struct resources *use,
                      struct column_ranks *out) {
    struct lag_table l = {.s = s, .rows = rows, .horizon = horizon, .season = imax(1, s->freq.season),
                          .seed = (u64)o->seed};
    *out = (struct column_ranks){0};
    if (l.season > rows / 4) l.season = 1; /* too few seasons to look back */
    err e = make_table(&l);
    if (e >= 0) e = rank_table(&l, o, use, out);
    table_free(l.t);
    mem_free(l.owner);
    if (e < 0) column_ranks_free(out);
    return e;
}

void column_ranks_free(struct column_ranks *r) {
    arena_free(&r->arena);
    *r = (struct column_ranks){0};
}
