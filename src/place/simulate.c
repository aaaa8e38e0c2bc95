/* simulate.c - the event simulator: what the runtime does with a placement.
 *
 *     events by time:   a node ends -> its device is free, transfers to other devices start -> the last input of a node arrives
 *     a free device:    the ready node of the largest priority, or the next one of a fixed order once it is ready
 *
 * O((nodes + edges) log nodes).  A device with a limit of memory takes no node whose memory it lacks, unless nothing else could
 * ever free some (sim_trial; a fixed order is followed as it is).  All memory is from the problem: a run allocates nothing. */
#include <math.h>
#include <string.h>

#include "place/inside.h"

#define SAME_TIME 1e-12 /* relative: sums of the same durations in another order are one time */

struct event {
    f64 time;
    i32 node; /* >= 0: its inputs are there; < 0: node + n has ended.  Ties in time go by number */
};

struct line {
    i64 key;
    f64 free;  /* when its last transfer ends */
    u32 stamp; /* run in which it was used */
};

struct sim {
    const i32 *device;   /* [G] of the run */
    const f64 *priority; /* NULL: fixed order */
    const i32 *order, *first;
    f64 *start, *end, *ready; /* [n] */
    i32 *wait, *wait0;        /* [n] inputs that are missing */
    bool *is_ready;           /* [n] fixed order */
    i32 *started;             /* [n] nodes in order of their start */
    i32 nstarted;
    i32 *seg; /* [P + 1] where the nodes of a device begin in both heaps */
    struct heap {
        i32 *node, *count; /* [n], [P] ready nodes of a device, the largest priority first */
    } heap[2];             /* nodes that need no memory, nodes that do */
    i32 *next;             /* [P] fixed order: position in `order` */
    i32 *running;          /* [P] node or -1 */
    i64 *memory, *peak;    /* [P] */
    i32 *left;             /* [G] nodes of a group that have not ended */
    f64 *unit_end, *sum;   /* [U] */
    i32 *stamp, *holder;   /* [P] */
    struct event *event;
    i32 nevent;
    i32 *dirty, ndirty; /* devices that may be able to start a node */
    bool *is_dirty;     /* [P] */
    i32 *rank_device;   /* [nrank] first device: stands for the rank's links */
    struct line *line;  /* open hash table */
    u32 run, mask;
    f64 makespan;
    i32 copies;
};

err sim_new(struct problem *p) {
    struct sim *s;
    ARENA_NEW(&p->arena, s, 1);
    ARENA_NEW(&p->arena, s->start, p->n);
    ARENA_NEW(&p->arena, s->end, p->n);
    ARENA_NEW(&p->arena, s->ready, p->n);
    ARENA_NEW(&p->arena, s->wait, p->n);
    ARENA_NEW(&p->arena, s->wait0, p->n);
    ARENA_NEW(&p->arena, s->is_ready, p->n);
    ARENA_NEW(&p->arena, s->started, p->n);
    ARENA_NEW(&p->arena, s->seg, p->P + 1);
    for (i32 i = 0; i < 2; i++) {
        ARENA_NEW(&p->arena, s->heap[i].node, p->n);
        ARENA_NEW(&p->arena, s->heap[i].count, p->P);
    }
    ARENA_NEW(&p->arena, s->next, p->P);
    ARENA_NEW(&p->arena, s->running, p->P);
    ARENA_NEW(&p->arena, s->memory, p->P);
    ARENA_NEW(&p->arena, s->peak, p->P);
    ARENA_NEW(&p->arena, s->left, p->G);
    ARENA_NEW(&p->arena, s->unit_end, p->U);
    ARENA_NEW(&p->arena, s->sum, p->U);
    ARENA_NEW(&p->arena, s->stamp, p->P);
    ARENA_NEW(&p->arena, s->holder, p->P);
    ARENA_NEW(&p->arena, s->event, p->n);
    ARENA_NEW(&p->arena, s->dirty, p->P);
    ARENA_NEW(&p->arena, s->is_dirty, p->P);
    ARENA_NEW(&p->arena, s->rank_device, p->m->nrank);
    for (i32 x = 0; x < p->n; x++) s->wait0[x] = p->pred0[x + 1] - p->pred0[x];
    for (i32 d = p->P - 1; d >= 0; d--) s->rank_device[p->m->device[d].rank] = d;
    i64 lines = 16; /* at most half full: a line is used by an edge, and there are P * P */
    while (lines < 2 * lmin(p->g->nedge, (i64)p->P * p->P)) lines *= 2;
    ARENA_NEW(&p->arena, s->line, lines);
    s->mask = (u32)(lines - 1);
    p->sim = s;
    return 0;
}

const f64 *sim_start(const struct problem *p) { return p->sim->start; }
const f64 *sim_end(const struct problem *p) { return p->sim->end; }
const i64 *sim_peak(const struct problem *p) { return p->sim->peak; }
const i32 *sim_started(const struct problem *p) { return p->sim->started; }
f64 sim_makespan(const struct problem *p) { return p->sim->makespan; }
i32 sim_copies(const struct problem *p) { return p->sim->copies; }

/* --- heaps
 * ---------------------------------------------------------------------------------------------------------------------- */

static inline bool event_before(struct event a, struct event b) {
    return a.time < b.time || (a.time == b.time && a.node < b.node);
}

static void event_push(struct sim *s, f64 time, i32 node) {
    const struct event e = {time, node};
    i32 i = s->nevent++;
    for (; i > 0 && event_before(e, s->event[(i - 1) / 2]); i = (i - 1) / 2) s->event[i] = s->event[(i - 1) / 2];
    s->event[i] = e;
}

static struct event event_pop(struct sim *s) {
    const struct event top = s->event[0], e = s->event[--s->nevent];
    i32 i = 0;
    for (i32 k = 1; k < s->nevent; i = k, k = 2 * k + 1) {
        if (k + 1 < s->nevent && event_before(s->event[k + 1], s->event[k])) k++;
        if (!event_before(s->event[k], e)) break;
        s->event[i] = s->event[k];
    }
    s->event[i] = e;
    return top;
}

static inline bool node_before(const struct sim *s, i32 a, i32 b) {
    return s->priority[a] > s->priority[b] || (s->priority[a] == s->priority[b] && a < b);
}

static void ready_push(struct sim *s, struct heap *h, i32 d, i32 x) {
    i32 *heap = h->node + s->seg[d], i = h->count[d]++;
    for (; i > 0 && node_before(s, x, heap[(i - 1) / 2]); i = (i - 1) / 2) heap[i] = heap[(i - 1) / 2];
    heap[i] = x;
}

static i32 ready_pop(struct sim *s, struct heap *h, i32 d) {
    i32 *heap = h->node + s->seg[d], n = --h->count[d], i = 0;
    const i32 top = heap[0], x = heap[n];
    for (i32 k = 1; k < n; i = k, k = 2 * k + 1) {
        if (k + 1 < n && node_before(s, heap[k + 1], heap[k])) k++;
        if (!node_before(s, heap[k], x)) break;
        heap[i] = heap[k];
    }
    heap[i] = x;
    return top;
}

static inline i32 ready_top(const struct sim *s, const struct heap *h, i32 d) {
    return h->count[d] > 0 ? h->node[s->seg[d]] : -1;
}

/* --- links
 * ---------------------------------------------------------------------------------------------------------------------- */

/* When a transfer that may start at `time` ends. */
static f64 transfer_end(struct problem *p, i32 a, i32 b, i64 bytes, f64 time) {
    struct sim *s = p->sim;
    const f64 seconds = problem_transfer(p, a, b, bytes);
    if (p->o.no_contention || seconds == 0) return time + seconds;
    const i32 from = p->m->device[a].rank, to = p->m->device[b].rank;
    const i64 key = from == to ? (i64)a * p->P + b : (i64)s->rank_device[from] * p->P + s->rank_device[to];
    u32 at = (u32)(((u64)key * 0x9e3779b97f4a7c15ull) >> 32) & s->mask;
    while (s->line[at].stamp == s->run && s->line[at].key != key) at = (at + 1) & s->mask;
    struct line *l = &s->line[at];
    if (l->stamp != s->run) *l = (struct line){key, 0, s->run};
    l->free = dmax(l->free, time) + seconds;
    return l->free;
}

/* --- a run
 * ---------------------------------------------------------------------------------------------------------------------- */

static inline void touch(struct sim *s, i32 d) {
    if (s->is_dirty[d]) return;
    s->is_dirty[d] = true;
    s->dirty[s->ndirty++] = d;
}

static void make_ready(struct problem *p, i32 x) {
    struct sim *s = p->sim;
    const i32 d = s->device[p->group[x]];
    if (s->priority)
        ready_push(s, &s->heap[p->limited && p->g->node[x].memory > 0], d, x);
    else
        s->is_ready[x] = true;
    touch(s, d);
}

static void end_node(struct problem *p, i32 x, f64 time) {
    struct sim *s = p->sim;
    const i32 k = p->group[x], d = s->device[k];
    s->running[d] = -1;
    touch(s, d);
    if (--s->left[k] == 0) s->memory[d] -= p->group_memory[k];
    s->unit_end[p->unit[x]] = time;
    for (i32 i = p->succ0[x]; i < p->succ0[x + 1]; i++) {
        const i32 y = p->succ[i].node, to = s->device[p->group[y]];
        const f64 there = to == d ? time : transfer_end(p, d, to, p->succ[i].bytes, time);
        s->ready[y] = dmax(s->ready[y], there);
        if (--s->wait[y] > 0) continue;
        if (s->ready[y] <= time)
            make_ready(p, y);
        else
            event_push(s, s->ready[y], y);
    }
}

static bool has_room(const struct problem *p, i32 d, i32 x) {
    const i64 limit = p->m->device[d].memory, more = p->g->node[x].memory;
    return limit == 0 || more == 0 || p->sim->memory[d] + more <= limit;
}

/* The node that device d starts now, or -1.  A node that lacks memory waits, and those that need memory wait behind it. */
static i32 pick(struct problem *p, i32 d, bool force) {
    struct sim *s = p->sim;
    if (!s->priority) {
        if (s->next[d] == s->first[d + 1] || !s->is_ready[s->order[s->next[d]]]) return -1;
        return s->order[s->next[d]++];
    }
    const i32 needs_none = ready_top(s, &s->heap[0], d), needs = ready_top(s, &s->heap[1], d);
    const bool second = needs >= 0 && (needs_none < 0 || node_before(s, needs, needs_none)) && (force || has_room(p, d, needs));
    if (needs_none < 0 && !second) return -1;
    return ready_pop(s, &s->heap[second], d);
}

static void dispatch(struct problem *p, f64 now, bool force) {
    struct sim *s = p->sim;
    for (i32 i = 0; i < s->ndirty; i++) {
        const i32 d = s->dirty[i];
        s->is_dirty[d] = false;
        if (s->running[d] >= 0) continue;
        const i32 x = pick(p, d, force);
        if (x < 0) continue;
        force = false;
        s->running[d] = x;
        s->started[s->nstarted++] = x;
        s->memory[d] += p->g->node[x].memory;
        if (s->memory[d] > s->peak[d]) s->peak[d] = s->memory[d];
        s->start[x] = now;
        s->end[x] = now + problem_seconds(p, x, d);
        event_push(s, s->end[x], x - p->n);
    }
    s->ndirty = 0;
}

/* Copies of weights: their memory, and the time of their sums. */
static void hold_units(struct problem *p) {
    struct sim *s = p->sim;
    s->copies = 0;
    memset(s->stamp, 0, (size_t)p->P * sizeof *s->stamp);
    for (i32 u = 0; u < p->U; u++) {
        i32 n = 0;
        for (i32 i = p->held0[u]; i < p->held0[u + 1]; i++) {
            const i32 d = s->device[p->held[i]];
            if (s->stamp[d] == u + 1) continue;
            s->stamp[d] = u + 1;
            s->holder[n++] = d;
            s->memory[d] += p->g->unit[u].memory;
        }
        s->sum[u] = problem_sum(p, u, s->holder, n);
        s->copies += imax(n - 1, 0);
    }
}

static void reset(struct problem *p) {
    struct sim *s = p->sim;
    memcpy(s->wait, s->wait0, (size_t)p->n * sizeof *s->wait);
    memset(s->ready, 0, (size_t)p->n * sizeof *s->ready);
    for (i32 i = 0; i < 2; i++) memset(s->heap[i].count, 0, (size_t)p->P * sizeof(i32));
    memset(s->memory, 0, (size_t)p->P * sizeof *s->memory);
    memset(s->unit_end, 0, (size_t)p->U * sizeof *s->unit_end);
    for (i32 k = 0; k < p->G; k++) s->left[k] = p->node0[k + 1] - p->node0[k];
    for (i32 d = 0; d < p->P; d++) s->running[d] = -1;
    s->nevent = s->ndirty = s->nstarted = 0;
    s->run++;
    p->simulated++;
    if (!s->priority) {
        memset(s->is_ready, 0, (size_t)p->n * sizeof *s->is_ready);
        memcpy(s->next, s->first, (size_t)p->P * sizeof *s->next);
        return;
    }
    memset(s->seg, 0, (size_t)(p->P + 1) * sizeof *s->seg);
    for (i32 k = 0; k < p->G; k++) s->seg[s->device[k] + 1] += s->left[k];
    for (i32 d = 0; d < p->P; d++) s->seg[d + 1] += s->seg[d];
}

/* False: nodes of a fixed order wait for each other. */
static bool simulate(struct problem *p) {
    struct sim *s = p->sim;
    reset(p);
    hold_units(p);
    memcpy(s->peak, s->memory, (size_t)p->P * sizeof *s->peak);
    for (i32 x = 0; x < p->n; x++)
        if (s->wait[x] == 0) make_ready(p, x);
    f64 now = 0;
    dispatch(p, now, false);
    while (s->nstarted < p->n || s->nevent > 0) {
        if (s->nevent == 0) { /* all that is ready lacks memory: start one of them in spite of it */
            if (!s->priority) return false;
            for (i32 d = 0; d < p->P; d++)
                if (s->heap[1].count[d] > 0) touch(s, d);
            dispatch(p, now, true);
            continue;
        }
        const f64 until = s->event[0].time * (1 + SAME_TIME);
        while (s->nevent > 0 && s->event[0].time <= until) {
            const struct event e = event_pop(s);
            now = e.time;
            if (e.node >= 0)
                make_ready(p, e.node);
            else
                end_node(p, e.node + p->n, now);
        }
        dispatch(p, now, false);
    }
    s->makespan = now;
    for (i32 u = 0; u < p->U; u++) s->makespan = dmax(s->makespan, s->unit_end[u] + s->sum[u]);
    return true;
}

static i64 most_over(const struct problem *p) {
    i64 most = INT64_MIN;
    for (i32 d = 0; d < p->P; d++)
        if (p->m->device[d].memory > 0) most = lmax(most, p->sim->peak[d] - p->m->device[d].memory);
    return most;
}

void sim_trial(struct problem *p, struct trial *t) {
    p->sim->device = t->device;
    p->sim->priority = t->priority;
    simulate(p);
    t->makespan = p->sim->makespan;
    t->over = p->limited ? most_over(p) : INT64_MIN;
}

/* Takes the better of the trial's order and another one. */
static void try_order(struct problem *p, struct trial *t, f64 *priority) {
    struct trial other = *t;
    other.priority = priority;
    sim_trial(p, &other);
    if (!trial_better(&other, t)) return;
    other.priority = t->priority;
    memcpy(t->priority, priority, (size_t)p->n * sizeof *priority);
    *t = other;
}

void sim_trial_or(struct problem *p, struct trial *t, f64 *start) {
    for (i32 x = 0; x < p->n; x++) start[x] = -start[x];
    sim_trial(p, t);
    try_order(p, t, start);
}

void sim_trial_columns(struct problem *p, struct trial *t) {
    memcpy(t->priority, p->rank, (size_t)p->n * sizeof *t->priority);
    sim_trial(p, t);
    try_order(p, t, p->by_column);
}

bool sim_order(struct problem *p, const i32 *device, const i32 *order, const i32 *first) {
    struct sim *s = p->sim;
    s->device = device;
    s->priority = NULL;
    s->order = order;
    s->first = first;
    return simulate(p);
}
