/* kmeans.c - the learner `kmeans`: clusters of the rows of a table; see kmeans/kmeans.h.
 *
 *     resolve   numbers alone, no missing cells; no test part unless --test names one
 *     fit       scales -> points -> for each restart: seeds, Lloyd's iterations -> the one of least inertia */
#include "learn/kmeans/search.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"

/* ------------------------------------------------------------------ data ---------------------------------------------------- */

static err resolve(struct learn_job *job) {
    const struct table_set *s = table_set_of(job->data);
    struct options *o = job->o;
    TRY(table_set_need_numbers(s, "k-means needs numbers"));
    TRY(table_set_need_all(s, "a file without missing cells"));
    if (s->t->nrow > INT32_MAX / 2)
        return FAIL_AT(E601, s->t->path, "fewer rows", "%lld rows are too many for k-means", (long long)s->t->nrow);
    if (job->split.test > 0) return 0;
    TRY(opt_resolve(o, OPT_test, "0", "clusters are of all rows"));
    TRY(opt_resolve(o, OPT_validation, "0", "nothing is chosen by validation"));
    TRY(split_rows(o, s->t->nrow, &job->split));
    job->split.train = job->split.validation = lmax(job->split.train, job->split.validation);
    return 0;
}

/* Mean and deviation of each input over the training rows; 0 and 1 without --standardize or for a constant. */
static err find_scale(struct kmeans *f, const struct table_set *s, i64 rows, bool standardize) {
    struct column_scale *c = &f->scale;
    c->d = f->d;
    ARENA_NEW(&f->arena, c->name, f->d);
    ARENA_NEW(&f->arena, c->center, f->d);
    ARENA_NEW(&f->arena, c->spread, f->d);
    for (i32 j = 0; j < f->d; j++) {
        const struct column *col = table_input(s, j);
        f64 sum = 0, square = 0;
        TRY(arena_keep(&f->arena, &c->name[j], col->name));
        c->spread[j] = 1;
        if (!standardize) continue;
        for (i64 i = 0; i < rows; i++) sum += col->number[i];
        c->center[j] = sum / (f64)rows;
        for (i64 i = 0; i < rows; i++) square += (col->number[i] - c->center[j]) * (col->number[i] - c->center[j]);
        if (square > 0 && isfinite(square)) c->spread[j] = sqrt(square / (f64)rows);
    }
    return 0;
}

static err enough_points(const struct points *p, i32 k) {
    char fix[60];
    i64 distinct;
    TRY(points_distinct(p, k, &distinct));
    if (distinct >= k) return 0;
    snprintf(fix, sizeof fix, "--clusters %lld", (long long)distinct);
    return FAIL_AT(E103, "--clusters", fix, "%d clusters need as many different rows, and there are %lld", k,
                   (long long)distinct);
}

/* ------------------------------------------------------------------ fit ----------------------------------------------------- */

static err kmeans_room(struct kmeans *f) {
    NEW(f->center, (i64)f->k * f->d);
    NEW(f->mean, f->d);
    NEW(f->count, f->k);
    return 0;
}

err kmeans_new(i32 k, i32 d, struct kmeans **out) {
    NEW(*out, 1);
    (*out)->k = k;
    (*out)->d = d;
    return kmeans_room(*out);
}

void kmeans_free(struct model *m) {
    struct kmeans *f = kmeans_of(m);
    mem_free(f->center);
    mem_free(f->mean);
    mem_free(f->count);
    arena_free(&f->arena);
    mem_free(f);
}

static void keep_best(struct kmeans *f, const struct lloyd *l, const struct lloyd_outcome *r, bool first) {
    if (!first && !(r->inertia < f->inertia)) return;
    memcpy(f->center, l->model, sizeof *f->center * (size_t)f->k * (size_t)f->d);
    for (i32 k = 0; k < f->k; k++) f->count[k] = (i64)lloyd_counts(l)[k];
    f->inertia = r->inertia;
    f->iterations = r->iterations;
    f->settled = r->settled;
}

static err run_restarts(struct search *s, const struct learn_job *job) {
    struct kmeans *f = s->f;
    struct lloyd *l = &s->l;
    const struct options *o = job->o;
    const struct seeding q = {.p = l->p, .near = l->c.near, .pool = job->use.pool, .seed = (u64)o->seed, .k = f->k,
                              .plusplus = strcmp(o->seeding, "plusplus") == 0};
    TRY(kmeans_take_state(s));
    for (; f->restarts < o->restarts && !l->late; f->restarts++, s->from = 0) {
        struct lloyd_outcome r;
        if (!s->seeded) TRY(kmeans_seed(&q, (i32)f->restarts, l->model));
        s->seeded = false;
        const f64 t0 = clock_now(), cpu = clock_cpu();
        const err e = lloyd_run(l, s->from, o->lloyd_iterations, &r);
        if (e != 0) return e;
        f->lloyd_seconds += clock_now() - t0;
        f->lloyd_cpu += clock_cpu() - cpu;
        keep_best(f, l, &r, f->restarts == 0);
    }
    f->saved = l->all > 0 ? dmax(0, 1 - l->distances / l->all) : 0;
    f->model.stopped = l->late ? STOP_TIME : 0;
    return map_run_keep(&l->run, &f->model);
}

static err turn(void *owner, i64 iterations) {
    struct search *s = owner;
    const i64 number = s->f->restarts * (s->shots.job->o->lloyd_iterations + 1) + iterations;
    s->done = iterations;
    return snapshots_turn(&s->shots, number, kmeans_list_state, s, &s->l.late);
}

static err run(struct kmeans *f, const struct points *p, const struct learn_job *job) {
    struct workload work = workload_start("clustering", job->use.events, NULL);
    struct search s = {.f = f};
    work.all = (f64)job->o->restarts * (f64)job->o->lloyd_iterations;
    err e = lloyd_open(p, f->k, &job->use, &s.l);
    s.l.work = &work;
    s.l.turn = turn;
    s.l.owner = &s;
    if (e >= 0) e = snapshots_open(job, &s.shots);
    if (e >= 0) e = run_restarts(&s, job);
    snapshots_close(&s.shots);
    lloyd_close(&s.l);
    workload_end(&work);
    return e;
}

static void tell(const struct kmeans *f, const struct events *to) {
    char best[48] = "";
    if (f->restarts > 1) snprintf(best, sizeof best, ", best of %lld restarts", (long long)f->restarts);
    event_note(to, EVENT_NOTE, "inertia %.6g after %lld iterations%s%s; %.1f%% of the distances saved", f->inertia,
               (long long)f->iterations, f->settled ? "" : " (labels still change)", best, 100 * f->saved);
}

static err fit(struct kmeans *f, const struct learn_job *job) {
    const struct table_set *s = table_set_of(job->data);
    const i64 rows = job->split.train;
    struct points p = {0};
    err e = find_scale(f, s, rows, job->o->standardize);
    if (e >= 0) e = points_make(s, &f->scale, 0, rows, &p);
    if (e >= 0) e = enough_points(&p, f->k);
    if (e >= 0) e = run(f, &p, job);
    if (e == 0) {
        memcpy(f->mean, p.mean, sizeof *f->mean * (size_t)f->d);
        f->total = p.total;
        f->model.train_records = rows;
        tell(f, job->use.events);
    }
    points_free(&p);
    return e;
}

err kmeans_fit(const struct learn_job *job, struct model **out) {
    const f64 t0 = clock_now();
    struct kmeans *f = NULL;
    err e = kmeans_new((i32)job->o->clusters, table_set_of(job->data)->ninput, &f);
    if (e >= 0) e = fit(f, job);
    if (e != 0) {
        if (f) kmeans_free(&f->model);
        return e;
    }
    f->model.seconds = clock_now() - t0;
    *out = &f->model;
    return 0;
}

/* ------------------------------------------------------------------ the learner --------------------------------------------- */

static const struct model_ops ops = {.open = kmeans_open, .take = kmeans_take, .predict = kmeans_predict, .score = kmeans_score,
                                     .describe = kmeans_describe, .report = kmeans_report, .save = kmeans_save,
                                     .load = kmeans_load, .free = kmeans_free};

static const enum opt_id takes[] = {OPT_clusters, OPT_seeding, OPT_restarts,   OPT_lloyd_iterations,
                                    OPT_standardize, OPT_seed, OPT_time_limit, OPT_checkpoint_every, OPT_COUNT};

extern const struct learner learner_kmeans;
const struct learner learner_kmeans = {.name = "kmeans", .help = "clusters of the rows of a table: k-means, exact",
                                       .data = &data_table, .ops = &ops, .takes = takes, .resolve = resolve, .fit = kmeans_fit};
