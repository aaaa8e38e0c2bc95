/* t_row_places.c - where the rows of a batch lie on a device: a pass needs no more places than it has rows, and no row takes the
 * place of one that tasks still use, whatever cuts the plan. */
#include "t.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "model/nets.h"
#include "plan/request.h"
#include "plan/rows.h"

static struct plan *plan_in(const char *text, i32 B, const char *parallel, i32 passes) {
    struct plan *p;
    nets_short(&net, (struct shape){.T = 5, .I = 3, .H = 40, .w = 5}, CELL_LSTM, "loss_mse");
    struct plan_request q = request(text, B, parallel);
    q.passes = passes;
    T_OK(plan_make(&q, &p));
    return p;
}

/* Runs the plan: while a run of rows is used, from its first task to its last one, each of its places has that row alone. */
static void check_places(const struct plan *p, const bool *mine, const struct row_map *m) {
    i32 *owner = mem_alloc((size_t)m->places * sizeof *owner), b0, b1;
    for (i32 k = 0; k < m->places; k++) owner[k] = -1;
    for (u32 i = 0; i < p->ntask; i++) {
        if ((mine && !mine[i]) || !plan_rows_of(p, &p->task[i], &b0, &b1)) continue;
        const struct row_run *r = &m->run[m->of[b0]];
        assert_in_range(i, r->first, r->last);
        assert_true(b0 >= r->b0 && b1 <= r->b1);
        assert_int_equal(r->row0 % p->grain, 0);
        for (i32 b = b0; b < b1; b++) {
            assert_in_range(b - r->row0, 0, m->places - 1);
            const i32 was = owner[b - r->row0];
            if (was >= 0 && was != b && m->run[m->of[was]].last >= i)
                fail_msg("%s: task %u uses row %d where row %d still lies", p->strategy, i, b, was);
            owner[b - r->row0] = b;
        }
    }
    mem_free(owner);
}

static void check(const char *text, i32 B, const char *parallel, i32 passes, i32 places) {
    struct arena a = {0};
    struct row_map m;
    struct plan *p = plan_in(text, B, parallel, passes);
    T_OK(plan_rows(p, NULL, false, &a, &m));
    check_places(p, NULL, &m);
    assert_true(places == B || netplan(p)->passes > 1);
    if (m.places != places)
        fail_msg("%s of %d in %d passes on %s: %d places, not %d", parallel, B, passes, text, m.places, places);
    assert_int_equal(m.again, places < B);
    arena_free(&a);
    plan_free(p);
}

TEST(a_pass_needs_places_for_its_own_rows) {
    check("cpu", 64, "serial", 0, 64);
    check("cpu", 64, "serial", 2, 32);
    check("cpu", 64, "serial", 4, 16);
    check("cpu", 64, "serial", 8, 8);
    check("cpu", 64, "serial", 100, 8); /* a pass is a micro-batch at least */
    check("cpu", 60, "serial", 4, 16);  /* the last micro-batch is shorter */
    check("cpu", 7, "serial", 3, 3);
}

TEST(lanes_have_places_of_their_own) {
    check("cpu*2", 64, "data:2", 4, 16);
    check("cpu*3", 64, "data:3", 2, 40); /* 24, 24 and 16 rows: 16, 16 and 8 in a pass */
    check("cpu*2", 64, "unit:2", 4, 64); /* two devices use each row */
    check("cpu*4", 64, "data:2*unit:2", 4, 64);
}

static bool *tasks_of(const struct plan *p, i32 rank) {
    bool *mine = mem_alloc(p->ntask * sizeof *mine);
    for (u32 i = 0; i < p->ntask; i++) mine[i] = p->place[p->task[i].device].rank == rank;
    return mine;
}

/* A stage has as many micro-batches at a time as there are stages from it on. */
TEST(rows_that_are_used_at_a_time_have_places_of_their_own) {
    struct plan *p = plan_in("host*2(cpu)", 64, "pipeline:2", 0);
    for (i32 rank = 0; rank < 2; rank++) {
        struct arena a = {0};
        struct row_map m;
        bool *mine = tasks_of(p, rank);
        T_OK(plan_rows(p, mine, false, &a, &m));
        check_places(p, mine, &m);
        assert_int_equal(m.places, rank == 0 ? 16 : 8);
        arena_free(&a);
        mem_free(mine);
    }
    plan_free(p);
}

TEST(rows_of_a_rank_begin_at_the_first) {
    struct arena a = {0};
    struct row_map m;
    struct plan *p = plan_in("host*2(cpu)", 64, "data:2", 0);
    bool *mine = tasks_of(p, 1);
    T_OK(plan_rows(p, mine, false, &a, &m));
    assert_int_equal(m.places, 32);
    assert_int_equal(m.b0, 32);
    assert_int_equal(m.run[0].row0, 32);
    assert_false(m.again);
    T_OK(plan_rows(p, mine, true, &a, &m)); /* messages carry rows */
    assert_int_equal(m.places, 64);
    assert_int_equal(m.run[0].row0, 0);
    arena_free(&a);
    mem_free(mine);
    plan_free(p);
}

T_MAIN(cmocka_unit_test(a_pass_needs_places_for_its_own_rows), cmocka_unit_test(lanes_have_places_of_their_own),
       cmocka_unit_test(rows_that_are_used_at_a_time_have_places_of_their_own),
       cmocka_unit_test(rows_of_a_rank_begin_at_the_first))
