/* slices.h - time slices in training: counts of their rounds, and changes of their number.
 *
 *     step --step_chain--> counts of the layer, w --validation, control.h--> go on | turn: fewer or more slices, directions
 *
 * What is decided depends on counts of steps alone, never on a clock, and all of it is part of a checkpoint: a run repeats.  The
 * turns that a run took are part of its plan, and a run by that plan takes the same ones. */
#ifndef STRETTO_LEARN_FORECAST_SLICES_H
#define STRETTO_LEARN_FORECAST_SLICES_H

#include "step/slices/solver.h"
#include "learn/forecast/forecast.h"
#include "learn/slices/control.h"
#include "learn/slices/place.h"
#include "learn/slices/spec.h"

struct fit;
struct batcher;

/* ------------------------------------------------------------------ what slices came to ------------------------------------- */

/* What the rounds of slices of time came to: plain numbers, kept in checkpoints as they are.  [0] forward, [1] backward. */
struct chain_count {
    i64 steps, rounds, first, again, serial; /* serial: steps in which slices ran one after another */
};
struct slice_watch {
    i32 slices, nlayer, told;
    struct watched {
        struct chain_count now[2], all[2]; /* since the last validation; of the run */
        f64 w;                             /* steps after which forward forgets where it began, moving average; 0 = not known */
    } layer[WATCH_LAYERS];
    struct slice_mind mind;
    bool planned; /* turns are those of a saved plan: nobody decides */
    struct plan_turns turns; /* that were taken, or are to be */
};
/* The chain of a layer in the last step: steps that each slice ran in each round. */
struct slice_picture {
    char name[24];
    i32 nslice, steps; /* steps of a slice */
    i32 rounds[2], *ran[2];
    f32 gap[2]; /* the last that was not close, as a share of the values */
};
struct slice_record {
    struct slice_watch watch;
    struct slice_picture picture[WATCH_LAYERS];
    f64 gap; /* of the loss, slices against the whole */
};
err slices_record_new(struct forecaster *f);
void slices_record_free(struct forecaster *f);

/* ------------------------------------------------------------------ in a fit ------------------------------------------------ */

/* The module's own part of a fit. */
struct slicing {
    i32 *sorted;                 /* [rows] room of slices_stepped */
    struct slice_memory *memory; /* stale.c: ends of slices from visit to visit; NULL = slices run until they fit */
};
/* Memory that a plan's slices needed, when it goes. */
void slices_drop(struct fit *t);

/* Ready for the net that was bound; counts of a resumed run stay. */
err slices_watch(struct fit *t);
/* After every step. */
void slices_stepped(void *fit, bool finite);
bool slices_sliced(const struct fit *t);
/* The layers of the interval as one: the most rounds forward, the longest memory, the share of work that was of use. */
struct slice_summary {
    f64 rounds, again, w, useful;
    f64 way[2]; /* forward, backward: steps that ran again, as a share of those of round 1, of all layers */
    i64 steps, serial;
};
struct slice_summary slices_summary(const struct slice_watch *w);
/* Of what was read: is it what a run with so many slices, of a window of so many steps, leaves behind? */
bool slices_sound(const struct slice_watch *w, i32 slices, i32 steps);
/* Numbers for the watchers of the run. */
void slices_annotate(void *fit, struct event *e);
/* turn.c.  After a validation: begins a new interval; true where another number of slices, or of directions, is wanted
 * (slices_relay). */
bool slices_outgrown(void *fit, i64 step);
/* The same weights over these: net, plan, batches. */
err slices_relay(void *fit, struct step **exec);
/* The strategy for a number of slices that is no longer the one that was asked for. */
static inline const char *slices_parallel(const struct resources *use, const struct forecast_spec *spec) {
    i32 n;
    if (use->parallel && plan_slices(use->parallel, &n) == 0 && n != 0) return use->parallel;
    return spec->cut.slices > 1 ? "time" : "auto";
}
/* What a saved plan says of its chains, and of turns. */
err slices_orders(struct fit *t);
/* The plan by which the run can be repeated: that of its begin where it took turns, and these. */
err slices_plan(const struct fit *t, struct str *out);
/* What batches are drawn from goes on in another layout. */
void slices_batcher(struct batcher *to, const struct batcher *from);
/* Where the last step went wrong; of a row of slices: of which window, which slice, which step. */
void slices_nonfinite(void *fit, char where[240]);
void slices_place(const struct forecast_spec *spec, i32 B, const char *found, char where[240]);
/* stale.c: room for the ends of slices where the course is stale; what comes before and after a step; whether the last
 * one was stale. */
err stale_new(struct fit *t);
void stale_free(struct fit *t);
/* What a checkpoint has of them; false: nothing is kept.  Ends of another key are of no use here. */
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
/* After training: the picture of the last step, and how far the loss of slices is from that of the whole (serial in time). */
err slices_end(struct fit *t);

#endif
