/* tune.c - see tune.h: looks up the wisdom; measures if the answer is unknown and the run is long enough. */
#include "tune/tune.h"

#include <stdio.h>

static struct tune_key key_of(const struct wisdom *w, const struct kern *k, enum tune_kind kind, const struct tune_shape *s) {
    struct tune_key key = {.kind = kind,
                           .cell = s->cell,
                           .precision = kind == TUNE_HOW ? s->precision : PREC_F32,
                           .T = s->T,
                           .B = s->B,
                           .I = s->I,
                           .H = s->H,
                           .threads = s->threads};
    snprintf(key.cpu, sizeof key.cpu, "%s", w->cpu);
    snprintf(key.table, sizeof key.table, "%s", k->name);
    return key;
}

static err find_or_measure(struct wisdom *w, const struct kern *k, enum tune_kind kind, const struct tune_shape *s, f64 seconds,
               const struct tune_entry **out) {
    struct tune_entry e = {.fresh = true};
    *out = NULL;
    if (!w || w->off) return 0;
    e.key = key_of(w, k, kind, s);
    *out = wisdom_find(w, &e.key);
    if (*out || tune_cost(kind, s) > TUNE_LONG || seconds < TUNE_WORTH * tune_cost(kind, s)) return 0;
    TRY(tune_measure(k, kind, s, e.seconds));
    if (kind == TUNE_PRECISION) e.seconds[0] /= imax(1, s->members);
    e.best = e.seconds[1] < e.seconds[0];
    TRY(wisdom_put(w, &e));
    *out = wisdom_find(w, &e.key);
    return 0;
}

err tune_how(struct wisdom *w, const struct kern *k, const struct tune_shape *s, f64 seconds, u32 *how,
             const struct tune_entry **e) {
    const struct tune_entry *found = NULL;
    *how = 0;
    if (k->arch != KERN_REF && cell_at(k, s->cell, s->precision)) TRY(find_or_measure(w, k, TUNE_HOW, s, seconds, &found));
    if (found) *how = found->best ? CELL_AHEAD : CELL_FOLD;
    if (e) *e = found;
    return 0;
}

err tune_precision(struct wisdom *w, const struct kern *k, const struct tune_shape *s, f64 seconds, enum precision *out,
                   const struct tune_entry **e) {
    const struct tune_entry *found = NULL;
    *out = PREC_F32;
    if (k->arch != KERN_REF && cell_at(k, s->cell, PREC_BF16)) TRY(find_or_measure(w, k, TUNE_PRECISION, s, seconds, &found));
    if (found) *out = found->best ? PREC_BF16 : PREC_F32;
    if (e) *e = found;
    return 0;
}
