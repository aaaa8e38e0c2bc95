/* plan.h - what one step of a learner does, as plain data: tasks, buffers, uses, places.
 *
 *     client (a net, k-means, ..) --tasks and their uses--> plan --plan_deps--> edges --plan_exchange--> messages
 *
 * A task runs one kernel of its client on one device.  It says which range of which buffer it uses, and in which mode.  Edges
 * (deps.c) and messages between ranks (exchange.c) follow from these uses; no client writes either.  A plan knows no kernel, no
 * network and no device type: kernel ids mean what the client's table says (exec/client.h).
 *
 * A team is one task n-fold: its members do the same box at the same time on devices of one process.  They are next to each other
 * in the plan, no edge leads from one to another, and their kernel keeps them in step.  What comes after waits for all of them.
 * A split team (task.split) has no kernel that keeps its members in step: they write ranges of their own, on devices of any rank.
 *
 * The caller of the function that made a plan owns it (plan_free).  It is immutable while an exec is bound to it. */
#ifndef STRETTO_PLAN_PLAN_H
#define STRETTO_PLAN_PLAN_H

#include "base/arena.h"
#include "base/str.h"
#include "plan/slice.h"
#include "topo/machine.h"

enum use_mode { USE_R, USE_W, USE_RW, USE_SUM };
struct use {
    u32 buf;
    u8 mode; /* enum use_mode */
    i32 t0, t1; /* steps of an activation, t1 = 0: all */
    i64 lo, hi; /* range: rows for activations, elements for theta and state, [lo,hi) of the grain vector for grad */
};

static inline bool use_writes(const struct use *u) { return u->mode != USE_R; }

/* Two uses of one buffer: do they have a row or element, and a step, in common? */
static inline bool use_meets(const struct use *u, const struct use *v) {
    return u->lo < v->hi && v->lo < u->hi && (u->t1 == 0 || v->t1 == 0 || (u->t0 < v->t1 && v->t0 < u->t1));
}

enum element { ELEMENT_F32, ELEMENT_F64, ELEMENT_I32, ELEMENT_U8 };
static inline i64 element_bytes(u8 type) { return type == ELEMENT_F64 ? 8 : type == ELEMENT_U8 ? 1 : 4; }

/* Where a buffer is after the step, and when it goes there: on the ranks that wrote it last, on all, on rank `home`; READERS: on
 * the ranks whose tasks read it, and on all others when the exec settles; STARTERS: on the ranks whose tasks overwrite it. */
enum { HOME_STARTERS = -4, HOME_READERS = -3, HOME_WRITER = -2, HOME_ALL = -1 };
/* STEP: in every step.  KEEP: only where the gradient is kept for the next step to add to.  SETTLE: when somebody looks at the
 * weights between two steps (exec_settle).  GATHER: only on request (another plan wants it elsewhere). */
enum message_when { MESSAGE_STEP, MESSAGE_KEEP, MESSAGE_SETTLE, MESSAGE_GATHER };

/* Ranks that run a task: that of its device, all, or those whose other tasks use what it writes. */
enum { RUN_ONCE, RUN_EVERYWHERE, RUN_AT_USERS };

/* Policies that sum a step while the next one is computed need a second copy of some buffers.  SWAP: the two change places after
 * a step (gradients).  COPY: the second one becomes the first when the sums are done (weights). */
enum twin { TWIN_NONE, TWIN_SWAP, TWIN_COPY };

enum { PLAN_NO_MARKS = 0xffffffffu };

/* A buffer: memory [repeat][extent][unit] of elements, so that ranges of uses are [lo,hi) of the middle axis. */
struct pbuf {
    u8 kind;     /* the client's tag */
    u8 element;  /* enum element */
    u8 when;     /* enum message_when: when it goes home */
    bool lent;   /* the client owns the memory (inputs, weights); exec allots all others */
    bool sparse; /* ranges of plan.table in it are sent as sparse rows */
    bool sent;   /* ranks send each other much of it: exec allots it where that is cheap (comm_alloc) */
    bool in_part; /* a rank allots only the range that its tasks use */
    bool seen;    /* the host reads it: the sums that decide about an update */
    bool local;   /* each rank keeps a version of its own: never sent */
    bool by_row;  /* ranges are rows of the batch: a device may hold some of them at a time (rows.h) */
    bool read_after; /* by_row: the host may read it between two steps */
    u8 twin;     /* enum twin */
    u32 marks;   /* sparse: the buffer with a byte for each line of it, from `lo` of this one on; PLAN_NO_MARKS = none */
    i32 index;   /* the client's number */
    i32 repeat;  /* 1, or steps T of an activation [T][rows][F] */
    i32 home;    /* HOME_WRITER, HOME_ALL or a rank */
    i64 bytes;   /* of all of it */
    i64 extent;  /* ranges of uses lie in [0, extent): rows, elements, blocks */
};

/* Bytes of elements [lo,hi), all repeats. */
static inline f64 pbuf_bytes(const struct pbuf *b, i64 lo, i64 hi) { return (f64)b->bytes * (f64)(hi - lo) / (f64)b->extent; }

/* The range of a buffer that some tasks use; hi 0 = none. */
struct plan_range {
    i64 lo, hi;
};
static inline void plan_range_add(struct plan_range *r, i64 lo, i64 hi) {
    r->lo = r->hi == 0 ? lo : lmin(r->lo, lo);
    r->hi = lmax(r->hi, hi);
}

/* Where a device of the plan is. */
struct place {
    i32 rank;
    struct device device;   /* its rates, from the machine */
    char name[DEVICE_NAME]; /* "r0.cpu1" */
};

struct task {
    u8 kind;         /* kernel id of the client */
    u8 everywhere;   /* RUN_ONCE, .. : ranks that run it for themselves, not only that of its device */
    u16 op;          /* layer or op of the client; l of the box too */
    u32 device;      /* place: index into machine.device */
    struct slice box;
    u16 member, members; /* member k of n of a team; 0 of 1: alone */
    bool split;          /* its members may be of different ranks: what they exchange is in their uses, so each runs by itself */
    u8 how;              /* variant of the kernel, 0 = the kernel chooses; speed, never bits */
    i32 node_a, node_b;  /* merge: buffer a += buffer b; else the client's */
    i64 lo, hi;          /* range of a vector, for kernels over one */
    u32 use0, nuse;
    u32 dep0, ndep; /* derived: tasks that must be done before */
    f32 cost;       /* predicted seconds */
    f32 link;       /* predicted seconds until another rank has its output; 0 where the costs of that rank's tasks count them */
};

/* A range of a vector of which the rows of a batch touch few lines of 16 floats: a large embedding.  Gradients in it are zeroed,
 * summed and sent as sparse rows; the sums are those of whole vectors, to the bit. */
struct plan_table {
    i64 lo, hi;
    i32 op, lines; /* op of the client; lines that a row of the batch touches at most */
};

/* Seconds that plan_schedule adds to the costs of tasks. */
#define PLAN_SYNC_S 0.5e-6 /* where nothing was measured: until another device sees that a task is done */
#define PLAN_START_S 3e-6  /* .. until workers but the first begin */
struct plan_waits {
    f64 around; /* before the first task of a step and after the last one */
    f64 wake;   /* until devices but the first begin */
    f64 seen;   /* until another device sees that a task is done */
    f64 fetch;  /* until ranks of one host have the weights that others have updated */
};

struct plan {
    char strategy[64]; /* its name, for people */
    bool exact;        /* the bits of the serial plan */
    i32 B, grain, ngrain, ndevice;
    i32 nrank;                /* of the machine: also those that have nothing to do */
    f64 link_gbytes, link_us; /* between ranks, of the machine */
    u32 ntask, nuse, nbuf, ndep;
    struct place *place; /* [ndevice] */
    struct task *task;   /* in an order that respects the deps */
    struct use *use;
    struct pbuf *buf;
    u32 *dep;
    i32 ntable;
    struct plan_table *table; /* [ntable] in the order of the vector */
    void *client;             /* what the client keeps with its plan, in the arena */
    struct plan_waits waits;
    f64 predicted;            /* seconds per step, from the list schedule */
    i64 peak_bytes;           /* most that the exec of a rank will hold, inputs not */
    i64 exchange_bytes;       /* between devices per step */
    struct arena arena;
};

void plan_free(struct plan *p); /* NULL is fine */
err plan_deps(struct plan *p);  /* derives p->dep and each task's dep0, ndep */

/* The predicted schedule: when each task runs on its device, and the end of the step.  span [ntask], may be NULL. */
struct plan_span {
    f64 t0, t1; /* seconds */
};
f64 plan_schedule(const struct plan *p, struct plan_span *span);

/* Adds what a task uses to the ranges of buffers, range [nbuf]. */
static inline void plan_add_uses(const struct plan *p, const struct task *t, struct plan_range *range) {
    for (u32 k = t->use0; k < t->use0 + t->nuse; k++) plan_range_add(&range[p->use[k].buf], p->use[k].lo, p->use[k].hi);
}

/* Tasks by device, or by rank: those of group g are task[first[g]] .. task[first[g + 1] - 1], in the order of the plan. */
struct plan_groups {
    u32 *first, *task; /* [groups + 1], [ntask], in the arena of the caller */
};
err plan_group(const struct plan *p, bool by_rank, struct arena *a, struct plan_groups *out);
/* Bytes of all ranges that the tasks of each device use; bytes [ndevice].  E601 */
err plan_device_bytes(const struct plan *p, i64 *bytes);

/* The table of element `at`, and where it ends; NULL = none, and where the next one begins (INT64_MAX = nowhere). */
const struct plan_table *plan_table_at(const struct plan *p, i64 at, i64 *end);

bool plan_is_split(const struct plan *p); /* it has a split team */

/* Of `count` items, those of a member of a team: [*lo, *hi). */
static inline void task_share(const struct task *t, i32 count, i32 *lo, i32 *hi) {
    *lo = (i32)((i64)count * t->member / t->members);
    *hi = (i32)((i64)count * (t->member + 1) / t->members);
}

/* Member 0 of the task's team; the task itself when it is alone.  Never outside, even in a text that a check will refuse. */
static inline u32 plan_team_first(const struct plan *p, u32 task) {
    u32 member = p->task[task].member;
    return member <= task ? task - member : task;
}

#endif
