/* hybrid.c - r replicas of s stages: columns are dealt to the replicas, layers to the stages of each (blocks or cyclic).
 *
 * For micro-batches, such a placement combines data parallelism with a pipeline.  The method also runs on thousands of
 * devices, where list schedulers and annealing take too long: it compares all pairs (r, s) by the load of the busiest device, and
 * simulates the best of them. */
#include <math.h>

#include "place/inside.h"

enum { SHAPES_MOST = 1024, JUDGED_LEAST = 4, JUDGED_MOST = 160, CELLS_MOST = 50000000 };

struct shape {
    i32 replicas, stages;
    bool cyclic; /* layers, else contiguous */
    bool deals;  /* column c to replica c mod r, else contiguous columns */
};

/* 1, 2, 4, .. and `most`. */
static i32 doubled(i32 v, i32 most) { return v >= most ? most + 1 : imin(2 * v, most); }

static i32 shapes_of(const struct problem *p, struct shape *s) {
    const i32 C = imax(1, p->ncolumn), dense = p->P <= 16;
    i32 n = 0;
    for (i32 k = 1; k <= imin(p->U, p->P); k = dense ? k + 1 : doubled(k, imin(p->U, p->P))) {
        const i32 most = imin(C, p->P / k);
        for (i32 r = 1; r <= most; r = dense ? r + 1 : doubled(r, most))
            for (i32 v = 0; v < 4 && n < SHAPES_MOST; v++) {
                const struct shape one = {r, k, v & 1, v & 2};
                if ((one.cyclic && k == 1) || (one.deals && r == 1)) continue;
                if (!one.cyclic && (i64)p->U * p->U * k > CELLS_MOST) continue;
                s[n++] = one;
            }
    }
    return n;
}

/* Devices of a replica are neighbours, fastest first; the first replicas get the faster ones. */
static err apply(struct problem *p, const struct shape *s, i32 *stage, struct trial *t) {
    const i32 C = imax(1, p->ncolumn);
    for (i32 u = 0; u < p->U; u++) stage[u] = u % s->stages;
    if (!s->cyclic) {
        f64 value;
        struct stages cut = {STAGES_FIT, s->stages, p->by_speed, 1.0 / s->replicas, false};
        TRY(stages_cut(p, &cut, stage, &value));
        cut.aim = STAGES_MEMORY;
        if (!isfinite(value)) TRY(stages_cut(p, &cut, stage, &value));
    }
    for (i32 u = 0; u < p->U; u++)
        for (i32 i = p->unit0[u]; i < p->unit0[u + 1]; i++) {
            const i32 k = p->unit_group[i], c = p->column[k];
            const i32 replica = s->deals ? c % s->replicas : (i32)((i64)c * s->replicas / C);
            t->device[k] = p->by_speed[replica * s->stages + stage[u]];
        }
    return 0;
}

/* The busiest device, and the sums of the replicas' weights. */
static f64 estimate(const struct problem *p, const struct shape *s, const struct trial *t, f64 *load) {
    f64 most = 0, sums = 0;
    for (i32 d = 0; d < p->P; d++) load[d] = 0;
    for (i32 k = 0; k < p->G; k++) load[t->device[k]] += p->group_work[k];
    for (i32 d = 0; d < p->P; d++) most = dmax(most, load[d] / p->m->device[d].speed);
    for (i32 u = 0; u < p->U && s->replicas > 1; u++) { /* the first and the last replica stand for all: links are alike */
        const i32 at[2] = {p->by_speed[0], p->by_speed[s->replicas * s->stages - 1]}, n = s->replicas;
        const f64 pair = problem_sum(p, u, at, 2), one = p->g->ring ? 2 * pair * (n - 1) / n : pair * (n - 1);
        sums = dmax(sums, one);
    }
    return most + sums;
}

static err run(struct problem *p, u64 seed, struct trial *t, bool *able) {
    (void)seed;
    struct shape *shape;
    struct trial one;
    f64 *key, *load;
    i32 *order, *spare, *stage;
    TRY(trial_new(p, &one));
    ARENA_NEW(&p->arena, shape, SHAPES_MOST);
    ARENA_NEW(&p->arena, key, SHAPES_MOST);
    ARENA_NEW(&p->arena, order, SHAPES_MOST);
    ARENA_NEW(&p->arena, spare, SHAPES_MOST);
    ARENA_NEW(&p->arena, load, p->P);
    ARENA_NEW(&p->arena, stage, p->U);
    const i32 n = shapes_of(p, shape);
    *able = n > 0;
    for (i32 i = 0; i < n; i++) {
        order[i] = i;
        TRY(apply(p, &shape[i], stage, &one));
        key[i] = -estimate(p, &shape[i], &one, load);
    }
    sort_falling(order, spare, n, key);
    const i32 judged = imin(n, imax(JUDGED_LEAST, imin(JUDGED_MOST, HYBRID_NODES / p->n)));
    for (i32 i = 0; i < judged; i++) {
        const struct shape *s = &shape[order[i]];
        TRY(apply(p, s, stage, &one));
        sim_trial_columns(p, &one);
        str_print(one.name, sizeof one.name, "hybrid %dx%d %s", s->replicas, s->stages, s->cyclic ? "cyclic" : "blocks");
        if (trial_better(&one, t)) trial_copy(p, &one, t);
    }
    return 0;
}

extern const struct place_method place_hybrid;
const struct place_method place_hybrid = {
    .name = "hybrid",
    .help = "replicas of stages: columns dealt to replicas, layers to stages",
    .starts = true,
    .run = run,
};
