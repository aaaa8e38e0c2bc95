/* inside.h - struct store_run, private to this folder. */
#ifndef STRETTO_LEARN_STORE_INSIDE_H
#define STRETTO_LEARN_STORE_INSIDE_H

#include "base/arena.h"
#include "learn/store/account.h"
#include "learn/store/run.h"

struct order;   /* record.c */
struct chooser; /* choose.c */

/* carry.c */
struct carry {
    i32 n, in[NET_OPS], end[NET_OPS]; /* layers: buffers of the state that comes in and of the one that is left */
    i64 floats;                       /* of all states of a batch */
    f32 *state;                       /* [floats] */
    i64 next;                         /* step that goes on from here; another one begins from zero */
};

struct store_run {
    struct pstore *ps;
    struct store_spec spec;
    struct store_choice now;     /* the policy of the leg; --store auto changes it */
    const struct train_job *job; /* of the leg, for rates */
    struct train_state *state;
    const struct optim *server;
    struct optim_hyper server_hyper;
    f32 *server_state[2]; /* [ntheta] where the engine holds the worker's; else the engine's */
    bool gradients;       /* workers push gradients */
    bool owns_server_state;
    f32 *own;           /* [ntheta] weights of this worker alone (easgd); NULL */
    f32 *force;         /* [ntheta] its push, on its way (easgd); NULL */
    struct carry carry; /* n 0: nothing is carried */
    bool begun;         /* own is valid */
    f64 last_loss;      /* of the last ticket with weights of its own */
    f64 deadline;       /* clock at which --time-limit ends the run; 0 = never */
    bool in_leg;        /* a leg is under way, or was when an error ended it */
    i64 base;           /* step with which round 0 of `local` steps began */
    i64 local;          /* steps of a ticket in this leg */
    f32 alpha;          /* easgd */
    bool codec;         /* in use */
    f64 byte_seconds;   /* of a byte from rank to rank; 0 = the codec was judged, or there is none */
    bool judged;        /* the codec, by what it took and saved */
    f64 slow;           /* fault injection: times as long; 0 = not slowed */
    i64 slow_from;
    i64 *border; /* pieces */
    i32 nborder;
    struct wire_matrix *matrix;
    i32 nmatrix;
    struct order *order;         /* record or replay; NULL = the order is fixed anyway */
    struct chooser *chooser;     /* granularity and policy follow what was measured; NULL = fixed */
    i64 *first;                  /* [ranks + 1] private floats of the ranks before */
    struct store_record *record; /* account of the training, of the forecaster: it survives recovery from a death */
    i32 member;                  /* in training, for the record */
    struct arena arena;
};

bool store_pushes_gradients(const struct store_spec *s); /* split.c: of single steps; else changes of weights */

/* layout.c: matrices and pieces of the net's vector */
err store_layout(struct fit *t, struct store_run *r);

/* worker.c: this rank's tickets of a leg */
err store_work(struct fit *t, struct store_run *r);

/* carry.c: states of the recurrent layers from one tile to the next, where a worker goes through a span of time */
err carry_new(struct fit *t, struct store_run *r);
void carry_load(const struct fit *t, struct store_run *r, i64 batch, i64 step); /* into the inputs of slot 0 */
void carry_keep(const struct fit *t, struct store_run *r, i64 step);

/* record.c: RUN/order.txt */
err order_open(struct fit *t, struct store_run *r);
void order_close(struct order *o);
/* Settings of a recorded leg: its last round, steps of a ticket, codec in use, staleness. */
struct order_leg {
    i64 last, local;
    bool codec;
    i64 stale; /* rounds of staleness */
};
/* Where a leg begins.  The search for the number of steps and the refit both count steps from 0. */
struct order_place {
    i32 member;
    bool refit;
    i64 step;
};
/* The leg of a record that begins there: E106 where there is none. */
err order_find(struct order *o, const struct order_place *at, struct order_leg *as, const struct pstore_record **out);
err order_fits(const struct order_leg *as, i64 stale); /* E106 unless the run has the staleness of the record */
err order_add(struct order *o, const struct order_place *at, const struct order_leg *as, const struct pstore_record *r);
bool order_replays(const struct order *o);

/* reached.c: what followed the clock, to the record of the run and from there */
void reached_save(struct store_run *r);
void reached_load(struct store_run *r);

/* choose.c: local steps and policy of the next leg, from what the last ones took; the same on all ranks */
err chooser_new(struct store_run *r, struct chooser **out);
void chooser_free(struct chooser *c);
struct leg_facts {
    i64 step, steps;             /* at the end of the leg; of it */
    f64 seconds, waited, worked; /* of the slowest rank; of all workers together */
    f64 fastest, slowest;        /* seconds of a ticket */
    f64 round, dealt;            /* of a round; of one without waits for other workers (store/store.h) */
    f64 loss;                    /* mean training loss of the leg */
    i32 workers;
};
void chooser_save(const struct chooser *c, struct store_reached *to);
bool chooser_sound(const struct store_reached *from);
void chooser_load(struct chooser *c, struct store_run *r, const struct store_reached *from);
/* Sets the staleness of a recorded leg; no effect if c is NULL (the policy does not choose). */
void chooser_replay(struct chooser *c, struct store_run *r, i64 stale);
i64 chooser_until(const struct chooser *c, i64 step, i64 until); /* the leg's end: --store auto cuts the first ones short */
void chooser_see(struct chooser *c, struct store_run *r, const struct leg_facts *f, const struct events *to);

#endif
