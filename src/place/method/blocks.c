/* blocks.c - contiguous layers on one device each, cut by dynamic programming: the pipeline that an expert would write.
 *
 * Tried in three orders of the devices, with and without the transfers at the cuts.  Static limits of memory come first;
 * micro-batches may need less than that, because the simulator frees what backward has used. */
#include <math.h>

#include "place/inside.h"

enum { ROWS = 3, CELLS_MOST = 50000000 };

/* Fastest first, slowest first, or by number. */
static void fill_row(const struct problem *p, i32 which, i32 k, i32 *row) {
    for (i32 i = 0; i < k; i++) row[i] = which == 2 ? i : p->by_speed[which == 0 ? i : k - 1 - i];
}

static err run(struct problem *p, u64 seed, struct trial *t, bool *able) {
    (void)seed;
    struct trial one;
    i32 *stage, *row, k = imin(p->P, p->U);
    k = imin(k, imax(1, CELLS_MOST / p->U / p->U));
    TRY(trial_new(p, &one));
    ARENA_NEW(&p->arena, stage, p->U);
    ARENA_NEW(&p->arena, row, k);
    *able = true;
    for (i32 v = 0; v < 2 * 3 * ROWS; v++) {
        const enum stages_aim aim = v % 3 == 0 ? STAGES_FIT : v % 3 == 1 ? STAGES_FAST : STAGES_MEMORY;
        const struct stages s = {aim, k, row, 1, v >= 3 * ROWS};
        f64 value;
        if (aim != STAGES_FIT && (!p->limited || (aim == STAGES_MEMORY && t->over <= 0))) continue;
        fill_row(p, v / 3 % ROWS, k, row);
        TRY(stages_cut(p, &s, stage, &value));
        if (!isfinite(value)) continue;
        for (i32 u = 0; u < p->U; u++) trial_put_unit(p, &one, u, row[stage[u]]);
        sim_trial_columns(p, &one);
        if (trial_better(&one, t)) trial_copy(p, &one, t);
    }
    return 0;
}

extern const struct place_method place_blocks;
const struct place_method place_blocks = {
    .name = "blocks",
    .help = "contiguous layers on each device, cut by dynamic programming",
    .starts = true,
    .run = run,
};
