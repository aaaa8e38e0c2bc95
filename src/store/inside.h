/* inside.h - struct pstore, private to this folder.
 *
 *     worker thread                 service thread (a job of the agent, comm.h)                other ranks
 *     pstore_give --desk: PUSH-->   packs are sent to the servers      --PS_PUSH-->            server_push
 *     pstore_take --desk: NEXT-->   ticket and weights of rank 0       --PS_NEXT, PS_TICKET--> tickets.c
 *                                   weights of the other servers       --PS_PULL, PS_WEIGHTS-> server_pull
 *
 *     vector   | shard 0: chunk chunk | shard 1: chunk chunk chunk |      a chunk is a message; a unit, one or more chunks, is
 * what unit                   unit        unit                  a server applies at once (the shard, a tensor, some rows) */
#ifndef STRETTO_STORE_INSIDE_H
#define STRETTO_STORE_INSIDE_H

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/arena.h"
#include "base/wakeup.h"
#include "store/post.h"
#include "store/store.h"

/* Of a plain chunk on its way within a host, which stays in the cache; of one between hosts (layout.c), or for a codec, for which
 * whole matrices pack better. */
enum { PLAIN_FLOATS = 1 << 16, CHUNK_FLOATS = 1 << 20 };
enum ps_kind { PS_PUSH = 1, PS_PULL, PS_WEIGHTS, PS_NEXT, PS_TICKET, PS_NORM, PS_LEAVE, PS_STATE };
enum { PS_FINAL = 1, PS_REFUSED = 2, PS_STOP = 4, PS_ASKS = 8 }; /* ASKS: a push with which its worker asks for a ticket */

struct ps_head {
    u8 kind, flags;
    u16 vector; /* PS_STATE: which one of the optimiser's state */
    u32 bytes; /* of the data behind it */
    i32 chunk; /* of the shard */
    i64 ticket;
    f64 loss;
};

struct ps_chunk {
    i64 lo, hi;
    i32 unit;   /* of the shard */
    bool first, last; /* of its unit */
    i64 packet; /* offset of its packet in a rank's packets */
    i64 state;  /* offset of its codec's state */
};

/* Who has which range. */
struct ps_layout {
    i32 nserver, nworker, server0, worker0; /* ranks server0.., worker0.. */
    struct store_shard *shard;              /* [nserver] */
    struct ps_chunk **chunk;                /* [nserver][nchunk] */
    i32 *nchunk, *nunit;                    /* [nserver] */
    i64 *chunk0;                            /* [nserver] chunks of the shards before */
    i64 packets;                            /* bytes of all packets of the vector */
    i64 states;                             /* floats of all codec states of the vector */
    i64 most;                               /* bytes of the largest message */
    i64 scratch;                            /* floats that the codec needs to encode a chunk */
};

/* What a worker of another rank, or this one, has sent to the server of this rank. */
struct ps_inbox {
    f32 *v;             /* [shard] */
    i64 ticket;         /* of the push under way; -1 = none */
    i32 ready, applied; /* units */
    bool refused;
    i64 pull;          /* ticket whose weights it awaits; -1 = none */
    bool final, given; /* it awaits the weights of the leg's end; they were sent */
    bool left;         /* no push of it will follow */
    u64 version;       /* of the shard when it pulled */
    f32 *base;         /* [shard] what it pulled; NULL unless the policy or a codec needs it */
    f32 *state;        /* codec state of the pulls: [states], of which the vector's element state0 is the first */
    i64 state0, states;
    unsigned char *packets; /* weights on their way to it */
};

struct ps_server {
    i32 me;              /* number of the shard; -1 = this rank serves none */
    f32 *center;         /* [shard] */
    struct ps_inbox *of; /* [ranks] */
    i32 *part_of;        /* [parts] staleness 0: rank whose inbox holds the part; -1 = not yet */
    i32 complete;        /* parts of the round that are here */
    i32 open;            /* rank whose unit is applied chunk by chunk, as it comes; -1 = none */
    f32 *hot;            /* [chunk] where such a chunk goes, which stays in the cache */
    i64 round;           /* staleness 0: the round that is collected */
    u8 *done;            /* [tickets] of the leg: applied */
    i64 clear;           /* rounds below are applied */
    u64 version;         /* updates since pstore_new */
    f64 *norm;           /* [blocks of the vector] of the round */
    i32 norms;           /* servers whose sums are here */
    bool summed;         /* the round is merged, its norm is awaited */
    u32 *event;          /* [events] of the leg */
    i64 nevent, events;
    const u32 *script; /* replay */
    i64 nscript;
    f32 *copy;      /* [nstate][shard] of the optimiser state, for the keeper; NULL = it gets none */
    i64 since_copy; /* bytes of weights that the keeper has received since the last copy */
    i64 pushes, refused, stale[STALE_BINS];
    i32 refused_rank;
    f64 loss;
};

/* Rank 0: who computes what. */
struct ps_tickets {
    i64 next;      /* of all, or */
    i64 *round;    /* [workers] sticky: next round of each */
    i64 last;      /* round; lowered by a stop */
    u16 *owner;    /* [tickets] */
    i64 *scripted; /* [workers] replay: where each goes on reading the owners */
};

/* Where worker and service meet. */
enum { DESK_PUSH = 1, DESK_NEXT = 2 };
struct ps_desk {
    _Atomic u32 asked; /* DESK_ bits that the service has not seen */
    _Atomic u32 ready; /* 1: ticket and weights are there */
    _Atomic bool failed;
    struct wakeup changed, service; /* worker, service sleep */
    struct pstore_ticket ticket;
    bool over;          /* the leg is over for this worker */
    bool next;          /* the next ticket was asked for */
    _Atomic bool waits; /* the worker waits, or there is none */
    _Atomic u32 held;   /* 1: the push is still on its way */
    i64 number;         /* ticket of the push */
    f64 loss;
    bool refused;
    i64 got;             /* chunks of weights that have come for the ticket */
    i32 *got_of;         /* [nserver] of them */
    bool asks;           /* a ticket is awaited of rank 0 */
    _Atomic bool drives; /* the worker moves the messages itself (service_drive) */
    _Atomic bool quit;   /* the worker has failed */
};

struct pstore {
    struct pstore_job job;
    struct ps_layout at;
    struct ps_server server;
    struct ps_tickets tickets;
    struct ps_desk desk;
    struct post *post;
    pthread_t thread;
    pthread_mutex_t turn; /* held by the thread that moves messages and serves */
    bool running;
    err result;
    struct err_record why;
    bool corrects; /* the codec has the momentum of the server's SGD, one for each worker (topk: DGC) */
    const struct pstore_record *replay;
    i64 first, last;        /* rounds of the leg */
    i64 chunks;             /* of all shards */
    unsigned char *packets; /* of the push */
    u32 *packet_bytes;      /* [chunks] of each */
    const void **packet_at; /* [chunks] where each is */
    bool lends;             /* weights go from the shard itself, which no update changes meanwhile */
    unsigned char *norm_packet;
    f32 *push_change;       /* [chunk] of weights, for a push */
    f32 *pulled;            /* [n] NULL = weights go to job.theta */
    f32 *state, *scratch;   /* codec: of pushes; for encoding in the worker, in the service */
    f32 *scratch2, *change; /* service: scratch; [chunk] a change of weights */
    f64 coding[2];          /* seconds of this leg in codecs: in the worker thread, in the one that serves */
    f32 momentum;           /* of the job, before `corrects` took it */
    f32 *pause;             /* [pstore_pause_floats] NULL = no leg was ended by a stop */
    bool pauses, paused;    /* it may be needed: the job begins synchronous, with a codec; the next leg goes on from it */
    i64 round;              /* of the push, for codecs that warm up */
    bool told;              /* this rank has ended its streams */
    bool leaving, closing;  /* no ticket will follow; this rank has the last weights */
    struct post_count before;
    i64 whole; /* bytes of the leg without codecs */
    i64 taken; /* tickets of this rank's worker in the leg */
    f64 edges; /* seconds of `waited` for the first ticket of the leg, and for none at its end */
    f64 waited, worked, since;
    struct arena arena;
};

/* layout.c */
err layout_make(struct pstore *s);
err range_to_all(struct comm *c, i32 root, const char *what, f32 *v, i64 n); /* from the rank that has it */
static inline i32 server_rank(const struct pstore *s, i32 server) { return s->at.server0 + server; }
static inline i64 layout_blocks(const struct pstore *s) { return (s->job.n + s->job.block - 1) / s->job.block; }
/* The worker of a rank; -1 = none. */
static inline i32 worker_of(const struct pstore *s, i32 rank) {
    return rank >= s->at.worker0 && rank < s->at.worker0 + s->at.nworker ? rank - s->at.worker0 : -1;
}

/* server.c: handle messages of workers; server_advance applies and answers what has become possible. */
err server_new(struct pstore *s);
err server_begin(struct pstore *s);
err server_place(struct pstore *s, i32 from, const struct ps_head *h, void **to); /* of a push: checks it */
err server_push(struct pstore *s, i32 from, const struct ps_head *h, const unsigned char *data);
err server_pull(struct pstore *s, i32 from, const struct ps_head *h);
err server_pull_for_ticket(struct pstore *s, i32 from, i64 ticket);
err server_leave(struct pstore *s, i32 from);
err server_norm(struct pstore *s, i32 from, const struct ps_head *h, const unsigned char *data);
err server_advance(struct pstore *s, bool *moved);
bool server_finished(const struct pstore *s); /* every rank has its last weights */

/* apply.c: the arithmetic of a server */
void apply_push(struct pstore *s, const struct ps_inbox *in, i32 rank, i32 unit); /* one unit of one push */
void apply_range(struct pstore *s, const struct ps_inbox *in, i64 lo, i64 hi, f32 *delta); /* a piece of a unit; delta: of lo */
void count_push(struct pstore *s, const struct ps_inbox *in, i32 rank);                 /* the push is applied whole */
void apply_merge(struct pstore *s); /* sums the parts of the round into part 0, and its norm */
void apply_round(struct pstore *s);

/* pack.c: chunks of vectors as packets.  *packet: where its bytes are, which may be the vector itself */
bool pack_plain(const struct pstore *s); /* no codec */
struct wire_args pack_args(const struct pstore *s, const struct ps_chunk *c, i64 round, bool gradient);
u32 pack_push(struct pstore *s, const struct ps_chunk *c, const f32 *v, const void **packet);
u32 pack_weights(struct pstore *s, struct ps_inbox *in, const struct ps_chunk *c, bool final, const void **packet);
u32 pack_bytes(const struct ps_chunk *c);                     /* of a plain chunk */
f32 *pack_target(struct pstore *s, const struct ps_chunk *c); /* where pulled weights go */
/* to: element c->lo of the vector.  False: malformed. */
bool unpack_push(struct pstore *s, const struct ps_chunk *c, const unsigned char *data, u32 bytes, f32 *to);
bool unpack_weights(struct pstore *s, const struct ps_chunk *c, const unsigned char *data, u32 bytes, bool final);

/* pause.c: in a leg that a stop ends, before the last weights; at its end; when the next one begins */
err pause_keep_view(struct pstore *s);
err pause_keep_shard(struct pstore *s, const struct ps_inbox *in);
err pause_end(struct pstore *s, i64 end);
void pause_begin(struct pstore *s);

/* keep.c: copies of a server's optimiser state on another rank */
i32 keeper_rank(const struct pstore *s, i32 server);
err keep_new(struct pstore *s);
err keep_send(struct pstore *s, i32 rank, i64 bytes); /* after `bytes` of weights for this rank */
err keep_place(struct pstore *s, i32 from, const struct ps_head *h, void **to);

/* tickets.c */
err tickets_new(struct pstore *s);
err tickets_begin(struct pstore *s);
err tickets_next(struct pstore *s, i32 from, bool stop, i64 *ticket); /* -1 = there is none */

/* service.c */
err service_place(void *store, i32 from, const unsigned char *head, void **to);
err service_handle(void *store, i32 from, const unsigned char *head, const unsigned char *data);
void service_begin(struct pstore *s);
void *service_main(void *store);
void service_drive(struct pstore *s, _Atomic u32 *word, u32 want); /* until *word is `want`, or desk.failed */

static inline bool is_synchronous(const struct pstore *s) { return store_staleness(&s->job.store) == 0; }
/* A message, whose data are borrowed until it is sent. */
static inline err send_message(struct pstore *s, i32 to, const struct ps_head *h, const void *data) {
    s->whole += to == comm_rank(s->job.comm) ? 0 : POST_HEAD;
    return post_send(s->post, to, h, sizeof *h, data);
}

static inline i64 leg_tickets(const struct pstore *s) { return (s->last - s->first) * s->at.nworker; }
static inline const struct store_shard *own_shard(const struct pstore *s) { return &s->at.shard[s->server.me]; }

#endif
