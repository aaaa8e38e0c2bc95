/* ladder.c - the fits of a trial, and its score against the defaults; see search.h. */
#include "search/search.h"

/* ------------------------------------------------------------------ the ladder ---------------------------------------------- */

void ladder_make(i32 groups, i32 parts, bool shorter, struct ladder *out) {
    /* the newest records first: they are most like those to come */
    static const i32 order[4][LADDER_FITS] = {{0}, {1, 0}, {3, 1, 2, 0}, {7, 3, 5, 1, 6, 4, 2, 0}};
    static const i32 ends[4][LADDER_LEVELS] = {{1, 1, 1}, {1, 2, 2}, {1, 2, 4}, {2, 4, 8}};
    const i32 row = groups >= 8 ? 3 : groups >= 4 ? 2 : groups >= 2 ? 1 : 0;
    *out = (struct ladder){.nfit = 1 << row, .nparts = parts, .block = 1, .nlevel = row == 0 ? 1 : row == 1 ? 2 : 3};
    for (i32 k = 0; k < out->nfit; k++) out->fit[k] = (struct ladder_fit){order[row][k], 1};
    for (i32 l = 0; l < LADDER_LEVELS; l++) out->end[l] = ends[row][l];
    if (row > 0 || !shorter) return;
    out->nfit = out->nlevel = 2;
    out->fit[1] = out->fit[0];
    out->fit[0].share = 0.25;
    out->end[1] = out->end[2] = 2;
}

i32 ladder_first(const struct ladder *l, i32 level) {
    const i32 last = l->end[level] - 1;
    i32 from = last;
    while (from > 0 && l->fit[from - 1].share == l->fit[last].share) from--;
    return from;
}

/* ------------------------------------------------------------------ scores -------------------------------------------------- */

i32 trial_level(const struct search *s, i32 trial) {
    i32 level = -1;
    while (level + 1 < s->ladder.nlevel && s->trial[trial].done >= s->ladder.end[level + 1]) level++;
    return level;
}

/* A part that the defaults foresee without an error must not decide alone. */
static f64 floor_of(const struct search *s, i32 from, i32 end) {
    f64 sum = 0, n = 0;
    for (i32 k = from; k < end; k++)
        for (i32 p = 0; p < s->ladder.nparts; p++)
            if (isfinite(s->trial[0].error[k][p])) sum += s->trial[0].error[k][p], n++;
    return n > 0 ? s->least * sum / n + 1e-300 : 1e-300;
}

f64 trial_score(const struct search *s, i32 trial, i32 level, f64 *diff) {
    const i32 end = s->ladder.end[level], from = ladder_first(&s->ladder, level);
    const struct trial *t = &s->trial[trial], *usual = &s->trial[0];
    const f64 least = floor_of(s, from, end);
    f64 sum = 0;
    i32 count = 0;
    if (t->done < end || usual->done < end) return (f64)NAN;
    for (i32 k = from; k < end; k++)
        for (i32 p = 0; p < s->ladder.nparts; p++) {
            const f64 a = t->error[k][p], b = usual->error[k][p];
            const f64 d = !isfinite(b) ? (f64)NAN : isfinite(a) ? log((a + least) / (b + least)) : 1e3;
            if (diff) diff[s->ladder.fit[k].group * s->ladder.nparts + p] = d;
            if (isnan(d)) continue;
            sum += d;
            count++;
        }
    return count > 0 ? sum / count : (f64)NAN;
}
