/* bind.c - one block of memory for all buffers of a plan, and one lane of items per worker. */
#include <stdint.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "exec/bound.h"
#include "model/layer.h"

static bool shared(u8 kind) { return kind == PBUF_INPUT || kind == PBUF_THETA || kind == PBUF_DERIVED || kind == PBUF_STATE; }

enum { PAGE = 4096, LARGE = 1 << 18 };

/* Large buffers of rows begin at a page: then the rows of two workers meet at the border of one more often than not, and there
 * the prefetcher of a core stops, which otherwise takes lines away that the other core is writing. */
static bool paged(const struct pbuf *b) { return b->bytes >= LARGE; }

/* Rows that this process holds: where they are slices of time, those of its tasks only, so that a sequence that is too long for
 * one rank has room on several.  Windows stay whole: their rows are few, and inputs need not be copied. */
static void own_rows(struct exec *x) {
    const struct plan *p = x->plan;
    struct run *r = &x->run;
    i32 b0 = 0, b1 = p->B;
    if (x->comm && netplan(p)->slices > 0 && netplan(p)->train) exec_rows(x, &b0, &b1);
    r->row0 = b0;
    r->B = b1 - b0;
    r->whole = p->B;
}

static i64 bytes_of(const struct exec *x, const struct pbuf *b) {
    const struct rows B = {x->run.B, x->run.whole};
    switch (b->kind) {
        case PBUF_ACT:
        case PBUF_DACT:
            return buf_floats(&x->net->buf[b->index], B.n) * 4;
        case PBUF_SAVED:
            return op_saved_floats(&x->net->op[b->index], x->net, B) * 4;
        case PBUF_SCRATCH:
            return op_scratch_floats(&x->net->op[b->index], x->net, B) * 4;
        default:
            return b->bytes;
    }
}

static i64 room(const struct exec *x, const struct pbuf *b) {
    return round_up64(bytes_of(x, b), 64) + (paged(b) ? PAGE - 64 : 0);
}

static char *start(const struct pbuf *b, char *at) { return paged(b) ? at + (-(uintptr_t)at & (PAGE - 1)) : at; }

static void place_buffers(struct exec *x) {
    char *at = x->block;
    x->run.grad = x->grads;
    for (u32 i = 0; i < x->plan->nbuf; i++) {
        const struct pbuf *b = &x->plan->buf[i];
        if (shared(b->kind) || b->kind == PBUF_GRAD) continue;
        char *from = start(b, at);
        f32 *f = (f32 *)(void *)from;
        switch (b->kind) {
            case PBUF_ACT:
                x->buf[b->index] = f;
                break;
            case PBUF_DACT:
                x->dbuf[b->index] = f;
                break;
            case PBUF_SAVED:
                x->saved[b->index] = f;
                break;
            case PBUF_SCRATCH:
                x->scratch[b->index] = f;
                break;
            case PBUF_NORM:
                x->norm = (f64 *)(void *)from;
                x->nnorm = b->extent;
                break;
            default:
                x->run.loss = (f64 *)(void *)from;
                break;
        }
        at += room(x, b);
    }
}

/* Of inputs its own rows too, but for the one that says how slices follow each other. */
static err own_inputs(struct exec *x) {
    bool whole[NET_BUFS] = {0};
    if (x->run.B == x->run.whole) return 0;
    ARENA_NEW(&x->arena, x->input, x->net->nbuf);
    for (i32 l = 0; l < x->net->nop; l++)
        if (op_is_chain(&x->net->op[l])) whole[x->net->op[l].spec.in[x->net->op[l].layer->after]] = true;
    for (i32 i = 0; i < x->net->nbuf; i++)
        if (x->net->buf[i].input && !whole[i]) ARENA_NEW(&x->arena, x->input[i], buf_floats(&x->net->buf[i], x->run.B));
    return 0;
}

static err bind_buffers(struct exec *x) {
    const struct plan *p = x->plan;
    own_rows(x);
    TRY(own_inputs(x));
    for (u32 i = 0; i < p->nbuf; i++) {
        const struct pbuf *b = &p->buf[i];
        if (b->kind == PBUF_GRAD)
            x->grad_bytes += b->bytes;
        else if (!shared(b->kind))
            x->block_bytes += room(x, b);
    }
    x->block = mem_alloc((size_t)x->block_bytes); /* zeroed: flags of teams, at the end of an op's scratch, begin at 0 */
    if (x->block && x->grad_bytes) x->grads = comm_alloc(x->comm, (size_t)x->grad_bytes);
    if (!x->block || (x->grad_bytes && !x->grads)) return -E601;
    place_buffers(x);
    struct run *r = &x->run;
    r->net = x->net;
    r->kern = x->kern;
    r->grain = p->grain;
    r->ngrain = p->ngrain;
    r->buf = x->buf;
    r->dbuf = x->dbuf;
    r->saved = x->saved;
    r->scratch = x->scratch;
    r->theta = x->store->theta;
    r->derived = x->store->derived;
    r->train = netplan(p)->train;
    TRY(touched_new(p, &r->touched));
    x->sums.of = exec_grads(x);
    x->sums.loss = r->loss;
    return 0;
}

static bool same_range(const struct task *a, const struct task *b) {
    return a->kind == TASK_MERGE && b->kind == TASK_MERGE && a->lo == b->lo && a->hi == b->hi;
}

/* Merges that follow each other over the same range, without waiting in between, are done block by block in the cache. */
static void group_merges(struct exec *x, struct lane *l) {
    for (u32 i = 0; i < l->n;) {
        u32 n = 1;
        const struct task *task = x->plan->task, *first = &task[l->item[i].task];
        for (const struct item *at = &l->item[i + 1]; i + n < l->n; at++, n++)
            if (at->nwait > 0 || at->nlink > 0 || !same_range(first, &task[at->task])) break;
        l->item[i].run = n;
        i += n;
    }
}

/* The waits of an item: per other lane the last item that any of its dependencies is, unless this lane has waited for it
 * already. */
static u32 waits_of(struct exec *x, u32 lane, const struct task *t, const u32 *place, u32 *need, u32 *have, u32 nwait) {
    const struct plan *p = x->plan;
    for (u32 w = 0; w < x->nlist; w++) need[w] = 0;
    for (u32 k = t->dep0; k < t->dep0 + t->ndep; k++) {
        u32 from = p->dep[k], w = exec_lane_of(x, &p->task[from]);
        if (!exec_is_ours(x, &p->task[from])) continue; /* a message brings what it wrote */
        if (w != lane && place[from] + 1 > need[w]) need[w] = place[from] + 1;
    }
    u32 n = 0;
    for (u32 w = 0; w < x->nlist; w++) {
        if (need[w] <= have[w]) continue;
        have[w] = need[w];
        x->wait[nwait + n++] = (struct wait){w, need[w]};
    }
    return n;
}

static struct chain chain_of(const struct exec *x, i32 op, bool backward) {
    struct chain c;
    x->net->op[op].layer->chain(&x->net->op[op], &x->run, backward, &c);
    return c;
}

/* The slices of each rank, from the tasks of those who run the chain; they follow each other (plan_check). */
static err bind_peers(struct exec *x, i32 op, bool backward) {
    const struct plan *p = x->plan;
    i32 n = 0, me = 0, rank[MACHINE_DEVICES], first[MACHINE_DEVICES + 1];
    for (u32 i = 0; i < p->ntask; i++) {
        const struct task *t = &p->task[i];
        if (t->op != op || t->kind != (backward ? TASK_BWD : TASK_FWD)) continue;
        const i32 at = p->place[t->device].rank;
        if (n == 0 || rank[n - 1] != at) first[n] = t->box.b0, rank[n++] = at;
        first[n] = t->box.b1;
    }
    for (i32 i = 0; i < n; i++)
        if (rank[i] == comm_rank(x->comm)) me = i;
    const struct chain c = chain_of(x, op, backward);
    struct chain_solver *s = x->chain[op][backward];
    TRY(chain_peers_new(&x->arena, &c, n, rank, first, me, &s->peers));
    s->peers->pass = exchange_round;
    s->peers->self = x;
    x->rounds = true;
    return 0;
}

/* Where rows are slices of time, an op's tasks solve its chain together. */
static err bind_chains(struct exec *x) {
    for (i32 l = 0; l < x->net->nop; l++)
        for (i32 way = 0; way < (netplan(x->plan)->train ? 2 : 1) && op_is_chain(&x->net->op[l]); way++) {
            TRY(chain_solver_new(&x->arena, x->plan->B, imax(1, x->plan->ndevice), &x->chain[l][way]));
            if (x->comm) TRY(bind_peers(x, l, way == 1));
        }
    return 0;
}

/* Devices of this rank, which come together. */
static i32 own_devices(struct exec *x) {
    i32 n = 0;
    for (i32 d = x->plan->ndevice - 1; d >= 0; d--) {
        if (x->comm && x->plan->place[d].rank != comm_rank(x->comm)) continue;
        x->device0 = (u32)d;
        n++;
    }
    return n;
}

static err bind_lane(struct exec *x, u32 w, const u32 *place, u32 *need, u32 *nwait) {
    const struct plan *p = x->plan;
    struct lane *l = &x->lane[w];
    u32 *have;
    ARENA_NEW(&x->arena, l->item, l->n + 1);
    ARENA_NEW(&x->arena, have, x->nlist);
    for (u32 i = 0; i < p->ntask; i++) {
        if (!exec_is_ours(x, &p->task[i]) || exec_lane_of(x, &p->task[i]) != w) continue;
        struct item *it = &l->item[place[i]];
        *it = (struct item){.task = i, .wait0 = *nwait, .run = 1};
        it->nwait = waits_of(x, w, &p->task[i], place, need, have, *nwait);
        *nwait += it->nwait;
        const u8 kind = p->task[i].kind;
        if (kind == TASK_FWD || kind == TASK_BWD || kind == TASK_DW) l->ncompute = place[i] + 1;
    }
    return 0;
}

static err bind_lanes(struct exec *x) {
    const struct plan *p = x->plan;
    u32 *place, *need, nwait = 0;
    const i32 own = own_devices(x);
    x->nlane = (u32)imax(1, imin(pool_size(x->pool), own));
    if (x->comm && netplan(p)->slices > 0 && (i32)x->nlane < own)
        x->nlane = 1;               /* what others' rows wait for is then done before */
    x->alone = (i32)x->nlane < own; /* two members on one lane would wait for each other for ever */
    for (u32 i = 0; i < p->ntask; i++)
        x->teams = x->teams || (p->task[i].members > 1 && !x->alone && !op_is_chain(&x->net->op[p->task[i].op]));
    pace_begin(&x->pace);
    TRY(late_bind(x));
    x->nlist = x->nlane + (x->late ? 1 : 0);
    ARENA_NEW(&x->arena, x->lane, x->nlist);
    ARENA_NEW(&x->arena, place, p->ntask + 1);
    ARENA_NEW(&x->arena, need, x->nlist);
    i64 most = 0;
    for (u32 i = 0; i < p->ntask; i++) {
        if (exec_is_ours(x, &p->task[i])) place[i] = x->lane[exec_lane_of(x, &p->task[i])].n++;
        most += lmin(p->task[i].ndep, x->nlist);
    }
    ARENA_NEW(&x->arena, x->wait, most + 1);
    for (u32 w = 0; w < x->nlist; w++) TRY(bind_lane(x, w, place, need, &nwait));
    TRY(exchange_bind(x, place));
    for (u32 w = 0; w < x->nlist; w++) group_merges(x, &x->lane[w]);
    return 0;
}

static err check(const struct plan *p, const struct net *n, const struct store *s) {
    if (netplan(p)->ntheta != n->ntheta || netplan(p)->nderived != n->nderived)
        return FAIL(E1, "the plan is for a model of %lld parameters, this one has %lld", (long long)netplan(p)->ntheta,
                    (long long)n->ntheta);
    if (s->ntheta != n->ntheta || s->nderived != n->nderived)
        return FAIL(E1, "the store holds %lld parameters, the model has %lld", (long long)s->ntheta, (long long)n->ntheta);
    if (netplan(p)->train && (!s->optim || s->optim->nstate != netplan(p)->nstate))
        return FAIL(E1, "the plan has %d optimiser states, the store %d", netplan(p)->nstate, s->optim ? s->optim->nstate : -1);
    return 0;
}

err exec_bind(const struct plan *p, const struct net *n, const struct kern *k, struct pool *pool, struct store *store,
              struct exec **out) {
    return exec_bind_rank(p, n, k, pool, store, NULL, out);
}

err exec_bind_rank(const struct plan *p, const struct net *n, const struct kern *k, struct pool *pool, struct store *store,
                   struct comm *comm, struct exec **out) {
    return exec_bind_pipe(p, n, k, pool, store, comm, PIPE_OVERLAP, out);
}

err exec_bind_pipe(const struct plan *p, const struct net *n, const struct kern *k, struct pool *pool, struct store *store,
                   struct comm *comm, enum exec_pipe pipe, struct exec **out) {
    *out = NULL;
    TRY(check(p, n, store));
    struct exec *x = mem_alloc(sizeof *x);
    if (!x) return -E601;
    x->plan = p;
    x->net = n;
    x->kern = k;
    x->pool = pool;
    x->store = store;
    x->comm = comm_size(comm) > 1 ? comm : NULL;
    x->pipe = netplan(p)->train ? pipe : PIPE_OVERLAP;
    err e = bind_buffers(x);
    if (e == 0) e = bind_lanes(x);
    if (e == 0) e = bind_chains(x);
    if (e < 0) {
        exec_free(x);
        return e;
    }
    x->epoch = clock_now();
    *out = x;
    return 0;
}

void exec_free(struct exec *x) {
    if (!x) return;
    for (u32 w = 0; x->lane && w < x->nlane; w++) mem_free(x->lane[w].ring);
    late_free(x);
    mem_free(x->run.touched);
    if (x->grads) comm_release(x->comm, x->grads);
    mem_free(x->block);
    arena_free(&x->arena);
    mem_free(x);
}

i64 exec_bytes(const struct exec *x) {
    const struct store *s = x->store;
    i64 states = (s->state[0] ? 1 : 0) + (s->state[1] ? 1 : 0);
    i64 store = (s->ntheta * (1 + (netplan(x->plan)->train ? states : 0)) + s->nderived) * 4;
    i64 more = 0;
    for (u32 w = 0; w < x->nlane; w++) more += x->lane[w].ring ? TRACE_RING * (i64)sizeof(struct record) : 0;
    more += x->run.touched ? touched_bytes(x->plan) : 0;
    return x->block_bytes + x->grad_bytes + late_bytes(x) + x->arena.used + (i64)sizeof *x + store + more;
}

struct exec_sent exec_sent(const struct exec *x) {
    return x->sent;
}
const f32 *exec_buf(const struct exec *x, i32 buf) { return x->buf[buf]; }
const f32 *exec_grad(const struct exec *x) { return x->sums.of.grad; }
const struct chain_trace *exec_chain(const struct exec *x, i32 op, bool backward) {
    return x->chain[op][backward] ? &x->chain[op][backward]->trace : NULL;
}

i32 exec_chain_state(const struct exec *x, i32 op) { return x->chain[op][0] ? chain_of(x, op, false).state : 0; }

void exec_chain_save(const struct exec *x, i32 op, i32 row, f32 *to) {
    const struct chain c = chain_of(x, op, false);
    if (x->chain[op][0]->peers)
        peers_save(x->chain[op][0]->peers, &c, row, to);
    else
        c.save(&c, row, to);
}

void exec_chain_load(struct exec *x, i32 op, i32 row, const f32 *from) {
    const struct chain c = chain_of(x, op, false);
    if (x->chain[op][0]->peers)
        peers_load(x->chain[op][0]->peers, &c, row, from);
    else
        c.load(&c, row, from);
}
