/* kmeans.c - the learner `kmeans`: clusters of the rows of a table; see kmeans/kmeans.h.
 *
 *     resolve   numbers alone, no missing cells; no test part unless --test names one
 *     fit       scales -> points -> for each restart: seeds, iterations of Lloyd or batches -> the one of least inertia */
#include "learn/kmeans/graph.h"
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
    const f64 now = l->trim > 0 ? r->kept : r->inertia, best = l->trim > 0 ? f->kept : f->inertia;
    if (!first && !(now < best)) return;
    memcpy(f->center, l->model, sizeof *f->center * (size_t)f->k * (size_t)f->d);
    for (i32 k = 0; k < f->k; k++) f->count[k] = (i64)lloyd_counts(l)[k];
    f->inertia = r->inertia;
    f->kept = r->kept;
    f->left_out = r->left_out;
    f->iterations = r->iterations;
    f->settled = r->settled;
}

static enum seed_how seeding_of(const char *word) {
    return strcmp(word, "random") == 0 ? SEED_RANDOM : strcmp(word, "parallel") == 0 ? SEED_PARALLEL : SEED_PLUSPLUS;
}

static err one_restart(struct search *s, i64 iterations, struct lloyd_outcome *out) {
    struct batches *b = &s->batches;
    b->restart = (i32)s->f->restarts;
    return b->rows > 0 ? batches_run(&s->l, b, s->from, out) : lloyd_run(&s->l, s->from, iterations, out);
}

static err begin_restart(struct search *s, const struct seeding *q) {
    struct batches *b = &s->batches;
    if (s->seeded) { /* by a checkpoint */
        s->seeded = false;
        return 0;
    }
    if (b->rows > 0) memset(b->seen, 0, sizeof *b->seen * (size_t)s->f->k);
    b->calm = 0;
    return kmeans_seed(q, (i32)s->f->restarts, s->l.model);
}

static err run_restarts(struct search *s, const struct learn_job *job) {
    struct kmeans *f = s->f;
    struct lloyd *l = &s->l;
    const struct options *o = job->o;
    const struct seeding q = {.p = l->p, .near = l->c.near, .pool = job->use.pool, .seed = (u64)o->seed, .k = f->k,
                              .how = seeding_of(o->seeding)};
    TRY(kmeans_take_state(s));
    for (; f->restarts < o->restarts && !l->late; f->restarts++, s->from = 0) {
        struct lloyd_outcome r;
        TRY(begin_restart(s, &q));
        const f64 t0 = clock_now(), cpu = clock_cpu();
        const err e = one_restart(s, o->lloyd_iterations, &r);
        if (e != 0) return e;
        f->lloyd_seconds += clock_now() - t0;
        f->lloyd_cpu += clock_cpu() - cpu;
        keep_best(f, l, &r, f->restarts == 0);
    }
    if (l->shared) {
        char shares[256];
        offload_shares(shared_assign_offload(l->shared), shares, sizeof shares);
        event_note(l->use->events, EVENT_DETAIL, "rows of the assignment by device: %s", shares);
    }
    f->saved = l->all > 0 ? dmax(0, 1 - l->distances / l->all) : 0;
    f->model.stopped = l->late ? STOP_TIME : 0;
    return map_run_keep(&l->run, &f->model);
}

static err turn(void *owner, i64 iterations) {
    struct search *s = owner;
    const i64 number = s->f->restarts * (s->most + 1) + iterations;
    s->done = iterations;
    return snapshots_turn(&s->shots, number, kmeans_list_state, s, &s->l.late);
}

/* Batches of at least as many rows as there are do no more than plain iterations. */
static err plan_batches(struct search *s, const struct points *p, const struct options *o) {
    struct batches *b = &s->batches;
    s->most = o->lloyd_iterations;
    if (o->minibatch == 0 || o->minibatch >= p->n) return 0;
    b->rows = o->minibatch;
    b->most = s->most = (i64)dmin(1e9, (f64)o->lloyd_iterations * ceil((f64)p->n / (f64)b->rows)); /* passes over the data */
    b->seed = (u64)o->seed;
    NEW(b->seen, s->f->k);
    return 0;
}

static err run(struct kmeans *f, const struct points *p, const struct learn_job *job) {
    struct workload work = workload_start("clustering", job->use.events, NULL);
    struct search s = {.f = f};
    err e = plan_batches(&s, p, job->o);
    if (e >= 0) e = lloyd_open(p, f->k, job->o->trim, &job->use, &s.l);
    work.all = (f64)job->o->restarts * (f64)s.most;
    s.l.work = &work;
    s.l.turn = turn;
    s.l.owner = &s;
    if (e >= 0) e = snapshots_open(job, &s.shots);
    if (e >= 0) e = run_restarts(&s, job);
    snapshots_close(&s.shots);
    lloyd_close(&s.l);
    mem_free(s.batches.seen);
    workload_end(&work);
    return e;
}

static void tell(const struct kmeans *f, const struct events *to) {
    char best[48] = "";
    if (f->restarts > 1) snprintf(best, sizeof best, ", best of %lld restarts", (long long)f->restarts);
    event_note(to, EVENT_NOTE, "inertia %.6g after %lld iterations%s%s; %.1f%% of the distances saved", f->inertia,
               (long long)f->iterations, f->settled ? "" : " (labels still change)", best, 100 * f->saved);
    if (f->left_out > 0)
        event_note(to, EVENT_NOTE, "%lld rows lie far from their centers and moved none (--trim); inertia of the others %.6g",
                   (long long)f->left_out, f->kept);
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
                                     .load = kmeans_load, .graph = kmeans_graph,
                                     .graph_check = kmeans_graph_check, .free = kmeans_free};

static err check(const struct options *o) {
    if (o->trim > 0 && o->minibatch > 0)
        return FAIL_AT(E106, "--trim", "--trim alone   or   --minibatch alone",
                       "--minibatch has no distances of whole clusters, which --trim needs");
    if (o->minibatch > 0 && !learner_on_cores(o))
        return FAIL_AT(E106, "--minibatch", "--minibatch without --device   or   --device without --minibatch",
                       "the rows of a batch are other ones in each iteration: devices would copy more than they compute");
    return 0;
}

static const enum opt_id takes[] = {OPT_clusters, OPT_seeding, OPT_minibatch, OPT_trim, OPT_restarts, OPT_lloyd_iterations,
                                    OPT_standardize, OPT_seed, OPT_time_limit, OPT_checkpoint_every, OPT_device, OPT_COUNT};

extern const struct learner learner_kmeans;
const struct learner learner_kmeans = {.name = "kmeans", .help = "clusters of the rows of a table: k-means, exact",
                                       .data = &data_table, .ops = &ops, .numbers = true, .takes = takes,
                                       .offloads = OFFLOADS_FIT, .check = check, .resolve = resolve, .fit = kmeans_fit};
