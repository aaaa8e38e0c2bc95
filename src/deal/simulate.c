/* simulate.c - the event loop: lanes that ask the dealer for pieces, and the resources of a device that they share. */
#include "deal/simulate.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/rng.h"

struct line {
    bool on, waits;
    struct deal_piece piece;
    f64 begin;
};

struct event {
    f64 time;
    i32 line; /* >= 0: a piece ends; < 0: device -1 - line is lost */
    i64 id;
};

struct box {
    f64 link_free, kernel_free[DEAL_LANES];
    f64 busy;
    i64 rows; /* in flight */
    i32 pieces;
    bool lost;
};

struct sim {
    const struct deal_case *c;
    struct dealer *d;
    struct line *line; /* [n * DEAL_LANES] */
    struct box *box;   /* [n] */
    struct event *event;
    i64 nevent;
    f64 now, end;
    u64 draws;
    i64 pieces, refused;
    struct arena arena;
};

/* --- events in order of time, then of line --- */

static bool before(struct event a, struct event b) { return a.time < b.time || (a.time <= b.time && a.line < b.line); }

static void push(struct sim *s, struct event e) {
    i64 i = s->nevent++;
    for (; i > 0 && before(e, s->event[(i - 1) / 2]); i = (i - 1) / 2) s->event[i] = s->event[(i - 1) / 2];
    s->event[i] = e;
}

static struct event pop(struct sim *s) {
    const struct event top = s->event[0], e = s->event[--s->nevent];
    i64 i = 0;
    for (i64 k = 1; k < s->nevent; i = k, k = 2 * k + 1) {
        if (k + 1 < s->nevent && before(s->event[k + 1], s->event[k])) k++;
        if (!before(s->event[k], e)) break;
        s->event[i] = s->event[k];
    }
    s->event[i] = e;
    return top;
}

/* --- a piece on a device --- */

/* When `cost` that starts at `at` ends, with the rate before and after the device slows down. */
static f64 compute_end(const struct deal_truth *t, f64 at, f64 cost) {
    const f64 rate = t->rate / (t->kernels > 1 ? t->kernels : 1);
    if (t->slow_at <= 0 || t->slow_by <= 0) return at + cost / rate;
    if (at >= t->slow_at) return at + cost * t->slow_by / rate;
    const f64 first = (t->slow_at - at) * rate;
    return cost <= first ? at + cost / rate : t->slow_at + (cost - first) * t->slow_by / rate;
}

static f64 *free_kernel(struct box *b, const struct deal_truth *t) {
    f64 *best = b->kernel_free;
    for (i32 k = 1; k < t->kernels && k < DEAL_LANES; k++)
        if (b->kernel_free[k] < *best) best = &b->kernel_free[k];
    return best;
}

static f64 piece_end(struct sim *s, i32 device, const struct deal_piece *p) {
    const struct deal_truth *t = &s->c->truth[device];
    struct box *b = &s->box[device];
    f64 at = s->now + t->overhead_s, factor = 1;
    if (t->bytes_per_s > 0 && !p->resident) {
        at = dmax(at, b->link_free) + (f64)(p->hi - p->lo) * (f64)s->c->work.row_bytes / t->bytes_per_s;
        b->link_free = at;
    }
    if (s->c->noise > 0) factor = dmax(0.2, 1 + s->c->noise * rng_normal(s->c->seed, RNG_TEST, 5, s->draws++));
    f64 *kernel = free_kernel(b, t);
    const f64 start = dmax(at, *kernel);
    *kernel = compute_end(t, start, p->cost * factor * (1 + t->crowd * b->pieces));
    b->busy += *kernel - start + t->overhead_s;
    return *kernel;
}

static bool memory_fits(const struct sim *s, i32 device, i64 rows) {
    const i64 limit = s->c->truth[device].memory;
    return limit <= 0 || 2 * (s->box[device].rows + rows) * s->c->work.row_bytes <= limit;
}

/* Asks for a lane until it has a piece that fits, or none.  A refusal may put spans back that idle lanes want: *again. */
static int start(struct sim *s, i32 index, bool *again) {
    struct line *l = &s->line[index];
    const i32 device = index / DEAL_LANES, lane = index % DEAL_LANES;
    struct box *b = &s->box[device];
    for (;;) {
        const int got = deal_next(s->d, device, lane, &l->piece);
        if (got != DEAL_PIECE) return got;
        if (memory_fits(s, device, l->piece.hi - l->piece.lo)) break;
        s->refused++;
        *again = true;
        deal_refused(s->d, device, lane, &l->piece);
    }
    l->on = true;
    l->begin = s->now;
    push(s, (struct event){piece_end(s, device, &l->piece), index, l->piece.id});
    b->rows += l->piece.hi - l->piece.lo;
    b->pieces++;
    s->pieces++;
    return DEAL_PIECE;
}

static err start_idle(struct sim *s) {
    bool again = true;
    while (again) {
        again = false;
        for (i32 i = 0; i < s->c->n; i++) {
            const i32 most = imax(1, s->c->belief[i].lanes_most);
            for (i32 lane = 0; lane < most && !s->box[i].lost; lane++)
                if (!s->line[i * DEAL_LANES + lane].on) TRY(start(s, i * DEAL_LANES + lane, &again));
        }
    }
    return 0;
}

/* --- a round --- */

static void lose(struct sim *s, i32 device) {
    if (s->box[device].lost) return;
    s->box[device].lost = true;
    deal_lost(s->d, device);
}

static void finish_piece(struct sim *s, struct event e) {
    struct line *l = &s->line[e.line];
    struct box *b = &s->box[e.line / DEAL_LANES];
    l->on = false;
    b->rows -= l->piece.hi - l->piece.lo;
    b->pieces--;
    if (deal_done(s->d, e.line / DEAL_LANES, e.line % DEAL_LANES, &l->piece, s->now - l->begin, s->now)) s->end = s->now;
}

static err round_run(struct sim *s) {
    TRY(start_idle(s));
    while (s->nevent > 0 && deal_state(s->d) == DEAL_RUNNING) {
        const struct event e = pop(s);
        s->now = e.time;
        if (e.line < 0)
            lose(s, -1 - e.line);
        else
            finish_piece(s, e);
        if (s->nevent > 0 && s->event[0].time <= s->now) continue; /* all that ends now, then all that is idle */
        TRY(start_idle(s));
    }
    if (deal_state(s->d) != DEAL_FINISHED) return FAIL(E831, "no device is left for the work");
    return 0;
}

static err sim_new(struct sim *s, const struct deal_case *c, const char *policy) {
    ARENA_NEW(&s->arena, s->line, (i64)c->n * DEAL_LANES);
    ARENA_NEW(&s->arena, s->box, c->n);
    ARENA_NEW(&s->arena, s->event, (i64)c->n * (DEAL_LANES + 1));
    TRY(deal_new(c->belief, c->n, &c->work, policy, &s->d));
    for (i32 i = 0; i < c->n; i++)
        if (c->truth[i].lost_at > 0) push(s, (struct event){c->truth[i].lost_at, -1 - i, 0});
    return 0;
}

/* The second in which all devices together have done the work, if it divides anywhere. */
static f64 ideal(const struct deal_case *c) {
    f64 work = 0, low = 0, high = 1;
    for (i32 i = 0; i < c->work.nparts; i++) work += (f64)c->work.part[i].rows * c->work.part[i].cost;
    for (i32 step = 0; step < 300; step++) {
        const f64 at = step < 100 ? high : (low + high) / 2;
        f64 done = 0;
        for (i32 i = 0; i < c->n; i++) {
            const struct deal_truth *t = &c->truth[i];
            const f64 until = t->lost_at > 0 ? dmin(at, t->lost_at) : at;
            const f64 fast = t->slow_at > 0 && t->slow_by > 0 ? dmin(until, t->slow_at) : until;
            done += t->rate * (fast + (until - fast) / (t->slow_by > 0 ? t->slow_by : 1));
        }
        if (step < 100 && done < work) low = high, high *= 2;
        else if (step >= 100 && done < work) low = at;
        else if (step >= 100) high = at;
    }
    return high;
}

static err rounds_run(struct sim *s, struct deal_result *out) {
    f64 begin = 0;
    for (i32 r = 0; r < imax(1, s->c->rounds); r++) {
        if (r > 0) TRY(deal_again(s->d, &out->moved));
        begin = s->now;
        s->pieces = s->refused = 0;
        for (i32 i = 0; i < s->c->n; i++) s->box[i].busy = 0;
        TRY(round_run(s));
    }
    out->makespan = s->end - begin;
    return 0;
}

err deal_simulate(const struct deal_case *c, const char *policy, struct deal_result *out) {
    struct sim s = {.c = c};
    f64 sum = 0, most = 0;
    *out = (struct deal_result){0};
    err e = sim_new(&s, c, policy);
    if (e == 0) e = rounds_run(&s, out);
    if (e == 0) {
        for (i32 i = 0; i < c->n; i++) sum += s.box[i].busy, most = dmax(most, s.box[i].busy);
        out->ideal = ideal(c);
        out->balance = sum > 0 ? most * c->n / sum : 1;
        out->pieces = s.pieces;
        out->refused = s.refused;
        deal_report(s.d, 0, &out->first);
    }
    deal_free(s.d);
    arena_free(&s.arena);
    return e;
}
