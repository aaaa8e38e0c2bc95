/* bodies.h - rank functions shared by the tests of several transports. The including test defines RANKS and struct rank. */
#ifndef STRETTO_TESTS_COMM_BODIES_H
#define STRETTO_TESTS_COMM_BODIES_H

#include <string.h>

#include "comm/comm.h"

/* Several rounds of all-to-all messages; then rank 0 sends the number 77 to all. */
static err gather_and_share(const struct rank *r, u64 turns, u64 *told) {
    const u64 me = (u64)comm_rank(r->comm);
    u64 all[RANKS];
    *told = me == 0 ? 77 : 0;
    for (u64 i = 0; i < turns; i++) {
        u64 mine = me * 1000 + i;
        TRY(comm_allgather(r->comm, "numbers", &mine, sizeof mine, all));
        for (u64 k = 0; k < RANKS; k++)
            if (all[k] != k * 1000 + i) return FAIL(E1, "turn %llu: rank %llu sent %llu", (unsigned long long)i,
                                                    (unsigned long long)k, (unsigned long long)all[k]);
    }
    return comm_broadcast(r->comm, "told", told, sizeof *told);
}

static err other_words(struct rank *r) {
    u64 mine = 1, all[RANKS];
    return comm_allgather(r->comm, comm_rank(r->comm) == 2 ? "apples" : "pears", &mine, sizeof mine, all);
}

/* The first rank to notice reports it to all. */
static void other_words_are_named(const struct rank *r) {
    for (i32 k = 0; k < RANKS; k++) {
        assert_int_equal(r[k].e, -E804);
        assert_non_null(strstr(r[k].why.text, "pears"));
        assert_non_null(strstr(r[k].why.text, "apples"));
    }
}

/* Rank 1 never sends: the others time out and name the rank and the message. */
static err stay_away(struct rank *r) {
    u64 mine = 1, all[RANKS];
    comm_set_deadline(r->comm, t_few() ? 10 : 0.3);
    return comm_rank(r->comm) == 1 ? 0 : comm_allgather(r->comm, "roll", &mine, sizeof mine, all);
}

static void who_stays_away_is_named(const struct rank *r) {
    for (i32 k = 0; k < RANKS; k++) {
        if (k == 1) continue;
        assert_int_equal(r[k].e, -E801);
        if (strstr(r[k].why.text, "rank 1 (host ") && strstr(r[k].why.text, "roll")) continue;
        fail_msg("rank %d says: %s", k, r[k].why.text);
    }
}

#endif
