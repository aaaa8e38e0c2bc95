/* t_team.c - a team that splits a recurrent layer by units gives the bits of one thread: every instruction set and cell, more
 * members than panels or cores, one step or many, ragged, in time slices, folded or ahead. */
#include "t.h"

#include "base/mem.h"
#include "kern/layer_args.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

struct crew {
    struct bench *e;
    const struct cell_kern *k;
    i32 n, slices;
    u64 base;
    char *fwd_flag, *bwd_flag;
};
struct member {
    struct crew *crew;
    i32 me;
    pthread_t thread;
};

static i32 cut(i32 T, i32 q, i32 n) { return (i32)((i64)T * q / n); }

static void *member_main(void *arg) {
    const struct member *m = arg;
    const struct crew *c = m->crew;
    struct cell_args x = c->e->box;
    const i32 n = imin(c->slices, x.T);
    struct cell_team team = {.me = m->me, .n = c->n, .base = c->base, .flag = c->fwd_flag};
    x.team = &team;
    for (i32 q = 0; q < n; q++, team.base += (u64)x.T + 1) c->k->fwd(&x, 0, x.B, cut(x.T, q, n), cut(x.T, q + 1, n));
    team.flag = c->bwd_flag;
    for (i32 q = n - 1; q >= 0; q--, team.base += (u64)x.T + 1) {
        c->k->bwd(&x, 0, x.B, cut(x.T, q, n), cut(x.T, q + 1, n));
        c->k->dw(&x, 0, x.B, cut(x.T, q, n), cut(x.T, q + 1, n), c->e->dw, c->e->dbias);
    }
    return NULL;
}

/* Runs twice with the same flags, which then keep the values of the first run. */
static void run_shared(struct bench *e, const struct cell_kern *k, i32 n, i32 slices) {
    static _Alignas(64) char flags[2][TEAM_MAX * TEAM_LINE];
    memset(flags, 0, sizeof flags);
    k->prep(e->box.I, e->box.H, e->w, e->wt);
    struct crew c = {e, k, n, slices, 0, flags[0], flags[1]};
    for (i32 round = 0; round < 2; round++, c.base += 2 * (u64)(slices + 1) * (u64)(e->box.T + 1)) {
        memset(e->dw, 0, (size_t)e->dw_n * sizeof *e->dw), memset(e->dbias, 0, (size_t)e->db_n * sizeof *e->dbias);
        struct member m[TEAM_MAX];
        for (i32 me = 0; me < n; me++) {
            m[me] = (struct member){.crew = &c, .me = me};
            assert_int_equal(pthread_create(&m[me].thread, NULL, member_main, &m[me]), 0);
        }
        for (i32 me = 0; me < n; me++) pthread_join(m[me].thread, NULL);
    }
}

static void run_alone(struct bench *e, const struct cell_kern *k) {
    k->prep(e->box.I, e->box.H, e->w, e->wt);
    k->fwd(&e->box, 0, e->box.B, 0, e->box.T);
    k->bwd(&e->box, 0, e->box.B, 0, e->box.T);
    k->dw(&e->box, 0, e->box.B, 0, e->box.T, e->dw, e->dbias);
}

static void check(enum cell_kind kind, const struct shape *s, i32 n, i32 slices, u32 how) {
    if (t_few() && (n > 3 || s->T * s->B > 40)) return;
    for (enum kern_arch a = 0; a < KERN_NARCH; a++) {
        if (!kern_get(a)) continue;
        char what[160];
        snprintf(what, sizeof what, "%s %s T%d B%d I%d H%d%s, %d members, %d slices, how %u", kern_arch_name(a), kind_name[kind],
                 s->T, s->B, s->I, s->H, s->ragged ? " ragged" : "", n, slices, how);
        const struct cell_kern *k = &kern_get(a)->cell[kind];
        struct bench one, many;
        bench_new(&one, k, kind, s), bench_new(&many, k, kind, s);
        bench_fill(&one), bench_fill(&many);
        many.box.how = how;
        run_alone(&one, k);
        if (slices > 1) { /* dW adds up in the order of the slices */
            memset(one.dw, 0, (size_t)one.dw_n * sizeof *one.dw), memset(one.dbias, 0, (size_t)one.db_n * sizeof *one.dbias);
            for (i32 q = imin(slices, s->T) - 1; q >= 0; q--)
                k->dw(&one.box, 0, s->B, cut(s->T, q, imin(slices, s->T)), cut(s->T, q + 1, imin(slices, s->T)), one.dw,
                      one.dbias);
        }
        run_shared(&many, k, n, slices);
        bench_same_bits(what, &one, &many);
        bench_same_dw(what, &one, &many);
        bench_free(&one), bench_free(&many);
    }
}

static const i32 members[] = {1, 2, 3, 5};

TEST(team_gives_the_bits_of_one_at_every_width) {
    const i32 H[] = {16, 50, 64, 130}, B[] = {1, 2, 7};
    for (enum cell_kind kind = 0; kind < CELL_NKIND; kind++)
        for (size_t n = 0; n < COUNT(members); n++)
            for (size_t h = 0; h < COUNT(H); h++)
                for (size_t b = 0; b < COUNT(B); b++) {
                    const struct shape s = {
                        .T = h % 2 ? 2 : 5, .B = B[b], .I = b ? 13 : 70, .H = H[h], .state = (h + b) % 2, .dend = n % 2};
                    check(kind, &s, members[n], 1, (u32)(h + b + n) % 3);
                }
}

TEST(team_gives_the_bits_of_one_at_one_step) {
    for (enum cell_kind kind = 0; kind < CELL_NKIND; kind++)
        for (size_t n = 0; n < COUNT(members); n++) {
            check(kind, &(struct shape){.T = 1, .B = 2, .I = 8, .H = 50, .state = true, .dend = true}, members[n], 1, CELL_AHEAD);
            check(kind, &(struct shape){.T = 1, .B = 1, .I = 1, .H = 130}, members[n], 1, CELL_FOLD);
        }
}

TEST(team_gives_the_bits_of_one_over_long_time_in_slices) {
    for (enum cell_kind kind = 0; kind < CELL_NKIND; kind++)
        for (size_t n = 0; n < COUNT(members); n++) {
            check(kind, &(struct shape){.T = 100, .B = 1, .I = 8, .H = 64, .state = true}, members[n], 1, 0);
            check(kind, &(struct shape){.T = 100, .B = 2, .I = 8, .H = 50, .dend = true, .no_dx = true}, members[n], 3, 0);
            check(kind, &(struct shape){.T = 100, .B = 7, .I = 3, .H = 50, .ragged = true, .state = true, .dend = true},
                  members[n], 4, 0);
            check(kind, &(struct shape){.T = 20, .B = 2, .I = 3, .H = 130, .ragged = true, .no_dy = true, .dend = true},
                  members[n], 2, 2);
        }
}

T_MAIN(cmocka_unit_test(team_gives_the_bits_of_one_at_every_width), cmocka_unit_test(team_gives_the_bits_of_one_at_one_step),
       cmocka_unit_test(team_gives_the_bits_of_one_over_long_time_in_slices))
