/* rank_cores.c - assigns cores to the ranks of one host. */
#include "api/rank_cores.h"

#include <stdlib.h>
#include <string.h>

#include "comm/comm.h"

static bool wanted(void) {
    const char *wish = getenv("STRETTO_PIN");
    return !(wish && strcmp(wish, "off") == 0);
}

static void cut(struct rank_cores *c, i32 parts, i32 part, i32 threads) {
    bool enough = false;
    if (parts < 2 || parts * threads > cores_count(&c->before)) return;
    c->has = cores_cut(&c->before, parts, part, &c->share, &enough) >= 0 && enough && cores_count(&c->share) >= threads;
}

/* Ranks of this host that may run on exactly the same cores share them. If others may run on some of these cores, no
 * assignment is made, since they would compete with it. */
static void share_out(struct comm *c, const struct cores *all, i32 threads, struct rank_cores *out) {
    const i32 me = comm_rank(c);
    i32 parts = 0, part = 0;
    for (i32 k = 0; k < comm_size(c); k++) {
        if (strcmp(comm_rank_info(c, k)->host, comm_rank_info(c, me)->host) != 0 || !cores_meet(&all[k], &all[me])) continue;
        if (memcmp(&all[k], &all[me], sizeof *all) != 0) return;
        part += k < me;
        parts++;
    }
    cut(out, parts, part, threads);
}

err rank_cores_of_process(struct comm *c, i32 threads, struct rank_cores *out) {
    struct cores all[COMM_RANKS];
    *out = (struct rank_cores){0};
    cores_allowed(&out->before);
    if (!wanted()) out->before = (struct cores){0}; /* empty mask: shares no core with another rank */
    TRY(comm_allgather(c, "cores", &out->before, sizeof out->before, all));
    share_out(c, all, threads, out);
    return 0;
}

void rank_cores_of_thread(i32 k, i32 size, i32 threads, struct rank_cores *out) {
    *out = (struct rank_cores){0};
    if (wanted() && cores_allowed(&out->before)) cut(out, size, k, threads);
}

static void stay(void *cores, i32 worker) {
    (void)worker;
    cores_stay(cores);
}

void rank_cores_go(const struct rank_cores *c, struct pool *pool) {
    struct cores there = c->share;
    if (c->has) pool_run(pool, stay, &there);
}

void rank_cores_leave(const struct rank_cores *c, struct pool *pool) {
    struct cores there = c->before;
    if (c->has) pool_run(pool, stay, &there);
}
