/* keep.c - where ranks may die, a server sends copies of its optimiser state to a worker on another rank, its keeper.
 *
 *     server of shard k   ----weights, weights, .. , weights, state---->   keeper, which writes it into job.state
 *
 * When the server dies within a leg, the shard continues from the weights and the state that the keeper has (store.c:
 * pstore_salvage).  Between legs every rank has the states of all servers. */
#include <string.h>

#include "store/inside.h"

/* A copy follows when the keeper has received this many bytes of weights, packed by the codec or plain, for each byte of state:
 * copies add 12 % to what it receives. */
enum { KEEP_SHARE = 8 };

i32 keeper_rank(const struct pstore *s, i32 server) { return s->at.worker0 + (server + 1) % s->at.nworker; }

static i64 state_floats(const struct pstore *s) { return s->job.optim->nstate * (own_shard(s)->hi - own_shard(s)->lo); }

err keep_new(struct pstore *s) {
    if (!s->job.heals || s->server.me < 0 || s->job.optim->nstate == 0) return 0;
    ARENA_NEW(&s->arena, s->server.copy, state_floats(s));
    return 0;
}

/* The buffer is free: the server answers a pull when it has sent all messages before it (server.c: may_pull). */
err keep_send(struct pstore *s, i32 rank, i64 bytes) {
    struct ps_server *v = &s->server;
    const struct store_shard *shard = own_shard(s);
    if (!v->copy || rank != keeper_rank(s, v->me) || rank == comm_rank(s->job.comm)) return 0;
    v->since_copy += bytes;
    if (v->since_copy < KEEP_SHARE * (i64)sizeof(f32) * state_floats(s)) return 0;
    v->since_copy = 0;
    f32 *to = v->copy;
    for (i32 k = 0; k < s->job.optim->nstate; k++, to += shard->hi - shard->lo) {
        memcpy(to, s->job.state[k] + shard->lo, sizeof *to * (size_t)(shard->hi - shard->lo));
        for (i32 i = 0; i < s->at.nchunk[v->me]; i++) {
            const struct ps_chunk *c = &s->at.chunk[v->me][i];
            const struct ps_head h = {.kind = PS_STATE, .vector = (u16)k, .chunk = i, .bytes = pack_bytes(c)};
            s->whole += pack_bytes(c);
            TRY(send_message(s, rank, &h, to + (c->lo - shard->lo)));
        }
    }
    return 0;
}

err keep_place(struct pstore *s, i32 from, const struct ps_head *h, void **to) {
    const i32 k = from - s->at.server0;
    if (!s->job.heals || k < 0 || k >= s->at.nserver || h->vector >= s->job.optim->nstate || h->chunk < 0 ||
        h->chunk >= s->at.nchunk[k] || h->bytes != pack_bytes(&s->at.chunk[k][h->chunk]))
        return FAIL_AT(E804, NULL, "the same program and options on every rank",
                       "rank %d sent a state that does not fit this store", from);
    *to = s->job.state[h->vector] + s->at.chunk[k][h->chunk].lo;
    return 0;
}
