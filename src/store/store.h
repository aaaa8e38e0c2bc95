/* store.h - a parameter store: the weights in shards on servers, workers that pull them and push what they learned.
 *
 *     rank 0   worker ----push, pull----> server of shard 0      a server runs beside the worker of its rank, in the service
 *     rank 1   worker ----push, pull----> server of shard 1      thread, or on ranks of their own (servers > 0)
 *
 * Training runs in legs.  Within a leg workers take tickets: ticket c is round c / parts and part c % parts of its batches.
 * Between legs the store is at rest: every push is applied, every rank has the same weights, and ranks may talk to each other
 * (validate, checkpoint).  What a policy allows, policy.h says; how messages look, inside.h.
 *
 * A round with staleness 0 applies one update: the sum of all parts along a fixed tree.  Otherwise each push is an update of its
 * own with the weight 1 / parts, and the order of pushes and pulls at each server is recorded: a replay has equal bits. */
#ifndef STRETTO_STORE_STORE_H
#define STRETTO_STORE_STORE_H

#include "codec/codec.h"
#include "comm/comm.h"
#include "kern/kern.h"
#include "store/policy.h"

struct pstore;

struct pstore_job {
    struct comm *comm; /* at least two ranks; borrowed */
    struct store_choice store;
    i32 servers;       /* ranks that only serve, the first ones; 0 = a shard on every rank */
    i64 n;             /* floats of the vector */
    f32 *theta;        /* [n] the weights that this rank computes with */
    i64 block;         /* floats of a partial sum of the norm; shards begin at multiples of it */
    const i64 *border; /* [nborder] ascending starts of pieces that are pushed and applied by themselves; none = the model */
    i32 nborder;
    bool gradients; /* workers push gradients of one step, else w(pulled) - w after some steps */
    const struct kern *kern;
    const struct optim *optim;                /* of the servers */
    struct optim_hyper hyper;                 /* of the servers; lr, grad_scale and step are set for each update */
    f64 clip;                                 /* global norm of the gradient of a round; only with staleness 0 */
    f32 *state[2];                            /* [n] of the servers' optimiser; a server uses its shard's range */
    f64 (*rate)(const void *self, i64 round); /* learning rate of the server optimiser */
    bool (*stop)(const void *self);           /* this rank wants the leg to end early; any thread */
    const void *self;
    bool sticky;              /* part p belongs to worker p, else to whichever worker comes first */
    bool heals;               /* a leg may lose ranks: servers copy their optimiser state to other ranks (keep.c) */
    struct wire_choice codec; /* of pushes and pulls */
    struct wire_layout layout;
};

/* All ranks call pstore_new, begin, end and free together.  E106 with the option where counts do not fit. */
err pstore_new(const struct pstore_job *job, struct pstore **out);
void pstore_free(struct pstore *s);
/* From the next leg on messages go as they are: the codec's residuals end. */
void pstore_drop_codec(struct pstore *s);
err pstore_probe(struct comm *c, f64 *seconds); /* for a byte from rank to rank; all ranks get the slowest */

i32 pstore_worker(const struct pstore *s); /* number of this rank's worker; -1 = it only serves */
struct store_shard {
    i64 lo, hi;
    i32 rank;
};
i32 pstore_shards(const struct pstore *s, const struct store_shard **out); /* ascending */

/* Between legs, on all ranks: rounds that a worker may be ahead from now on; the policy is otherwise that of the job. */
void pstore_set_policy(struct pstore *s, const struct store_choice *c);

/* A leg of rounds [first, last).  replay: the record of such a leg, NULL = none. */
struct pstore_record {
    i32 nserver, parts;
    i64 tickets, events; /* events of a server: pulls and updates, in order; u32 ticket * (units + 1) + (0 | 1 + unit) */
    u16 *owner;          /* [tickets] the worker that took it */
    u32 *event;          /* [nserver][events] */
    i64 *count;          /* [nserver] events of each */
};
void pstore_record_free(struct pstore_record *r);

err pstore_begin(struct pstore *s, i64 first, i64 last, const struct pstore_record *replay);

struct pstore_ticket {
    i64 number, round;
    i32 part;
};
/* Takes the next ticket and pulls the weights for it into job.theta (own_weights: into pstore_pulled).  0 = the leg is over for
 * this worker; 1 = there is one; an error of the service. */
err pstore_take(struct pstore *s, struct pstore_ticket *t);
/* Pushes for the ticket; returns when the vector has been packed.  v: [n] the gradient; NULL: pulled - theta.  refused: it is not
 * finite, servers count the ticket and apply nothing.  more: the worker computes on with this ticket (own_weights). */
struct pstore_push {
    const f32 *v;
    f64 loss;
    bool refused, more;
};
err pstore_give(struct pstore *s, const struct pstore_ticket *t, const struct pstore_push *p);
f32 *pstore_pulled(struct pstore *s); /* [n] what was pulled last; NULL unless own_weights or differences are pushed */

enum { STALE_BINS = 16 };
/* Of a leg; the same on all ranks. */
struct pstore_leg {
    i64 end;                   /* rounds [first, end) are applied */
    i64 pushes, refused;       /* applied by servers, per shard 0; of them refused */
    i32 refused_rank;          /* the first worker whose push was refused */
    f64 loss;                  /* sum of the losses of pushes that were not refused */
    i64 sent, whole, messages; /* bytes of all ranks: on the wire; as f32 without codec; messages */
    i64 stale[STALE_BINS];     /* pushes of shard 0 by updates that the worker had not seen, the last bin: and more */
    f64 waited, worked;        /* seconds of all workers: for tickets and weights; between take and give */
    f64 fastest, slowest;      /* seconds of a ticket, of the fastest and the slowest worker that had one */
    f64 round;                 /* seconds of a round as it was: a ticket and the wait for the next one, mean of the workers */
    f64 dealt;                 /* seconds of a round if workers took tickets when free, and waited for messages only */
    f64 coding;                /* seconds of all ranks in codecs */
};
/* After pstore_take returned 0 or at once on a rank without worker: waits for all ranks; job.theta is the model. record: NULL =
 * not wanted; owned by the caller. */
err pstore_end(struct pstore *s, struct pstore_leg *out, struct pstore_record *record);

/* Ends the service of a leg whose worker has failed; pstore_free does it too. */
void pstore_stop(struct pstore *s);

/* Elastic recovery (comm.h).  share_state: after a leg every rank has the whole state of the servers' optimiser, as salvage needs
 * it. salvage: after comm_recover, on all survivors of a leg that failed: job.theta and state are those of the servers that live;
 * the shard of one that died is what the last rank has pulled of it, and its state that of the leg's begin.  *round: all rounds
 * below are applied; *lost: shards that had no server any more.  The store is then of no use but to be freed. */
err pstore_share_state(struct pstore *s);
err pstore_salvage(struct pstore *s, const struct comm_loss *loss, i64 *round, i64 *lost);

/* A stop has ended a synchronous leg with a codec: what the next leg needs to go on with the bits of a whole one, the same on all
 * ranks, for checkpoints.  floats: 0 where there is never any; paused: NULL after a whole leg; load: NULL = none. */
i64 pstore_pause_floats(const struct pstore *s);
const f32 *pstore_paused(const struct pstore *s);
err pstore_pause_load(struct pstore *s, const f32 *from);

/* What this rank alone knows and a checkpoint must hold, as floats: residuals of codecs, momentum inside codecs. */
i64 pstore_private(const struct pstore *s);
void pstore_private_save(const struct pstore *s, f32 *to);
void pstore_private_load(struct pstore *s, const f32 *from); /* NULL = zeros */

#endif
