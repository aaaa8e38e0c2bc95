/* exchange.c - the messages of a step, sent and awaited by the agent of this rank while its workers compute; where ranks share
 * memory by the workers themselves, between two tasks and while they wait (comm_direct).
 *
 *     queues  | fwd | bwd | merge 0 4 .. waits for grad.4 ..|            | update | .. next step waits for theta
 *     agent   | grad.4 of rank 1 awaited ------------- here |  norm, loss ------> |  theta: own range out, others' in
 *
 * The list is the plan's (plan/exchange.h).  A message goes out when the queues have done the task that wrote it (all members of
 * a team), and may come in when they have done everything before that task that looks at the same range.  Messages of a pair of
 * ranks go in the order of the list. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/backoff.h"
#include "comm/comm.h"
#include "exec/bound.h"
#include "exec/space.h"

/* Polls of the agent per step while workers compute, approximately: with pending sends, and without. */
enum { LOOKS = 80, FEW_LOOKS = 40 };
enum { ENOUGH = 256 }; /* messages that cannot start yet, in one poll: those behind them would hardly start */
enum { MOST_BYTES = 1 << 22 }; /* largest message: a larger one would delay urgent messages behind it */
_Static_assert(MOST_BYTES <= LINES_MOST * LINE_FLOATS * 4, "lines of a message are counted in 16 bits");

/* ------------------------------------------------------------------ binding ------------------------------------------------- */

/* The tasks that must precede the message. Send: all members of the team that wrote the range. Receive: the earlier readers
 * and writers of the range. */
static bool precedes(const struct exec *x, u32 task, const struct plan_message *m, bool sends) {
    return sends ? task >= plan_team_first(x->plan, m->after) : task < m->after && link_touches(x, task, m, false);
}

/* For each queue, the last item that must be done before the message may start. */
static err ready_of(struct exec *x, struct link *l, const struct plan_message *m, const u32 *place) {
    u32 *need;
    ARENA_NEW(&x->arena, need, x->nlist);
    for (u32 i = 0; i <= m->after && i < x->plan->ntask; i++) {
        if (!exec_is_ours(x, &x->plan->task[i])) continue;
        u32 queue = exec_queue_of(x, &x->plan->task[i]);
        if (precedes(x, i, m, l->m.sends) && place[i] + 1 > need[queue]) need[queue] = place[i] + 1;
    }
    ARENA_NEW(&x->arena, l->ready, x->nlist);
    for (u32 w = 0; w < x->nlist; w++)
        if (need[w] > 0) l->ready[l->nready++] = (struct dev_wait){w, need[w]};
    return 0;
}

static err make_packed(struct exec *x, struct link *l) {
    l->codec = codec_for(x->plan, &l->plan);
    if (!l->codec) return 0;
    ARENA_NEW(&x->arena, l->packed, l->codec->room(x->plan, &l->plan));
    l->m.data = l->packed;
    l->m.head.bytes = (u32)l->codec->room(x->plan, &l->plan);
    l->m.fewer = l->codec->fewer && !l->m.sends;
    return 0;
}

static err add(struct exec *x, const struct plan_message *m, u32 number, const u32 *place) {
    struct link *l = &x->link[x->nlink++];
    l->plan = *m;
    l->trails = x->policy->trails && x->policy->trails(x, m);
    l->m.sends = m->from == comm_rank(x->comm);
    l->m.peer = l->m.sends ? m->to : m->from;
    l->m.data = link_data(x, &l->plan);
    l->m.head = (struct comm_head){.number = number, .bytes = (u32)plan_message_bytes(x->plan, &l->plan)};
    exec_buffer_name(x, m->buf, l->m.head.name);
    TRY(make_packed(x, l));
    return ready_of(x, l, &l->plan, place);
}

/* Splits longer ranges; both sides count the parts alike. */
static i64 step_of(const struct exec *x, const struct plan_message *m) {
    const struct pbuf *b = &x->plan->buf[m->buf];
    return lmax(1, MOST_BYTES / (b->bytes / b->extent / b->repeat * (m->t1 - m->t0)));
}

static err make_links(struct exec *x, const u32 *place) {
    const struct plan_message *all = x->message;
    const u32 n = x->nmessage;
    u32 number = 0;
    i64 most = 0;
    for (u32 i = 0; i < n; i++) most += (all[i].hi - all[i].lo + step_of(x, &all[i]) - 1) / step_of(x, &all[i]);
    ARENA_NEW(&x->arena, x->link, most + 1);
    ARENA_NEW(&x->arena, x->pair_waits, 2 * comm_size(x->comm));
    ARENA_NEW(&x->arena, x->why, 1);
    x->residuals.key = (i64)COMM_HASH;
    ARENA_NEW(&x->arena, x->residuals.first, comm_size(x->comm) + 1);
    for (u32 i = 0; i < n; i++) {
        struct plan_message m = all[i];
        const bool here = m.from == comm_rank(x->comm) || m.to == comm_rank(x->comm);
        for (; m.lo < all[i].hi; m.lo = m.hi, number++) {
            m.hi = lmin(all[i].hi, m.lo + step_of(x, &m));
            residual_count(x, &m);
            if (here) TRY(add(x, &m, number, place));
        }
    }
    return residual_bind(x);
}

/* If every rank runs the commits, the first of them waits for all messages received in this step: then none can fail. */
static bool holds(const struct exec *x, const struct link *l, const struct item *it) {
    const struct task *t = &x->plan->task[it->task];
    if (l->trails || l->plan.when != MESSAGE_STEP) return false;
    if (t->everywhere && x->client.kernel[t->kind].commits && !l->m.sends) return true;
    return l->plan.after < it->task && link_touches(x, it->task, &l->plan, l->m.sends);
}

/* Messages that an item waits for: those received into what it reads, and those sent from what it writes. */
static err item_links(struct exec *x, struct item *it) {
    for (i32 pass = 0; pass < 2; pass++) {
        u32 n = 0, before = 0;
        for (u32 k = 0; k < x->nlink; k++) {
            const struct link *l = &x->link[k];
            if (gather_holds(x, l, it->task)) {
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

/* Marks the items that make a message ready: their worker wakes the agent. */
static void mark_senders(struct exec *x) {
    for (u32 k = 0; k < x->nlink; k++)
        for (u32 i = 0; i < x->link[k].nready && x->link[k].m.sends; i++) {
            const struct dev_wait *w = &x->link[k].ready[i];
            x->queue[w->queue].item[w->count - 1].sends = true;
        }
}

/* Does a task that computes wait for a message, on any rank?  So it is where ranks share layers or units. */
static bool feeds(const struct exec *x) {
    const struct plan *p = x->plan;
    for (u32 k = 0; k < x->nmessage; k++) {
        const struct plan_message *m = &x->message[k];
        for (u32 i = m->after + 1; m->when == MESSAGE_STEP && i < p->ntask; i++)
            if (x->client.kernel[p->task[i].kind].compute && link_touches(x, i, m, false)) return true;
    }
    return false;
}

err exchange_bind(struct exec *x, const u32 *place) {
    if (!x->comm) return 0;
    x->feeds = x->policy->may_send && feeds(x);
    TRY(make_links(x, place));
    for (u32 w = 0; w < x->nlist; w++)
        for (u32 i = 0; i < x->queue[w].n; i++) TRY(item_links(x, &x->queue[w].item[i]));
    mark_senders(x);
    return 0;
}

void exchange_aim(struct exec *x) {
    for (u32 k = 0; k < x->nlink; k++) {
        struct link *l = &x->link[k];
        if (!l->packed) l->m.data = link_data(x, &l->plan);
    }
}

/* ------------------------------------------------------------------ inside a task ------------------------------------------- */

bool exec_round(void *exec, struct comm_message *m, i32 n) {
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

/* Called by the agent: polls all messages of a round once. */
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
    return l->plan.when == MESSAGE_STEP || (l->plan.when == MESSAGE_KEEP && x->keep);
}

bool exec_computed(const struct exec *x) {
    for (u32 w = 0; w < x->nqueue; w++) {
        const struct queue *q = &x->queue[w]; /* one without tasks counts none */
        const bool done = atomic_load_explicit(&q->done, memory_order_acquire) >= (x->serial << 32 | q->ncompute);
        if (q->ncompute > 0 && !done) return false;
    }
    return true;
}

static bool is_ready(const struct exec *x, const struct link *l) {
    if (!x->feeds && x->policy->may_send && !x->policy->may_send(x)) return false;
    for (u32 k = 0; k < l->nready; k++) {
        u64 want = x->summed << 32 | l->ready[k].count;
        if (atomic_load_explicit(&x->queue[l->ready[k].queue].done, memory_order_acquire) < want) return false;
    }
    return true;
}

/* Polls a message that is not done. */
static err look(struct exec *x, struct link *l, bool gathering, bool *moved) {
    bool *held = &x->pair_waits[2 * l->m.peer + l->m.sends];
    if (!l->m.started && (*held || (!gathering && !is_ready(x, l)))) {
        *held = true; /* messages behind it keep their order */
        return 0;
    }
    return link_move(x, l, x->summed, moved);
}

static bool is_done(const struct exec *x, const struct queue *l) {
    return l->n == 0 || atomic_load_explicit(&l->done, memory_order_acquire) == (x->serial << 32 | l->n);
}

/* While a worker of this rank computes, the rank waits for itself, not for a late rank. */
static bool at_work(const struct exec *x) {
    for (u32 w = 0; w < x->nqueue; w++)
        if (!is_done(x, &x->queue[w]) && !atomic_load_explicit(&x->queue[w].waits, memory_order_relaxed)) return true;
    return false;
}

/* A worker may still start messages of a round. */
static bool may_ask(const struct exec *x) {
    for (u32 w = 0; w < x->nqueue && x->rounds; w++)
        if (!is_done(x, &x->queue[w])) return true;
    return false;
}

static void begin(struct exec *x) {
    x->open = 0;
    for (u32 k = 0; k < x->nlink; k++)
        if (!x->link[k].trails) x->link[k].m.started = x->link[k].m.done = false;
}

/* Is the message of those that are moved now?  gathers: MESSAGE_STEP for those of a step. */
static bool moves(const struct exec *x, const struct link *l, enum message_when gathers) {
    return gathers == MESSAGE_STEP ? in_this_step(x, l) : l->plan.when == gathers;
}

/* Messages complete about in the order of the list: those that are done at its begin are not looked at again. */
static u32 first_open(struct exec *x, enum message_when gathers) {
    while (x->open < x->nlink && (!moves(x, &x->link[x->open], gathers) || x->link[x->open].m.done)) x->open++;
    return x->open;
}

/* Result of one poll of all messages. */
struct found {
    bool moved;
    u32 left;
    const struct comm_message *waiting; /* not complete, or held back, while no worker of this rank computes */
};

static err look_at_all(struct exec *x, enum message_when gathers, struct found *f) {
    const bool gathering = gathers != MESSAGE_STEP;
    const struct comm_message *asked = NULL, *held = NULL;
    *f = (struct found){0};
    f->left = gathering ? 0 : may_ask(x) + (x->policy->progress ? x->policy->progress(x, &f->moved) : 0);
    TRY(gather_some(x, &f->moved, &f->left, &f->waiting));
    TRY(look_at_round(x, &f->moved, &asked));
    memset(x->pair_waits, 0, 2 * (size_t)comm_size(x->comm) * sizeof *x->pair_waits);
    for (u32 k = first_open(x, gathers), still = 0; k < x->nlink && still < ENOUGH; k++) {
        struct link *l = &x->link[k];
        if (!moves(x, l, gathers)) continue;
        if (!l->m.done) TRY(look(x, l, gathering, &f->moved));
        still += !l->m.done && !l->m.started;
        f->left += !l->m.done;
        if (!l->m.done && l->m.started && !f->waiting) f->waiting = &l->m;
        if (!l->m.done && !held) held = &l->m;
    }
    if (!f->waiting) f->waiting = held; /* the deadline holds even if no message may start */
    if (asked)
        f->waiting = asked;
    else if (!gathering && at_work(x))
        f->waiting = NULL;
    return 0;
}

/* A network may need calls to progress a send.  Receives can wait until a worker needs them, and workers wake the agent. */
static bool sending(const struct exec *x) {
    for (u32 k = 0; k < x->nlink; k++) {
        const struct comm_message *m = &x->link[k].m;
        if (m->sends && m->started && !m->done) return true;
    }
    return false;
}

static err walk(struct exec *x, enum message_when gathers) {
    for (;;) {
        struct found f;
        TRY(look_at_all(x, gathers, &f));
        if (f.left == 0) return 0;
        comm_set_idle_sleep(x->comm, x->usual / (sending(x) ? LOOKS : FEW_LOOKS));
        TRY(comm_idle(x->comm, f.moved, f.waiting));
    }
}

static bool decide(struct exec *x, u32 wish) {
    u32 now = UPDATE_OPEN;
    return atomic_compare_exchange_strong(&x->update, &now, wish) || now == wish;
}

bool exchange_commits(struct exec *x) { return !x->comm || !x->all_commit || decide(x, UPDATE_MADE); }

/* Workers that wait for a message that will never come continue with old data; the step is void unless all messages that
 * this rank needs for its updates have arrived. */
static void break_off(struct exec *x) {
    *x->why = *err_last();
    comm_cancel(x->comm);
    x->made = x->all_commit && !decide(x, UPDATE_VOID);
    atomic_store(&x->broken, true);
    wakeup_signal(&x->changed);
}

/* One poll by a worker, if there is no agent. */
static err turn(struct exec *x, bool waits) {
    struct found f;
    if (!waits) comm_reset_wait(x->comm);
    TRY(look_at_all(x, MESSAGE_STEP, &f));
    return waits ? comm_idle(x->comm, f.moved, f.waiting) : 0;
}

bool exchange_turn(struct exec *x, bool waits) {
    if (atomic_load_explicit(&x->turning, memory_order_relaxed) || atomic_exchange(&x->turning, true)) return false;
    if (!atomic_load_explicit(&x->broken, memory_order_relaxed) && turn(x, waits) < 0) break_off(x);
    atomic_store_explicit(&x->turning, false, memory_order_release);
    return true;
}

/* The step completed although a rank died: the next one fails. */
static err step_job(struct comm *c, void *exec) {
    struct exec *x = exec;
    if (!x->direct || !atomic_load(&x->broken)) { /* otherwise a worker reports it when it polls */
        const err e = walk(x, MESSAGE_STEP);
        if (e >= 0) return e;
        break_off(x);
    }
    if (x->made && comm_died(c) && !x->keep) return 0;
    err_put(x->why);
    return -x->why->code;
}

static err asked_job(struct comm *c, void *exec) {
    struct exec *x = exec;
    (void)c;
    return walk(x, x->asked);
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

/* Between two steps: all messages of a kind. */
static err ask_for(struct exec *x, enum message_when when) {
    bool any = false;
    for (u32 k = 0; k < x->nmessage; k++) any = any || x->message[k].when == when; /* of all ranks: they count steps alike */
    if (!any) return 0;
    x->serial++;
    x->asked = when;
    begin(x);
    comm_begin(x->comm, asked_job, x);
    return comm_end(x->comm);
}

err exec_gather(struct exec *x) {
    TRY(exec_bring(x));
    return ask_for(x, MESSAGE_GATHER);
}

err exchange_settle(struct exec *x) {
    TRY(exec_quiet(x));
    return ask_for(x, MESSAGE_SETTLE);
}
