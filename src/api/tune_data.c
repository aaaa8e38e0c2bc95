/* tune_data.c - what a search may see: the records before the test part, cut into parts that score trials. */
#include <stdio.h>
#include <string.h>

#include "api/tune.h"
#include "learn/series_set.h"
#include "train/guard.h"

/* Records for a fit of its own before each of up to 8, 4, 2 groups of parts: there fits are cheap and scores noisy. */
enum { ROWS_8 = 700, ROWS_4 = 2500, ROWS_2 = 8000, RECORDS_PART = 10 };

static bool is_series(const struct tune *t) { return t->learner->data == &data_series; }

/* The defaults on the given data, as `train` would resolve them: sizes, seasons, the split. */
static err resolve_usual(struct tune *t, void *spec) {
    struct learn_job job = {.o = &t->usual, .data = (struct dataset *)(uintptr_t)t->given, .spec = spec, .use = t->ctx.use};
    job.use.events = &t->events;
    TRY(t->learner->resolve ? t->learner->resolve(&job) : split_rows(job.o, t->given->nrow, &job.split));
    t->split = job.split;
    return 0;
}

/* ------------------------------------------------------------------ parts --------------------------------------------------- */

static i64 least_part(const struct tune *t) { return is_series(t) ? t->usual.horizon : RECORDS_PART; }

/* Records that the parts cover: the validation part; where it is too short for so many, up to two fifths of the records, and up
 * to a half for the blocks without which chance cannot be told.  Without an order of time older records are as good as newer
 * ones, so two fifths always. */
static i64 covered(const struct tune *t, i64 rows, i64 held, i64 least) {
    const i64 most = lmax(held, rows * 2 / 5), some = is_series(t) ? lmin(LADDER_PARTS * least, most) : most;
    return lmax(held, lmax(some, lmin((GUARD_BLOCKS + 1) * least, rows / 2)));
}

static err too_short(const struct tune *t, i64 need) {
    const i64 rows = t->split.validation, room = rows / 2 - LADDER_PARTS;
    char fix[96] = "more records   or   train with the defaults";
    if (is_series(t) && room >= 1) snprintf(fix, sizeof fix, "--horizon %lld   or   train with the defaults", (long long)room);
    return FAIL_AT(E301, NULL, fix, "a search scores trials on %d parts of %lld records in the last half of those before the "
                   "test, which needs %lld records; the data have %lld", LADDER_PARTS, (long long)least_part(t),
                   (long long)(2 * need), (long long)rows);
}

/* Where there is room for it the parts lie side by side, else they overlap. */
static err cut_parts(struct tune *t) {
    const i64 rows = t->split.validation, held = rows - t->split.train, least = least_part(t);
    const i64 need = least + LADDER_PARTS - 1;
    const i64 stride = is_series(t) ? lmax(1, t->usual.stride) : 1, room = covered(t, rows, held, least);
    if (room < need || (rows - room < need && held < room)) return too_short(t, need);
    i64 length = lmax(least, room / LADDER_PARTS), step = lmin(length, (room - length) / (LADDER_PARTS - 1));
    if (length / stride * stride >= least) length = length / stride * stride;
    if (step >= stride) step = step / stride * stride;
    t->nparts = LADDER_PARTS;
    for (i32 p = 0; p < t->nparts; p++) {
        t->from[p] = rows - length - (t->nparts - 1 - p) * step;
        t->to[p] = t->from[p] + length;
    }
    t->ngroup = rows < ROWS_8 ? 8 : rows < ROWS_4 ? 4 : rows < ROWS_2 ? 2 : 1;
    t->search.ladder.block = imax(1, (i32)((length + step / 2) / step));
    t->held = held == 0 ? -1 : opt_given(&t->o, OPT_validation) && !opt_is_auto(&t->o, OPT_validation) ? held : 0;
    return 0;
}

struct split tune_split(const struct tune *t, i32 group) {
    const i64 from = t->from[group * t->nparts / t->ngroup], end = t->to[(group + 1) * t->nparts / t->ngroup - 1];
    const i64 usual = lmax(is_series(t) ? t->usual.horizon : 1, from / 5);
    const i64 held = t->held < 0 ? 0 : lmin(t->held > 0 ? t->held : usual, from / 3);
    return (struct split){.train = from - held, .validation = from, .test = end};
}

/* ------------------------------------------------------------------ the space ----------------------------------------------- */

/* Given options stay; so does what the learner does not use, or what follows from the data. */
static bool is_fixed(const void *self, enum opt_id id) {
    const struct tune *t = self;
    const bool network = id != OPT_base && id != OPT_context;
    if (is_series(t) && network && !t->usual.correction) return true; /* there is none */
    return opt_given(&t->o, id) || !learner_takes(t->learner, id) || (id == OPT_preset && !is_series(t));
}

static err open_space(struct tune *t) {
    const bool steps = opt_is_auto(&t->usual, OPT_steps) || !is_series(t);
    const i32 block = t->search.ladder.block;
    t->search.least = is_series(t) ? 1e-3 : 0.25;
    t->search.seed = (u64)t->o.seed;
    t->search.most = opt_is_auto(&t->o, OPT_trials) ? 0 : (i32)t->o.trials;
    space_make(&t->usual, is_fixed, t, t->given->ncol - t->given->ntarget, &t->search.space);
    ladder_make(t->ngroup, t->nparts / t->ngroup, !steps && t->usual.correction, &t->search.ladder);
    t->search.ladder.block = block;
    if (t->search.space.n > 0) return 0;
    return FAIL_AT(E106, "--task", "train with the defaults",
                   "nothing is left to tune: --task %s has no other option that a search varies", t->learner->name);
}

/* Scales the private copy by the rows of the smallest fit, once: fits only read it. */
static err prepare(struct tune *t, void *spec) {
    struct options o;
    if (!t->learner->prepare) return 0;
    TRY(opt_copy(&o, &t->o));
    struct learn_job job = {.o = &o, .data = t->data, .spec = spec, .split = t->split, .use = t->ctx.use};
    job.use.events = NULL;
    err e = t->learner->resolve ? t->learner->resolve(&job) : 0;
    job.split = tune_split(t, 0);
    if (e >= 0) e = t->learner->prepare(&job);
    opt_free(&o);
    return e;
}

err tune_open_data(struct tune *t) {
    void *spec = NULL;
    TRY(learner_of(&t->o, &t->learner));
    if (t->learner->data != t->given->kind)
        return FAIL_AT(E106, "--task", "data opened with the options of this task", "%s learns from data of the kind %s, these "
                       "are of the kind %s", t->learner->name, t->learner->data->name, t->given->kind->name);
    if (!t->given->kind->before)
        return FAIL_AT(E106, "--task", "train with the defaults",
                       "--task %s cannot be tuned: a search cannot hide records of its data", t->learner->name);
    if (t->learner->spec_bytes && !(spec = mem_alloc(t->learner->spec_bytes))) return -E601;
    err e = resolve_usual(t, spec);
    if (e >= 0) e = cut_parts(t);
    if (e >= 0) e = t->given->kind->before(t->given, t->split.validation, (u64)t->o.seed, &t->data);
    if (e >= 0) e = open_space(t);
    if (e >= 0) e = prepare(t, spec);
    mem_free(spec);
    return e;
}
