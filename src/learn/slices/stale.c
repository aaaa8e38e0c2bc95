/* stale.c - stale initial states of time slices (--slice-rounds): the final states of a tile are stored until its next visit. A
 * step starts its slices from them and runs a fixed number of rounds (docs/time-parallel.md; access mode STALE(1)).
 *
 *     step k:  stored states of its tiles --step_chain_load--> rounds --step_chain_save--> stored states
 *
 * Every EXACT_EVERY-th step, and every step after the share EXACT_LAST of training, runs rounds until the slices converge: these
 * steps measure the forget window w, and the last ones remove the bias of stale states.  States are stored by tile, column, slice
 * and layer, for one number of slices; with another number, slices start from zero.  Every rank stores all of them.  A checkpoint
 * holds them with a key of model, cut and series; states with another key are not loaded. */
#include <string.h>

#include "base/mem.h"
#include "learn/forecast/fit.h"
#include "learn/slices/slices.h"
#include "model/layer.h"

enum { EXACT_EVERY = 64 };
#define EXACT_LAST 0.85 /* share of training after which every step is exact */

struct slice_memory {
    i32 slices, rows, floats; /* rows per tile (columns x slices); floats per row, all layers */
    i64 tiles, key;
    u8 *known; /* [tiles][rows] a state is stored */
    f32 *end;  /* [tiles][rows][floats] final states */
    i32 slot;   /* batch slot of the current step */
    bool stale; /* the last step used stored states and a fixed number of rounds */
};

static i32 row_floats(const struct fit *t) {
    i32 sum = 0;
    for (i32 l = 0; l < t->step.net->nop; l++) sum += step_chain_state(t->step.engine.exec, l);
    return sum;
}

/* Hash of everything that stored states depend on: layers, cut of the sequences, shape of the series. */
static i64 key_of(const struct fit *t, const struct slice_memory *m) {
    const struct forecast_spec *f = &t->f->spec;
    const struct series *s = t->series;
    const i64 what[] = {m->slices, m->rows, m->floats, m->tiles, f->context, f->segment, s->nrow, s->ncol, s->ntarget,
                        t->step.net->ntheta, f->precision};
    u64 h = comm_hash(COMM_HASH, what, sizeof what);
    for (i32 l = 0; l < t->step.net->nop; l++) {
        const struct op_spec *o = &t->step.net->op[l].spec;
        const i32 layer[] = {(i32)o->cell, o->hidden, o->projection};
        if (op_is_chain(&t->step.net->op[l])) h = comm_hash(h, layer, sizeof layer);
    }
    for (i32 c = 0; c < s->ncol; c++) h = comm_hash(h, series_col(s, c), sizeof(f32) * (size_t)s->nrow);
    return (i64)h;
}

err stale_new(struct fit *t) {
    stale_free(t);
    const struct forecast_spec *s = &t->f->spec;
    if (s->cut.course.slice_rounds == 0 || s->cut.slices < 2) return 0;
    struct slice_memory *m;
    NEW(m, 1);
    t->slicing->memory = m;
    m->slices = s->cut.slices;
    m->rows = s->cut.slices * t->series->ntarget;
    m->floats = row_floats(t);
    m->tiles = t->step.batch.s->nrow / lmax(1, s->context) + 1;
    NEW(m->known, m->tiles * m->rows);
    NEW(m->end, m->tiles * m->rows * m->floats);
    m->key = key_of(t, m);
    return 0;
}

bool stale_kept(const struct fit *t, struct stale_ends *out) {
    struct slice_memory *m = t->slicing->memory;
    if (!m) return false;
    *out = (struct stale_ends){&m->key, m->known, m->end, m->tiles * m->rows, m->floats};
    return true;
}

void stale_free(struct fit *t) {
    if (!t->slicing->memory) return;
    mem_free(t->slicing->memory->known);
    mem_free(t->slicing->memory->end);
    mem_free(t->slicing->memory);
    t->slicing->memory = NULL;
}

/* Index of row r of a batch in `known` and `end`. */
static i64 place_of(const struct fit *t, const struct batch_slot *s, i32 r) {
    const struct slice_memory *m = t->slicing->memory;
    const struct slice_place p = forecast_slice(forecast_steps(&t->f->spec), t->f->spec.cut.slices, t->step.batch.B, r);
    i32 W = t->step.batch.B / m->slices;
    i64 tile = (s->origin[r] - p.from) / lmax(1, t->f->spec.context);
    return (tile * m->rows + (i64)(r / W) * t->series->ntarget + s->col[r]) % (m->tiles * m->rows);
}

static void each_layer(struct fit *t, i32 row, f32 *kept, bool load) {
    for (i32 l = 0; l < t->step.net->nop; l++) {
        i32 n = step_chain_state(t->step.engine.exec, l);
        if (n == 0) continue;
        if (load) step_chain_load(t->step.engine.exec, l, row, kept);
        else step_chain_save(t->step.engine.exec, l, row, kept);
        kept += n;
    }
}

/* True if the step of batch k runs rounds until the slices converge. */
static bool exact_step(const struct fit *t, i64 k) {
    i64 step = k / t->f->spec.accumulate, steps = t->at.refitting ? t->at.best_steps[t->at.member] : t->step.steps;
    return step % EXACT_EVERY == 0 || (f64)step >= EXACT_LAST * (f64)steps;
}

void stale_before(struct fit *t, i32 slot) {
    struct slice_memory *m = t->slicing->memory;
    const struct batch_slot *s = &t->step.batch.slot[slot];
    if (!m || m->slices != t->f->spec.cut.slices) return;
    m->slot = slot;
    for (i32 r = 0; r < t->step.batch.B; r++) {
        i64 at = place_of(t, s, r);
        f32 *kept = m->end + at * m->floats;
        if (!m->known[at]) memset(kept, 0, sizeof *kept * (size_t)m->floats);
        each_layer(t, r, kept, true);
    }
    m->stale = !exact_step(t, s->batch);
    if (m->stale) return;
    netplan(t->step.engine.plan)->course.slice_rounds = 0;
}

/* Restores the fixed rounds of the plan.  After a non-finite step it drops all stored states, which may have caused it. */
void stale_after(struct fit *t, bool finite) {
    struct slice_memory *m = t->slicing->memory;
    if (!m || m->slices != t->f->spec.cut.slices) return;
    const struct batch_slot *s = &t->step.batch.slot[m->slot];
    netplan(t->step.engine.plan)->course.slice_rounds = t->f->spec.cut.course.slice_rounds;
    if (!finite) memset(m->known, 0, (size_t)(m->tiles * m->rows));
    for (i32 r = 0; r < t->step.batch.B && finite; r++) {
        i64 at = place_of(t, s, r);
        m->known[at] = 1;
        each_layer(t, r, m->end + at * m->floats, false);
    }
}

bool stale_step(const struct fit *t) { return t->slicing->memory && t->slicing->memory->stale; }
