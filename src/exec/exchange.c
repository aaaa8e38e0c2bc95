/* exchange.c - the messages of a step, sent and awaited by the agent of this rank while its workers compute; where ranks share
 * memory by the workers themselves, between two tasks and while they wait (comm_direct).
 *
 *     lanes   | fwd | bwd | merge 0 4 .. waits for grad.4 ..|            | update | .. next step waits for theta
 *     agent   | grad.4 of rank 1 awaited ------------- here |  norm, loss ------> |  theta: own range out, others' in
 *
 * The list is the plan's (plan/exchange.h).  A message goes out when the lanes have done the task that wrote it, and may come in
 * when they have done everything before that task that looks at the same range.  Messages of a pair of ranks go in the order of
 * the list. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/backoff.h"
#include "comm/comm.h"
#include "exec/bound.h"

/* Of the agent in a step, about, while workers compute: where something of ours is on its way out, and where nothing is. */
enum { LOOKS = 80, FEW_LOOKS = 40 };
enum { MOST_BYTES = 1 << 22 }; /* of a message: a large one would hold up what is urgent behind it */
_Static_assert(MOST_BYTES <= LINES_MOST * LANES * 4, "lines of a message are counted in 16 bits");

/* ------------------------------------------------------------------ binding ------------------------------------------------- */

bool exec_is_ours(const struct exec *x, const struct task *t) {
    return !x->comm || t->everywhere || x->plan->place[t->device].rank == comm_rank(x->comm);
}

/* What another rank's device does there, and all ranks do for themselves, is done here by whoever has that number. */
u32 exec_lane_of(const struct exec *x, const struct task *t) {
    if (late_has(x, t)) return x->nlane;
    u32 device = t->device;
    return (device >= x->device0 ? device - x->device0 : device) % x->nlane;
}

const struct task *exec_team(const struct exec *x, const struct task *t, i32 *n) {
    const struct task *first = t - t->member, *end = first + imax(1, t->members);
    while (!exec_is_ours(x, first)) first++;
    for (*n = 0; first + *n < end && exec_is_ours(x, first + *n);) (*n)++;
    return first;
}

void exec_rows(const struct exec *x, i32 *b0, i32 *b1) {
    const struct plan *p = x->plan;
    *b0 = p->B;
    *b1 = 0;
    for (u32 i = 0; i < p->ntask; i++) {
        const struct task *t = &p->task[i];
        if ((t->kind != TASK_FWD && t->kind != TASK_BWD) || !exec_is_ours(x, t)) continue;
        *b0 = imin(*b0, t->box.b0);
        *b1 = imax(*b1, t->box.b1);
    }
    *b0 = imin(*b0, *b1);
}

static void *place_of(const struct exec *x, const struct plan_message *m, i64 lo, i64 *size) {
    const struct pbuf *b = &x->plan->buf[m->buf];
    *size = b->kind == PBUF_NORM || b->kind == PBUF_LOSS ? 8 : 4;
    switch (b->kind) {
        case PBUF_GRAD:
            return x->sums.of.grad + b->index * netplan(x->plan)->ntheta + lo;
        case PBUF_THETA:
            return (late_theta(x) ? late_theta(x) : x->store->theta) + lo;
        case PBUF_STATE:
            return x->store->state[b->index] + lo;
        case PBUF_NORM:
            return x->norm + lo;
        default:
            return x->sums.loss + lo;
    }
}

static void name_of(const struct exec *x, const struct plan_message *m, char *out) {
    const struct pbuf *b = &x->plan->buf[m->buf];
    const char *what = b->kind == PBUF_GRAD ? "grad" : b->kind == PBUF_THETA ? "theta" : b->kind == PBUF_STATE ? "state" :
                       b->kind == PBUF_NORM ? "norm" : "loss";
    snprintf(out, COMM_NAME, b->kind == PBUF_GRAD || b->kind == PBUF_STATE ? "%s.%d" : "%s", what, b->index);
}

bool exchange_touches(const struct exec *x, u32 task, const struct plan_message *m, bool writing) {
    const struct task *t = &x->plan->task[task];
    for (u32 k = t->use0; k < t->use0 + t->nuse; k++) {
        const struct use *u = &x->plan->use[k];
        bool writes = u->mode != USE_R && u->mode != USE_STALE;
        if (u->buf == m->buf && u->lo < m->hi && u->hi > m->lo && (writes || !writing)) return true;
    }
    return false;
}

/* What lanes must have done before the link may go: of each lane the last item that matters. */
static err ready_of(struct exec *x, struct link *l, const struct plan_message *m, const u32 *place) {
    u32 *need;
    ARENA_NEW(&x->arena, need, x->nlist);
    for (u32 i = 0; i <= m->after && i < x->plan->ntask; i++) {
        if (!exec_is_ours(x, &x->plan->task[i])) continue;
        bool matters = l->m.sends ? i == m->after : i < m->after && exchange_touches(x, i, m, false);
        u32 lane = exec_lane_of(x, &x->plan->task[i]);
        if (matters && place[i] + 1 > need[lane]) need[lane] = place[i] + 1;
    }
    ARENA_NEW(&x->arena, l->ready, x->nlist);
    for (u32 w = 0; w < x->nlist; w++)
        if (need[w] > 0) l->ready[l->nready++] = (struct wait){w, need[w]};
    return 0;
}

static i64 whole_bytes(const struct exec *x, const struct plan_message *m) {
    i64 size;
    place_of(x, m, m->lo, &size);
    return (m->hi - m->lo) * size;
}

static err make_packed(struct exec *x, struct link *l) {
    if (!l->plan.sparse) return 0;
    const i64 n = (l->plan.hi - l->plan.lo) / LANES;
    ARENA_NEW(&x->arena, l->packed, lines_bytes(n, n));
    l->m.data = l->packed;
    l->m.fewer = !l->m.sends;
    return 0;
}

static err add(struct exec *x, const struct plan_message *m, u32 number, i64 lo, i64 hi, const u32 *place) {
    struct link *l = &x->link[x->nlink++];
    i64 size;
    l->plan = *m;
    l->plan.lo = lo;
    l->plan.hi = hi;
    l->trails = trail_has(x, m);
    l->m.sends = m->from == comm_rank(x->comm);
    l->m.peer = l->m.sends ? m->to : m->from;
    l->m.data = place_of(x, m, lo, &size);
    l->m.head = (struct comm_head){.number = number, .bytes = (u32)((hi - lo) * size)};
    name_of(x, m, l->m.head.name);
    TRY(make_packed(x, l));
    return ready_of(x, l, &l->plan, place);
}

/* Longer ranges in parts; counted alike by both sides. */
static i64 step_of(const struct exec *x, const struct plan_message *m) {
    i64 size;
    place_of(x, m, m->lo, &size);
    return MOST_BYTES / size;
}

static err make_links(struct exec *x, const u32 *place) {
    struct plan_message *all;
    u32 n, number = 0;
    i64 most = 0;
    TRY(plan_exchange(x->plan, &x->arena, &all, &n));
    for (u32 i = 0; i < n; i++) most += (all[i].hi - all[i].lo + step_of(x, &all[i]) - 1) / step_of(x, &all[i]);
    ARENA_NEW(&x->arena, x->link, most + 1);
    ARENA_NEW(&x->arena, x->pair_waits, 2 * comm_size(x->comm));
    ARENA_NEW(&x->arena, x->why, 1);
    for (u32 i = 0; i < n; i++) {
        const struct plan_message *m = &all[i];
        bool here = m->from == comm_rank(x->comm) || m->to == comm_rank(x->comm);
        for (i64 lo = m->lo; lo < m->hi; lo += step_of(x, m), number++)
            if (here) TRY(add(x, m, number, lo, lmin(m->hi, lo + step_of(x, m)), place));
    }
    return 0;
}

/* Where updates are made by all, the first of them waits for all that comes in this step: then none of them can fail. */
static bool holds(const struct exec *x, const struct link *l, const struct item *it) {
    if (l->trails || l->plan.when != MESSAGE_STEP) return false;
    if (netplan(x->plan)->whole && x->plan->task[it->task].kind == TASK_UPDATE && !l->m.sends) return true;
    return l->plan.after < it->task && exchange_touches(x, it->task, &l->plan, l->m.sends);
}

/* Links that an item waits for: what it looks at is on its way in, or what it writes is on its way out. */
static err item_links(struct exec *x, struct item *it) {
    for (i32 pass = 0; pass < 2; pass++) {
        u32 n = 0, before = 0;
        for (u32 k = 0; k < x->nlink; k++) {
            const struct link *l = &x->link[k];
            if (trail_holds(x, l, it->task)) {
                if (pass) it->before[before] = k;
                before++;
            }
            if (!holds(x, l, it)) continue;
            if (pass) it->link[n] = k;
            n++;
        }
        it->nlink = n;
        it->nbefore = before;
        if (n == 0 && before == 0) return 0;
        if (pass == 0) ARENA_NEW(&x->arena, it->link, n + 1);
        if (pass == 0) ARENA_NEW(&x->arena, it->before, before + 1);
    }
    return 0;
}

/* Items that make a message ready: the agent is told. */
static void mark_senders(struct exec *x) {
    for (u32 k = 0; k < x->nlink; k++)
        for (u32 i = 0; i < x->link[k].nready && x->link[k].m.sends; i++) {
            const struct wait *w = &x->link[k].ready[i];
            x->lane[w->lane].item[w->count - 1].sends = true;
        }
}

err exchange_bind(struct exec *x, const u32 *place) {
    if (!x->comm) return 0;
    TRY(make_links(x, place));
    for (u32 w = 0; w < x->nlist; w++)
        for (u32 i = 0; i < x->lane[w].n; i++) TRY(item_links(x, &x->lane[w].item[i]));
    mark_senders(x);
    return 0;
}

void exchange_aim(struct exec *x) {
    i64 size;
    for (u32 k = 0; k < x->nlink; k++) {
        struct link *l = &x->link[k];
        if (!l->packed) l->m.data = place_of(x, &l->plan, l->plan.lo, &size);
    }
}

/* ------------------------------------------------------------------ inside a task ------------------------------------------- */

bool exchange_round(void *exec, struct comm_message *m, i32 n) {
    struct exec *x = exec;
    if (n == 0) return !atomic_load(&x->broken);
    x->round.m = m;
    x->round.n = n;
    atomic_store_explicit(&x->round.state, ROUND_ASKED, memory_order_release);
    for (struct backoff r = {0}; atomic_load_explicit(&x->round.state, memory_order_acquire) != ROUND_DONE;) {
        if (atomic_load_explicit(&x->broken, memory_order_acquire)) return false;
        if (!x->direct || !exchange_turn(x, true)) backoff_pause(&r);
    }
    atomic_store_explicit(&x->round.state, ROUND_NONE, memory_order_relaxed);
    return true;
}

/* The agent's side: one look at all of them. */
static err look_at_round(struct exec *x, bool *moved, const struct comm_message **waiting) {
    struct round *r = &x->round;
    if (atomic_load_explicit(&r->state, memory_order_acquire) != ROUND_ASKED) return 0;
    TRY(comm_poll(x->comm, r->m, r->n, moved, waiting));
    if (!*waiting) atomic_store_explicit(&r->state, ROUND_DONE, memory_order_release);
    return 0;
}

/* ------------------------------------------------------------------ running ------------------------------------------------- */

static bool in_this_step(const struct exec *x, const struct link *l) {
    if (l->trails) return false;
    return l->plan.when == MESSAGE_STEP || (l->plan.when == MESSAGE_KEEP && x->sums.accumulate);
}

static bool computes(const struct exec *x) {
    for (u32 w = 0; w < x->nlane; w++) {
        const struct lane *l = &x->lane[w];
        if (atomic_load_explicit(&l->done, memory_order_acquire) < (x->serial << 32 | l->ncompute)) return true;
    }
    return false;
}

static bool is_ready(const struct exec *x, const struct link *l) {
    if (x->pipe == PIPE_LINEAR && computes(x)) return false;
    for (u32 k = 0; k < l->nready; k++) {
        u64 want = x->sums.serial << 32 | l->ready[k].count;
        if (atomic_load_explicit(&x->lane[l->ready[k].lane].done, memory_order_acquire) < want) return false;
    }
    return true;
}

/* The lines of a link: those of the step that x->sums says. */
static struct grads lines_of(const struct exec *x, const struct link *l, i64 *n) {
    const i64 at = x->plan->buf[l->plan.buf].index * netplan(x->plan)->ntheta + l->plan.lo;
    *n = (l->plan.hi - l->plan.lo) / LANES;
    return (struct grads){x->sums.of.grad + at, x->sums.of.touched + at / LANES};
}

static void pack(struct exec *x, struct link *l) {
    i64 n;
    const struct grads g = lines_of(x, l, &n);
    l->m.head.bytes = l->m.sends ? touched_pack(n, g.grad, g.touched, l->packed) : (u32)lines_bytes(n, n);
}

static err unpack(struct exec *x, struct link *l) {
    i64 n;
    const struct grads g = lines_of(x, l, &n);
    if (touched_unpack(n, g.grad, g.touched, l->packed, l->m.head.bytes)) return 0;
    return FAIL_AT(E804, NULL, "the same program, options and data on every rank",
                   "rank %d sent sparse rows of %s in an unknown format", l->m.peer, l->m.head.name);
}

static void account(struct exec *x, const struct link *l) {
    const i64 whole = whole_bytes(x, &l->plan);
    x->sent.bytes += l->m.head.bytes;
    x->sent.whole += whole;
    if (!l->packed) return;
    x->sent.lines += l->m.head.bytes;
    x->sent.lines_whole += whole;
}

err exchange_move(struct exec *x, struct link *l, u64 serial, bool *moved) {
    bool done;
    if (!l->m.started) {
        l->m.head.serial = serial;
        if (l->packed) pack(x, l);
        if (l->m.sends && l->plan.when != MESSAGE_GATHER) account(x, l);
        TRY(comm_post(x->comm, &l->m));
        *moved = true;
    }
    TRY(comm_test(x->comm, &l->m, &done));
    *moved = *moved || done || l->m.moved;
    l->m.moved = false;
    if (!done) return 0;
    if (l->packed && !l->m.sends) TRY(unpack(x, l));
    atomic_store_explicit(&l->arrived, serial, memory_order_release);
    wakeup_signal(&x->bell);
    return 0;
}

/* One look at a link that is not done. */
static err look(struct exec *x, struct link *l, bool gathering, bool *moved) {
    bool *held = &x->pair_waits[2 * l->m.peer + l->m.sends];
    if (!l->m.started && (*held || (!gathering && !is_ready(x, l)))) {
        *held = true; /* those behind it keep their places */
        return 0;
    }
    return exchange_move(x, l, x->sums.serial, moved);
}

static bool is_done(const struct exec *x, const struct lane *l) {
    return l->n == 0 || atomic_load_explicit(&l->done, memory_order_acquire) == (x->serial << 32 | l->n);
}

/* While workers compute nobody is late: they would have to wait for themselves. */
static bool at_work(const struct exec *x) {
    for (u32 w = 0; w < x->nlane; w++)
        if (!is_done(x, &x->lane[w]) && !atomic_load_explicit(&x->lane[w].waits, memory_order_relaxed)) return true;
    return false;
}

/* A worker may still come with messages of a round. */
static bool may_ask(const struct exec *x) {
    for (u32 w = 0; w < x->nlane && x->rounds; w++)
        if (!is_done(x, &x->lane[w])) return true;
    return false;
}

static void begin(struct exec *x) {
    for (u32 k = 0; k < x->nlink; k++)
        if (!x->link[k].trails) x->link[k].m.started = x->link[k].m.done = false;
}

/* What one look at all messages has found. */
struct found {
    bool moved;
    u32 left;
    const struct comm_message *waiting; /* nobody here is at work, and this one is not done */
};

static err look_at_all(struct exec *x, bool gathering, struct found *f) {
    const struct comm_message *asked = NULL;
    *f = (struct found){0};
    f->left = gathering ? 0 : may_ask(x) + late_some(x, &f->moved);
    TRY(trail_some(x, &f->moved, &f->left, &f->waiting));
    TRY(look_at_round(x, &f->moved, &asked));
    memset(x->pair_waits, 0, 2 * (size_t)comm_size(x->comm) * sizeof *x->pair_waits);
    for (u32 k = 0; k < x->nlink; k++) {
        struct link *l = &x->link[k];
        if (gathering ? l->plan.when != MESSAGE_GATHER : !in_this_step(x, l)) continue;
        if (!l->m.done) TRY(look(x, l, gathering, &f->moved));
        f->left += !l->m.done;
        if (!l->m.done && l->m.started && !f->waiting) f->waiting = &l->m;
    }
    if (asked) f->waiting = asked;
    else if (!gathering && at_work(x)) f->waiting = NULL;
    return 0;
}

/* A network may want a look to go on with it.  What comes can wait until somebody wants it; what gets ready, we are told of. */
static bool sending(const struct exec *x) {
    for (u32 k = 0; k < x->nlink; k++) {
        const struct comm_message *m = &x->link[k].m;
        if (m->sends && m->started && !m->done) return true;
    }
    return false;
}

static err walk(struct exec *x, bool gathering) {
    for (;;) {
        struct found f;
        TRY(look_at_all(x, gathering, &f));
        if (f.left == 0) return 0;
        comm_set_idle_sleep(x->comm, x->usual / (sending(x) ? LOOKS : FEW_LOOKS));
        TRY(comm_idle(x->comm, f.moved, f.waiting));
    }
}

static bool decide(struct exec *x, u32 wish) {
    u32 now = UPDATE_OPEN;
    return atomic_compare_exchange_strong(&x->update, &now, wish) || now == wish;
}

bool exchange_updates(struct exec *x) { return !x->comm || !netplan(x->plan)->whole || decide(x, UPDATE_MADE); }

/* Workers that wait for what will not come go on with what is there, and write again: the step is void, unless all that this
 * rank needed for its updates had come. */
static void break_off(struct exec *x) {
    *x->why = *err_last();
    comm_cancel(x->comm);
    x->made = netplan(x->plan)->whole && !decide(x, UPDATE_VOID);
    atomic_store(&x->broken, true);
    wakeup_signal(&x->bell);
}

/* One look by a worker, where there is no agent. */
static err turn(struct exec *x, bool waits) {
    struct found f;
    if (!waits) comm_reset_wait(x->comm);
    TRY(look_at_all(x, false, &f));
    return waits ? comm_idle(x->comm, f.moved, f.waiting) : 0;
}

bool exchange_turn(struct exec *x, bool waits) {
    if (atomic_load_explicit(&x->turning, memory_order_relaxed) || atomic_exchange(&x->turning, true)) return false;
    if (!atomic_load_explicit(&x->broken, memory_order_relaxed) && turn(x, waits) < 0) break_off(x);
    atomic_store_explicit(&x->turning, false, memory_order_release);
    return true;
}

/* A step that is done though a rank died: the next one fails. */
static err step_job(struct comm *c, void *exec) {
    struct exec *x = exec;
    if (!x->direct || !atomic_load(&x->broken)) { /* else in a turn of a worker */
        const err e = walk(x, false);
        if (e >= 0) return e;
        break_off(x);
    }
    if (x->made && comm_died(c) && !x->sums.accumulate) return 0;
    err_put(x->why);
    return -x->why->code;
}

static err gather_job(struct comm *c, void *exec) {
    (void)c;
    return walk(exec, true);
}

void exchange_begin(struct exec *x) {
    if (!x->comm) return;
    atomic_store(&x->update, UPDATE_OPEN);
    atomic_store_explicit(&x->round.state, ROUND_NONE, memory_order_relaxed);
    begin(x);
    x->direct = comm_direct(x->comm);
    comm_begin(x->comm, step_job, x);
}

err exchange_end(struct exec *x) {
    const err e = x->comm ? comm_end(x->comm) : 0;
    x->direct = false;
    return e;
}

err exec_gather(struct exec *x) {
    if (!x->comm || x->nlink == 0) return 0;
    x->serial++;
    begin(x);
    comm_begin(x->comm, gather_job, x);
    return comm_end(x->comm);
}
