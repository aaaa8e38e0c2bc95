/* slices.h - time slices in training: counts of their rounds, and changes of their number.
 *
 *     step --step_chain--> counts of the layer, w --validation, control.h--> go on | turn: another number of slices, or rank
 *
 * A turn is a change of the number of slices or of the rank of the correction of their initial states.  Decisions depend on
 * counts of steps alone, never on a clock, and checkpoints hold them, so a run can be repeated.  The turns of a run are added to
 * its plan; a run with that plan makes the same turns. */
#ifndef STRETTO_LEARN_SLICES_SLICES_H
#define STRETTO_LEARN_SLICES_SLICES_H

#include "step/slices/solver.h"
#include "learn/forecast/forecast.h"
#include "learn/slices/control.h"

struct fit;
struct batcher;

/* ------------------------------------------------------------------ counts -------------------------------------------------- */

/* Counts of the rounds of time slices: plain numbers, stored in checkpoints as they are.  [0] forward, [1] backward. */
struct chain_count {
    i64 steps, rounds, first, again, serial; /* serial: steps in which slices ran one after another */
};
struct slice_watch {
    i32 slices, nlayer, warned; /* warned: flags WARNED_.. (turn.c) */
    struct watched {
        struct chain_count now[2], all[2]; /* since the last validation; of the run */
        f64 w;                             /* forget window: steps after which the forward pass has forgotten its initial
                                            * state, moving average; 0 = unknown */
    } layer[WATCH_LAYERS];
    struct slice_history history;
    bool planned; /* turns come from a saved plan */
    struct plan_turns turns; /* taken so far; planned: all of them */
};
/* The chain of a layer in the last step: steps that each slice ran in each round. */
struct slice_picture {
    char name[24];
    i32 nslice, steps; /* steps of a slice */
    i32 rounds[2], *ran[2];
    f32 gap[2]; /* largest difference between states that had not converged, as a share of the values */
};
struct slice_record {
    struct slice_watch watch;
    struct slice_picture picture[WATCH_LAYERS];
    f64 gap; /* relative difference of the loss between sliced and whole windows */
};
err slices_record_new(struct forecaster *f);
void slices_record_free(struct forecaster *f);

/* ------------------------------------------------------------------ in a fit ------------------------------------------------ */

/* State of this module in a fit. */
struct slicing {
    i32 *sorted;                 /* [rows] scratch of slices_stepped */
    struct slice_memory *memory; /* stale.c: final states of slices from visit to visit; NULL = slices run until they converge */
};
/* Frees memory that depends on the bound plan. */
void slices_drop(struct fit *t);

/* Prepares the counts for the net that was bound; keeps those of a resumed run. */
err slices_watch(struct fit *t);
/* Call after every step. */
void slices_stepped(void *fit, bool finite);
bool slices_sliced(const struct fit *t);
/* Maxima and sums over the layers since the last validation. useful: share of the steps run that were not reruns. */
struct slice_summary {
    f64 rounds, again, w, useful;
    f64 way[2]; /* forward, backward: rerun steps relative to those of round 1, over all layers */
    i64 steps, serial;
};
struct slice_summary slices_summary(const struct slice_watch *w);
/* True if counts read from a checkpoint are possible for a run with `slices` slices of windows of `steps` steps. */
bool slices_sound(const struct slice_watch *w, i32 slices, i32 steps);
/* Adds the counts to an event of the run. */
void slices_annotate(void *fit, struct event *e);
/* turn.c. After a validation: starts a new interval; true if the number of slices or the rank changes: then call
 * slices_rebuild. */
bool slices_changed(void *fit, i64 step);
/* Builds net, plan and batches again for the new number of slices; keeps the weights. */
err slices_rebuild(void *fit, struct step **exec);
/* The strategy expression with another number of slices. */
static inline const char *slices_parallel(const struct resources *use, const struct forecast_spec *spec) {
    i32 n;
    if (use->parallel && plan_slices(use->parallel, &n) == 0 && n != 0) return use->parallel;
    return spec->cut.slices > 1 ? "time" : "auto";
}
/* Reads the parameters of the rounds and the turns from a saved plan. */
err slices_read_plan(struct fit *t);
/* Writes the plan that repeats the run: the initial plan, with the turns that the run took. */
err slices_plan(const struct fit *t, struct str *out);
/* Copies the data sources of a batcher to one with another layout. */
void slices_batcher(struct batcher *to, const struct batcher *from);
/* Describes where the last step became non-finite; for a row of slices: window, slice and step. */
void slices_nonfinite(void *fit, char where[240]);
void slices_place(const struct forecast_spec *spec, i32 B, const char *found, char where[240]);
/* stale.c; no effect unless --slice-rounds is set. stale_new, stale_free: allocate and free the stored final states of
 * slices. stale_before: loads the initial states of a step; stale_after: call after the step; stale_step: true if the last
 * step used stored states and a fixed number of rounds. */
err stale_new(struct fit *t);
void stale_free(struct fit *t);
/* The stored final states, for a checkpoint; false = none. A checkpoint with another key is not loaded. */
struct stale_ends {
    i64 *key;
    u8 *known;           /* [places] */
    f32 *end;            /* [places][floats] */
    i64 places, floats;
};
bool stale_kept(const struct fit *t, struct stale_ends *out);
void stale_before(struct fit *t, i32 slot);
void stale_after(struct fit *t, bool finite);
bool stale_step(const struct fit *t);
/* After training: records the rounds of the last step, and compares the loss in slices with that of whole windows. */
err slices_end(struct fit *t);

#endif
