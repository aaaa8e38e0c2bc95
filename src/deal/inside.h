/* inside.h - what the files of deal/ share: the dealer, its devices, the queues of spans, and what a policy decides.
 *
 *     span     rows of one partition that nobody has, in one queue: the pool (any device) or the queue of a device
 *     dealer.c the state of spans and pieces     size.c how large the next piece is     rate.c what devices are measured at
 *     home.c   which queue a span belongs to, moves between queues                      lanes.c how many pieces at once */
#ifndef STRETTO_DEAL_INSIDE_H
#define STRETTO_DEAL_INSIDE_H

#include "deal/deal.h"

#define DEAL_MEMORY 0.8     /* of the free memory is used */
#define DEAL_BUFFERS 2      /* work sets of a lane: one is filled while the other one is computed */
#define DEAL_MIN 20.0       /* a piece takes at least so many overheads */
#define DEAL_DELTA 0.05     /* largest piece and tolerated imbalance, as a fraction of the ideal makespan */
#define DEAL_OVERHEAD 100e-6
#define DEAL_ALIKE 1.25     /* devices whose rates differ by no more are equal */

struct span {
    i32 part;
    i32 holder; /* device whose memory has the rows, or -1 */
    i64 lo, hi;
    i32 child, next; /* pairing heap; `next` also links free spans */
};

/* Pairing heap (Fredman et al., 1986) of spans; root -1 = empty. */
struct queue {
    i32 root, n;
    f64 cost;
};

/* Weighted least squares of seconds = overhead + cost / rate, weights 1 / seconds^2: every piece counts by its relative error. */
struct fit {
    f64 n, w, c, cc, s, cs; /* sums of 1, 1/s^2, c/s^2, c^2/s^2, 1/s, c/s; the past counts less */
};

struct lane_search {
    i32 skip, count, want; /* pieces before the window, in it, until its end */
    f64 begin, cost;       /* of the window */
    i32 best;
    f64 best_rate;  /* cost units per second of the device; 0 = not measured */
    f64 piece;      /* cost of the pieces that are compared */
    i32 hold, step; /* pieces until the next search; +1 or -1 lane */
    i64 settled;    /* pieces done when the first search ended */
};

struct dev {
    struct deal_device is;
    enum deal_status status;
    bool measured, climbs;
    i64 seen;
    f64 rate, overhead; /* of one lane */
    f64 home_rate;      /* of pieces without a transfer; 0 = none was measured */
    struct fit fit;
    i64 cap_rows; /* learned from refusals */
    i32 calm;     /* pieces since the last one */
    i32 lanes, lanes_most, inflight;
    i64 inflight_rows;
    struct lane_search search;
    struct queue queue;
    f64 finish; /* expected seconds of the queue, for placing */
    f64 last;   /* cost of its last piece */
    i64 refused, stolen;
    f64 cost, busy;
};

struct flight {
    bool on;
    struct deal_piece piece;
};

struct deal_policy {
    const char *name, *help;
    bool largest; /* queues give the largest span first; else in order of partition and row */
    bool sticky;  /* iterative work stays on its device; idle devices steal from queues at the tail */
    bool climb;   /* numbers of lanes are tried; else all lanes are used */
    f64 delta;    /* partitions are cut beforehand into equal pieces of at most delta * W / devices; 0 = not */
    /* Device whose queue takes a span; -1 = the pool, from which idle devices take. */
    i32 (*home)(struct dealer *d, const struct span *s);
    f64 (*size)(const struct dealer *d, i32 device); /* cost of the next piece; NULL = the span, as far as memory allows */
};

struct dealer {
    const struct deal_policy *policy;
    i32 n, nparts;
    struct dev *dev;
    struct deal_part *part;
    i32 *home; /* [nparts] */
    i64 row_bytes, grain;
    f64 total, left; /* cost of all; of what no device has or has done */
    i64 undone;      /* rows */
    i32 in, inflight, turn;
    struct span *span;
    i64 nspan, span_cap;
    i32 free_span, nfree;
    struct queue pool, small; /* small: spans that are below `least` */
    f64 least;                /* the largest lower bound of a piece; 0 = devices are equal or unknown */
    struct flight *flight; /* [n * DEAL_LANES] */
    struct deal_piece *result;
    i64 nresult, result_cap, ids;
    bool sorted;
    /* sums over the devices that are in; rate_refresh() */
    bool stale, all_home;
    i32 age, unmeasured;
    f64 rate_sum, rate_mean, rate_low, rate_high;
};

/* span.c */
err span_reserve(struct dealer *d, i32 spans); /* the next so many span_new calls succeed */
i32 span_new(struct dealer *d, i32 part, i64 lo, i64 hi, i32 holder);
void span_drop(struct dealer *d, i32 span);
void queue_push(struct dealer *d, struct queue *q, i32 span);
i32 queue_pop(struct dealer *d, struct queue *q);              /* -1 = empty */
void queue_take(struct dealer *d, struct queue *q, i64 rows);  /* removes the first rows of the top span */
static inline f64 span_cost(const struct dealer *d, const struct span *s) { return (f64)(s->hi - s->lo) * d->part[s->part].cost; }

/* size.c */
bool size_memory(const struct dealer *d, struct dev *v); /* sets lanes_most; false: not even one grain fits */
i64 size_cap(const struct dealer *d, const struct dev *v); /* rows of a piece that memory allows now; 0 = none */
f64 size_min(const struct dealer *d, const struct dev *v); /* cost */
f64 size_guided(const struct dealer *d, const struct dev *v);
i64 size_rows(const struct dealer *d, i32 device, const struct span *s); /* of the next piece; 0 = wait for memory */

/* rate.c */
void rate_measured(struct dealer *d, struct dev *v, const struct deal_piece *p, f64 seconds);
void rate_refresh(struct dealer *d, bool now);
f64 rate_of(const struct dealer *d, const struct dev *v); /* one lane: measured, believed, or the mean of those known */
static inline f64 rate_all(const struct dealer *d, const struct dev *v) { return rate_of(d, v) * v->lanes; }
f64 rate_home(const struct dealer *d, const struct dev *v); /* all lanes, of resident rows */
bool rate_alike(const struct dealer *d); /* all rates are known and nearly equal */

/* lanes.c */
void lanes_done(struct dev *v, f64 cost, f64 now);
void lanes_starved(struct dev *v);
f64 lanes_piece(struct dev *v, f64 cost, f64 min); /* cost of a piece while numbers of lanes are compared */

/* home.c */
void home_reset(struct dealer *d);
void home_put(struct dealer *d, i32 span); /* into the queue that the policy chooses */
struct queue *home_queue(struct dealer *d, i32 device); /* from which an idle device takes now; NULL = none */
i32 home_earliest(struct dealer *d, const struct span *s);
f64 home_balance(struct dealer *d);

/* policy.c, check.c */
err deal_policy_find(const char *name, const struct deal_policy **out);
err deal_check(const struct deal_device *device, i32 n, const struct deal_work *w);

#endif
