/* shares.c - shares of the rows per rank: a list, or the GPU loads by which the scheduler chose the nodes. */
#include "api/shares.h"

#include <stdio.h>
#include <string.h>

/* Message of a rank: the GPU loads of its node, or the error if there are none. */
struct node_load {
    struct gpuload_state state;
    struct err_record why;
};

static err look(const char *pattern, const char *named, struct gpuload_state *out) {
    char node[GPULOAD_NODE];
    struct str path = {0};
    if (named && strcmp(named, "auto") != 0) snprintf(node, sizeof node, "%s", named);
    else gpuload_node(node);
    err e = gpuload_path(pattern, node, &path);
    if (e >= 0) e = gpuload_need(str_text(&path), node, out);
    str_free(&path);
    return e;
}

err shares_gather(struct comm *comm, const char *pattern, const char *node, struct gpuload_state *all) {
    const i32 ranks = comm_size(comm);
    struct node_load *mine, *loads;
    NEW(mine, 1);
    err e = mem_new((void **)&loads, ranks, sizeof *loads);
    if (e >= 0 && look(pattern, node, &mine->state) < 0) mine->why = *err_last();
    if (e >= 0) e = comm_allgather(comm, "gpu loads", mine, sizeof *mine, loads);
    for (i32 k = 0; k < ranks && e >= 0; k++) {
        all[k] = loads[k].state;
        if (loads[k].why.code == 0) continue;
        err_put(&loads[k].why);
        e = -loads[k].why.code;
    }
    mem_free(loads);
    mem_free(mine);
    return e;
}

/* True if the text is a list of numbers; otherwise it is the name of a file. */
static bool numbers(const char *text, i32 *n, f64 *share) {
    char item[64];
    *n = 0;
    for (const char *p = text; str_list_next(&p, item, sizeof item); ++*n) {
        f64 v;
        if (!str_to_f64(item, strlen(item), '.', &v)) return false;
        if (*n < COMM_RANKS) share[*n] = v;
    }
    return *n > 0;
}

static err check(const char *text, i32 n, i32 ranks, const f64 *share) {
    static const char option[] = "--rank-shares", fix[] = "a share for each rank, above 0, at most 1: --rank-shares 1,0.4";
    if (n != ranks)
        return FAIL_AT(E103, option, fix, "\"%.60s\" has %d share%s, and there %s %d rank%s", text, n, n > 1 ? "s" : "",
                       ranks > 1 ? "are" : "is", ranks, ranks > 1 ? "s" : "");
    for (i32 i = 0; i < n; i++)
        if (!(share[i] > 0 && share[i] <= 1))
            return FAIL_AT(E103, option, fix, "\"%.60s\": share %d is %g", text, i + 1, share[i]);
    return 0;
}

static err of_nodes(const struct options *o, struct comm *comm, i32 ranks, f64 *share, struct str *from) {
    const char *pattern = strcmp(o->rank_shares, "gpuload") == 0 ? GPULOAD_STATE : o->rank_shares;
    struct gpuload_state *state;
    bool recorded = false;
    NEW(state, ranks);
    err e = shares_gather(comm, pattern, NULL, state);
    for (i32 k = 0; k < ranks && e >= 0; k++) {
        const struct gpuload_state *s = &state[comm ? k : 0]; /* threads are all on this node */
        share[k] = gpuload_share(gpuload_level(s));
        recorded = recorded || strcmp(s->source, GPULOAD_NVML) != 0;
    }
    mem_free(state);
    str_addf(from, "GPU loads%s of %s", recorded ? " (recorded)" : "", pattern);
    return e < 0 ? e : str_ok(from);
}

err shares_of_ranks(const struct options *o, struct comm *comm, i32 ranks, f64 *share, bool *even, struct str *from) {
    i32 n;
    *even = strcmp(o->rank_shares, "even") == 0;
    if (*even) return 0;
    if (numbers(o->rank_shares, &n, share)) {
        /* The number of ranks must match a flag only: config.json of a resumed run may be for another number. */
        const bool stale = n != ranks && o->meta[OPT_rank_shares].rank < OPT_RANK_FLAG;
        if (!stale) TRY(check(o->rank_shares, n, ranks, share));
        for (i32 k = 0; k < ranks && stale; k++) share[k] = 1;
        if (stale) str_addf(from, "those of the config file are for %d", n);
        else str_add(from, "--rank-shares");
    } else if (ranks > 1) TRY(of_nodes(o, comm, ranks, share, from));
    else share[0] = 1; /* a single rank has all rows, whatever its load */
    *even = true;
    for (i32 k = 1; k < ranks; k++) *even = *even && share[k] == share[0];
    return str_ok(from);
}
