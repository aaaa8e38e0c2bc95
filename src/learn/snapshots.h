/* snapshots.h - checkpoints of a learner whose whole state every rank has between two steps.
 *
 *     snapshots_open       a resumed run: rank 0 finds the newest checkpoint
 *     snapshots_take ..    its items, read by rank 0, on all ranks
 *     step, snapshots_turn, step, snapshots_turn ..     a checkpoint when one is due; a signal or the end of the time limit
 *     snapshots_close
 *
 * Rank 0 copies the state and a thread writes it while the steps go on (ckpt/saver.h); after a signal, or at the end of the time
 * limit, all ranks wait until it is written.  The forecaster, whose state lies in parts on the ranks, has forecast/save.h. */
#ifndef STRETTO_LEARN_SNAPSHOTS_H
#define STRETTO_LEARN_SNAPSHOTS_H

#include "ckpt/saver.h"
#include "learn/learner.h"

enum { SNAPSHOT_ITEMS = 40 };

/* The state as a list; what has no memory of its own comes from the arena. */
struct snapshot {
    struct ckpt_item item[SNAPSHOT_ITEMS];
    i32 n;
    struct arena arena;
};
void snapshot_add(struct snapshot *s, const char *name, enum dtype dtype, const void *p, i64 n);

struct snapshots {
    const struct learn_job *job;
    struct ckpt_saver *saver; /* of rank 0 with a run folder, else NULL */
    struct ckpt *found;       /* on rank 0 of a resumed run */
    bool resumes;             /* a checkpoint was found: the same on all ranks */
    i32 stage;                /* 0 = nothing is being written, 1 = the state, 2 = its manifest */
    /* Brings what other ranks hold of the state to rank 0: called on all ranks, before a list.  NULL = every rank has all. */
    err (*gather)(void *self);
    f64 saved, deadline;      /* times of the last checkpoint begun and of the limit; 0 = none */
    u64 data, options;        /* what the state depends on */
};

/* E901 where all checkpoints are damaged, E215 for other data, E106 for other options. */
err snapshots_open(const struct learn_job *job, struct snapshots *out);
/* Reads the items of the checkpoint that was found, on all ranks or on none; E901 if one is missing or has another size. */
err snapshots_take(const struct snapshots *s, const struct snapshot *to);
err snapshots_unsound(const struct snapshots *s); /* E901, for a learner that finds impossible numbers in what it took */
/* Adds what the state is, on rank 0 and when it is needed alone. */
typedef err snapshot_list(void *self, struct snapshot *to);
/* Between two steps, on all ranks; number: grows.  STOP_SIGNAL once the checkpoint behind a signal is complete; E806 where there
 * is no run folder.  *late: the time limit is over. */
err snapshots_turn(struct snapshots *s, i64 number, snapshot_list *list, void *self, bool *late);

/* The parts of a turn, for loops that see signals and times themselves.  Begins a checkpoint on all ranks; with `last` also
 * completes it.  Nothing happens without a run folder. */
err snapshots_save(struct snapshots *s, i64 number, snapshot_list *list, void *self, bool last);
void snapshots_advance(struct snapshots *s); /* on any rank: goes on with what is written, without waiting */
void snapshots_close(struct snapshots *s); /* allowed after a failure, and on {0} */

#endif
