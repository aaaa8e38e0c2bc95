/* peers.h - a chain (model/chain.h) whose time slices are distributed over ranks: the messages between rounds.  The heir of a
 * slice is the slice that starts from its final state; facts are the measurements of a round.
 *
 *     rank 0   slices 0..8     | run | facts to all, final states to heirs | compare | facts | run ..
 *     rank 1   slices 8..16    | run | facts to all, final states to heirs | compare | facts | run ..
 *
 * One member of each rank calls these functions, in the same order on every rank; their messages use CHANNEL_ROUND.  All return
 * false if a rank is lost: the step is then void, and the chain ends. */
#ifndef STRETTO_STEP_SLICES_PEERS_H
#define STRETTO_STEP_SLICES_PEERS_H

#include "base/arena.h"
#include "comm/comm.h"
#include "model/chain.h"

/* Measurements of a round, reduced over all members of all ranks: maxima of the numbers, sums of the counts. */
struct chain_facts {
    f32 scale, gap;  /* a gap of NaN stays NaN */
    i32 open, given; /* slices that must run again; slices whose initial state is given */
};
void chain_facts_add(struct chain_facts *sum, const struct chain_facts *f);

/* Starts n messages and waits until all are complete. */
typedef bool chain_pass(void *self, struct comm_message *m, i32 n);

struct chain_peers {
    chain_pass *pass;
    void *self;
    u64 serial; /* of the step */
    u32 turn;   /* number of calls of this chain in this step */
    f64 waited; /* seconds spent waiting for messages in this step */
    i32 n, me;  /* ranks; place of this one among them */
    i32 *rank;  /* [n] */
    i32 *first; /* [n + 1] rank[i] has slices first[i]..first[i+1] */
    /* their own */
    struct comm_message *m;
    char *out, **in;  /* facts and steps of this rank, and of the others */
    f32 *give, *take; /* final states of this rank's slices; of the predecessors of its slices */
    f32 *kept;        /* [nslice][state] final states of all slices, forward; set by peers_keep and peers_load */
    struct heir {
        i32 from, to;
    } * list;
};

/* c: the chain to run; first and rank have n + 1 and n entries and are copied. */
err chain_peers_new(struct arena *a, const struct chain *c, i32 n, const i32 *rank, const i32 *first, i32 me,
                    struct chain_peers **out);
void peers_begin(struct chain_peers *p, u64 serial);

/* f: in: facts of this rank, out: of all. steps [nslice]: in: of this rank's slices, out: of all; may be NULL. */
bool peers_facts(struct chain_peers *p, struct chain_facts *f, i32 *steps);
/* Exchanges final states with heirs on other ranks, and the round from which on each is settled: sends, receives, or both. */
enum { PEERS_GIVE = 1, PEERS_TAKE = 2 };
bool peers_ends(struct chain_peers *p, const struct chain *c, _Atomic i32 *settled, i32 what);

/* Final states of all slices, for the next step and for later visits: sent to all ranks after a step, read before one. */
bool peers_keep(struct chain_peers *p, const struct chain *c);
void peers_recall(struct chain_peers *p, const struct chain *c);
void peers_save(const struct chain_peers *p, const struct chain *c, i32 slice, f32 *to);
void peers_load(struct chain_peers *p, const struct chain *c, i32 slice, const f32 *from);

#endif
