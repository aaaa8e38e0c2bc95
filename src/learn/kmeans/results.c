/* results.c - clusters of the rows of a data set: predictions and scores beside one cluster for all; see kmeans.h. */
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/mem.h"
#include "learn/kmeans/kmeans.h"

enum { CHUNK_ROWS = 1 << 16, BLOCK_ROWS = 480 };

/* ------------------------------------------------------------------ labels -------------------------------------------------- */

struct labelling {
    const struct kmeans *f;
    struct points p;
    struct centers c;
    struct track t;
    struct assign_work **worker; /* [nworker] */
    i32 nworker;
    f64 *distance, *naive;       /* [n], naive may be NULL */
    _Atomic i64 next;
};

static void label_blocks(void *self, i32 worker) {
    struct labelling *l = self;
    const i32 d = l->f->d;
    struct assign_count count = {0};
    for (i64 at; (at = atomic_fetch_add(&l->next, BLOCK_ROWS)) < l->p.n;) {
        const i64 end = lmin(l->p.n, at + BLOCK_ROWS);
        assign_rows(&l->c, &l->p, &l->t, l->worker[worker], at, end, &count);
        for (i64 i = at; i < end; i++) {
            const f64 *x = l->p.x + i * d;
            l->distance[i] = sqrt(points_distance(d, x, l->f->center + (i64)l->t.label[i] * d));
            if (l->naive) l->naive[i] = sqrt(points_distance(d, x, l->f->mean));
        }
    }
}

static err label_points(struct labelling *l, const struct table_set *s, const struct resources *use, i64 from, i64 to) {
    TRY(points_make(s, &l->f->scale, from, to, &l->p));
    TRY(centers_new(l->f->k, l->f->d, near_choose(use->kern->arch), &l->c));
    TRY(track_new(to - from, &l->c, &l->t));
    NEW(l->worker, pool_size(use->pool));
    l->nworker = pool_size(use->pool);
    for (i32 i = 0; i < l->nworker; i++) TRY(assign_work_new(&l->c, &l->worker[i]));
    centers_set(&l->c, &l->p, l->f->center, false);
    pool_run(use->pool, label_blocks, l);
    return 0;
}

static void labelling_free(struct labelling *l) {
    for (i32 i = 0; i < l->nworker; i++) assign_work_free(l->worker[i]);
    mem_free(l->worker);
    track_free(&l->t);
    centers_free(&l->c);
    points_free(&l->p);
}

err kmeans_label(const struct kmeans *f, const struct dataset *d, const struct resources *use, i64 from, i64 to, i32 *label,
                 f64 *distance, f64 *naive) {
    for (i64 at = from; at < to; at += CHUNK_ROWS) {
        const i64 n = lmin(CHUNK_ROWS, to - at);
        struct labelling l = {.f = f, .distance = distance + (at - from), .naive = naive ? naive + (at - from) : NULL};
        const err e = label_points(&l, table_set_of(d), use, at, at + n);
        for (i64 i = 0; e >= 0 && i < n; i++) label[at - from + i] = l.t.label[i];
        labelling_free(&l);
        TRY(e);
    }
    return 0;
}

/* ------------------------------------------------------------------ data ---------------------------------------------------- */

err kmeans_take(const struct model *m, struct dataset *d, const struct events *to) {
    const struct kmeans *f = kmeans_of(m);
    struct table_set *s = table_set_of(d);
    bool *words;
    (void)to;
    NEW(words, f->d);
    const err e = table_set_inputs(s, f->d, f->scale.name, words);
    mem_free(words);
    TRY(e);
    return table_set_need_all(s, "a file without missing cells");
}

err kmeans_open(const struct model *m, const struct options *o, const char *path, const struct events *to, struct dataset **out) {
    TRY(table_set_read(o, path, NULL, true, out));
    const err e = kmeans_take(m, *out, to);
    if (e >= 0) return 0;
    dataset_free(*out);
    *out = NULL;
    return e;
}

/* ------------------------------------------------------------------ predictions --------------------------------------------- */

/* Label and distances of rows, in an arena. */
struct labels {
    i32 *label;
    f64 *distance, *naive;
};

static err find_labels(const struct kmeans *f, const struct dataset *d, const struct resources *use, i64 from, i64 to,
                       struct arena *a, struct labels *out) {
    ARENA_NEW(a, out->label, to - from);
    ARENA_NEW(a, out->distance, to - from);
    ARENA_NEW(a, out->naive, to - from);
    return kmeans_label(f, d, use, from, to, out->label, out->distance, out->naive);
}

static err put_rows(const struct dataset *d, const struct labels *l, const struct prediction_sink *to) {
    const struct prediction_column head[] = {{.name = "record"}, {.name = "cluster", .value = true},
                                             {.name = "distance", .value = true}};
    char name[32];
    if (to->head) TRY(to->head(to->self, 3, head));
    for (i64 i = 0; i < d->nrow; i++) {
        data_table.label(d, i, name);
        const struct prediction_cell cell[] = {{.text = name}, {.number = l->label[i] + 1.0}, {.number = l->distance[i]}};
        TRY(to->row(to->self, 3, cell));
    }
    return 0;
}

err kmeans_predict(const struct model *m, const struct dataset *d, const struct resources *use,
                   const struct prediction_sink *to) {
    struct arena a = {0};
    struct labels l;
    err e = find_labels(kmeans_of(m), d, use, 0, d->nrow, &a, &l);
    if (e >= 0) e = put_rows(d, &l, to);
    arena_free(&a);
    return e;
}

/* ------------------------------------------------------------------ scores -------------------------------------------------- */

static void fill_row(const char *name, enum role role, i64 n, const f64 *distance, struct score_row *row) {
    f64 sum = 0, square = 0;
    for (i64 i = 0; i < n; i++) {
        sum += distance[i];
        square += distance[i] * distance[i];
    }
    *row = (struct score_row){.name = name, .role = role, .value = {square, sum / (f64)n}, .skill = (f64)NAN};
}

static err fill(const char *what, i64 n, const struct labels *l, struct scores *out) {
    struct score_table *t;
    struct score_row *row;
    ARENA_NEW(&out->arena, t, 1);
    ARENA_NEW(&out->arena, row, 2);
    fill_row("model", ROLE_MODEL, n, l->distance, &row[0]);
    fill_row("one cluster", ROLE_NAIVE, n, l->naive, &row[1]);
    *t = (struct score_table){.nmetric = 2, .metric = {"inertia", "mean distance"}, .row = row, .nrow = 2, .best_naive = 1};
    t->title = arena_printf(&out->arena, "%s, %lld rows", what, (long long)n);
    out->table = t;
    out->records = out->cells = n;
    out->error = row[0].value[0];
    out->baseline = row[1].value[0];
    out->best = row[1].name;
    if (out->baseline > 0) out->skill = row[0].skill = 1 - out->error / out->baseline;
    return 0;
}

/* Without a test part, the rows of the training: clusters are a description of these. */
err kmeans_score(const struct model *m, const struct dataset *d, const struct scoring *q, const struct resources *use,
                 struct scores *out) {
    const bool training = q->what && q->from == q->to;
    const i64 from = q->what && !training ? q->from : 0, to = training ? q->from : q->what ? q->to : d->nrow;
    struct arena a = {0};
    struct labels l;
    *out = (struct scores){.skill = (f64)NAN};
    if (to <= from) return 0;
    err e = find_labels(kmeans_of(m), d, use, from, to, &a, &l);
    if (e >= 0) e = fill(training ? "training" : q->what ? q->what : "scored", to - from, &l, out);
    arena_free(&a);
    return e;
}
