/* apply.c - the arithmetic of a server: one push, or the sum of a round, becomes an update of its shard. */
#include <math.h>
#include <string.h>

#include "store/inside.h"

/* The server's optimiser on the range [lo, hi) of the vector. */
static void update(struct pstore *s, i64 lo, i64 hi, f32 *delta, const f32 *base, f64 lr, f64 scale, i64 number) {
    const struct pstore_job *j = &s->job;
    const struct store_policy *p = j->store.policy;
    struct store_update u = {.optim = j->optim,
                             .hyper = j->hyper,
                             .n = hi - lo,
                             .theta = s->server.center + (lo - own_shard(s)->lo),
                             .delta = delta,
                             .base = base,
                             .value = j->store.value};
    u.hyper.lr = (f32)lr;
    u.hyper.grad_scale = (f32)scale;
    u.hyper.step = number;
    for (i32 k = 0; k < j->optim->nstate; k++) u.state[k] = j->state[k] + lo;
    if (p->update)
        p->update(&u);
    else
        j->optim->update(&u.hyper, u.n, u.theta, u.delta, u.state[0], u.state[1]);
}

static void unit_range(const struct pstore *s, i32 unit, i64 *lo, i64 *hi) {
    const struct ps_chunk *c = s->at.chunk[s->server.me];
    const i32 n = s->at.nchunk[s->server.me];
    bool found = false;
    for (i32 i = 0; i < n; i++) {
        if (c[i].unit != unit) continue;
        if (!found) *lo = c[i].lo;
        *hi = c[i].hi;
        found = true;
    }
}

/* A push is the share 1 / parts of a batch, so its step is that share of the learning rate.  The elastic force is whole: it moves
 * the centre as far as the worker. */
void apply_range(struct pstore *s, const struct ps_inbox *in, i64 lo, i64 hi, f32 *delta) {
    const struct ps_server *v = &s->server;
    const f64 share = s->job.store.policy->own_weights ? 1 : 1 / (f64)s->at.nworker;
    /* updates of this range since the training began, with this one: the optimiser corrects its bias by it */
    const i64 round = in->ticket / s->at.nworker, number = s->first * s->at.nworker + v->pushes + 1;
    const f32 *base = in->base ? in->base + (lo - own_shard(s)->lo) : NULL;
    update(s, lo, hi, delta, base, share * s->job.rate(s->job.self, round), 1, number);
}

/* The last unit of a push is applied. */
void count_push(struct pstore *s, const struct ps_inbox *in, i32 rank) {
    struct ps_server *v = &s->server;
    const u64 late = v->version - in->version;
    v->stale[late < STALE_BINS ? late : STALE_BINS - 1]++;
    v->version++;
    v->pushes++;
    if (in->refused && v->refused++ == 0) v->refused_rank = rank;
}

void apply_push(struct pstore *s, const struct ps_inbox *in, i32 rank, i32 unit) {
    i64 lo = 0, hi = 0;
    unit_range(s, unit, &lo, &hi);
    if (!in->refused) apply_range(s, in, lo, hi, in->v + (lo - own_shard(s)->lo));
    if (unit == s->at.nunit[s->server.me] - 1) count_push(s, in, rank);
}

/* The tree over parts: neighbours first, as the merges of a plan are (step/merge.c). */
static f32 *part(const struct pstore *s, i32 p) { return s->server.of[s->server.part_of[p]].v; }

void apply_merge(struct pstore *s) {
    const struct store_shard *shard = own_shard(s);
    const i32 parts = s->at.nworker;
    const i64 n = shard->hi - shard->lo, block = s->job.block;
    for (i32 p = 0; p < parts; p++)
        if (s->server.of[s->server.part_of[p]].refused) memset(part(s, p), 0, sizeof(f32) * (size_t)n);
    for (i32 apart = 1; apart < parts; apart *= 2)
        for (i32 p = 0; p + apart < parts; p += 2 * apart) s->job.kern->add(n, part(s, p), part(s, p + apart));
    for (i64 at = 0; at < n && s->job.gradients; at += block)
        s->server.norm[(shard->lo + at) / block] = s->job.kern->sumsq(lmin(block, n - at), part(s, 0) + at);
}

/* The mean of differences of weights; the sum of gradients, which are scaled by the cells of the whole batch, clipped. */
void apply_round(struct pstore *s) {
    struct ps_server *v = &s->server;
    const struct store_shard *shard = own_shard(s);
    i32 good = 0;
    for (i32 p = 0; p < s->at.nworker; p++) {
        const struct ps_inbox *in = &v->of[v->part_of[p]];
        good += !in->refused;
        v->pushes++;
        v->stale[0]++;
        if (in->refused && v->refused++ == 0) v->refused_rank = v->part_of[p];
    }
    v->version++;
    if (good == 0) return;
    f64 scale = 1 / (f64)good, sum = 0;
    if (s->job.gradients) {
        for (i64 b = 0; b < layout_blocks(s); b++) sum += v->norm[b];
        scale = optim_clip(s->job.clip, sqrt(sum));
    }
    update(s, shard->lo, shard->hi, part(s, 0), NULL, s->job.rate(s->job.self, v->round), scale, v->round + 1);
}
