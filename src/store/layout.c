/* layout.c - shards, units and chunks: who serves which range, and in which messages it goes. */
#include <string.h>

#include "base/mem.h"
#include "store/inside.h"

static err counts(struct pstore *s) {
    struct ps_layout *l = &s->at;
    const i32 ranks = comm_size(s->job.comm), servers = s->job.servers;
    if (ranks < 2)
        return FAIL_AT(E106, "--store", "--ranks 2   or   mpirun -n 2 stretto ..",
                       "a store needs at least two ranks, there is one");
    if (servers >= ranks)
        return FAIL_AT(E106, "--servers", "--servers 0   (a shard on every rank)",
                       "%d of %d ranks only serve: no rank is left to compute", servers, ranks);
    /* A shard has a block at least: a server of nothing would get no push, and never tell its norm. */
    l->nserver = (i32)lmin(servers ? servers : ranks, layout_blocks(s));
    l->worker0 = servers;
    l->nworker = ranks - servers;
    return 0;
}

/* Equal byte ranges, at multiples of the block over which norms are summed. */
static err shards(struct pstore *s) {
    struct ps_layout *l = &s->at;
    const i64 blocks = layout_blocks(s);
    ARENA_NEW(&s->arena, l->shard, l->nserver);
    for (i32 k = 0; k < l->nserver; k++)
        l->shard[k] = (struct store_shard){lmin(s->job.n, blocks * k / l->nserver * s->job.block),
                                           lmin(s->job.n, blocks * (k + 1) / l->nserver * s->job.block), server_rank(s, k)};
    return 0;
}

/* The end of the unit that begins at `at`. */
static i64 unit_end(const struct pstore_job *j, i64 at, i64 end) {
    for (i32 i = 0; i < j->nborder; i++)
        if (j->border[i] > at) return lmin(j->border[i], end);
    return end;
}

/* Floats of a chunk at most. Between hosts MPI asks the receiver before it sends a long message: a round trip for each. */
static i64 chunk_floats(bool plain, bool one_host) { return plain && one_host ? PLAIN_FLOATS : CHUNK_FLOATS; }

/* Chunks of a shard into c; NULL = they are counted. */
static i32 cut(struct pstore *s, const struct store_shard *shard, struct ps_chunk *c, i32 *units) {
    const i64 most = chunk_floats(pack_plain(s), comm_local_size(s->job.comm) == comm_size(s->job.comm));
    i32 n = 0;
    *units = 0;
    for (i64 at = shard->lo, end; at < shard->hi; at = end, ++*units) {
        end = unit_end(&s->job, at, shard->hi);
        for (i64 lo = at; lo < end; lo += most, n++)
            if (c)
                c[n] = (struct ps_chunk){
                    .lo = lo, .hi = lmin(end, lo + most), .unit = *units, .first = lo == at, .last = lo + most >= end};
    }
    return n;
}

static void place(struct pstore *s, struct ps_chunk *c) {
    struct ps_layout *l = &s->at;
    const struct pstore_job *j = &s->job;
    i64 room = 4 * (c->hi - c->lo);
    c->packet = l->packets;
    c->state = l->states;
    if (!pack_plain(s)) {
        const struct wire_args a = pack_args(s, c, 0, s->corrects);
        room = lmax(room, j->codec.codec->room(&a)); /* the last weights of a leg go plain */
        l->states += wire_state(&a);
        l->scratch = lmax(l->scratch, wire_scratch(&a));
    }
    l->packets += round_up64(room, 64);
    l->most = lmax(l->most, room);
}

err layout_make(struct pstore *s) {
    struct ps_layout *l = &s->at;
    TRY(counts(s));
    TRY(shards(s));
    ARENA_NEW(&s->arena, l->chunk, l->nserver);
    ARENA_NEW(&s->arena, l->nchunk, l->nserver);
    ARENA_NEW(&s->arena, l->nunit, l->nserver);
    ARENA_NEW(&s->arena, l->chunk0, l->nserver);
    l->most = 8 * layout_blocks(s);
    for (i32 k = 0; k < l->nserver; k++) {
        l->nchunk[k] = cut(s, &l->shard[k], NULL, &l->nunit[k]);
        ARENA_NEW(&s->arena, l->chunk[k], l->nchunk[k]);
        cut(s, &l->shard[k], l->chunk[k], &l->nunit[k]);
        for (i32 i = 0; i < l->nchunk[k]; i++) place(s, &l->chunk[k][i]);
        l->chunk0[k] = s->chunks;
        s->chunks += l->nchunk[k];
    }
    return 0;
}

err range_to_all(struct comm *c, i32 root, const char *what, f32 *v, i64 n) {
    return comm_broadcast_from(c, root, what, v, (i64)sizeof *v * n);
}
