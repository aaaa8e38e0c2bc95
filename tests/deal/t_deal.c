/* t_deal.c - the dealer alone: every row once under refusals, losses and lanes, memory, order of results, bad input, its cost. */
#include "t.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/rng.h"
#include "deal/deal.h"

enum { PARTS = 12, DEVICES = 6, LANES = 4 };

/* A case that is drawn at random, and what its lanes are doing. */
struct rig {
    u64 seed, draws;
    i32 n, nparts;
    struct deal_device device[DEVICES];
    struct deal_part part[PARTS];
    i32 home[PARTS];
    struct deal_work work;
    struct dealer *d;
    struct deal_piece piece[DEVICES][LANES];
    bool on[DEVICES][LANES], lost[DEVICES];
    f64 now;
    bool refuses[DEVICES]; /* all pieces */
    f64 p_refuse, p_lose;
};

static f64 draw(struct rig *r) { return rng_uniform(r->seed, RNG_TEST, 9, r->draws++); }
static i64 draw_to(struct rig *r, i64 n) { return lmin(n - 1, (i64)((f64)n * draw(r))); }

static void rig_work(struct rig *r) {
    r->nparts = (i32)draw_to(r, PARTS + 1);
    for (i32 i = 0; i < r->nparts; i++) {
        r->part[i] = (struct deal_part){draw(r) < 0.1 ? 0 : (i64)pow(10, 5 * draw(r)), pow(10, 2 * draw(r) - 1)};
        r->home[i] = (i32)draw_to(r, r->n + 1) - 1;
    }
    r->work = (struct deal_work){r->nparts, r->part, draw_to(r, 3) * 8, 1 + draw_to(r, 20), draw(r) < 0.3 ? r->home : NULL};
}

static void rig_devices(struct rig *r) {
    r->n = 1 + (i32)draw_to(r, DEVICES);
    r->p_refuse = draw(r) < 0.5 ? 0 : 0.2 * draw(r);
    r->p_lose = draw(r) < 0.5 ? 0 : 0.02;
    for (i32 i = 0; i < r->n; i++) {
        r->device[i] = (struct deal_device){.rate = draw(r) < 0.2 ? 0 : pow(10, 3 * draw(r)), .overhead_s = 1e-3 * draw(r)};
        r->device[i].free_bytes = draw(r) < 0.3 ? 1 + (i64)(1e5 * draw(r)) : 0;
        r->device[i].bytes_per_s = draw(r) < 0.3 ? 1e3 : 0;
        r->device[i].lanes_most = (i32)draw_to(r, LANES + 1);
        r->refuses[i] = draw(r) < 0.05;
    }
}

/* No slice above what two buffers per lane leave of 80 % of the memory, all lanes together. */
static void check_memory(struct rig *r, i32 device) {
    i64 rows = 0;
    for (i32 lane = 0; lane < LANES; lane++)
        if (r->on[device][lane]) rows += r->piece[device][lane].hi - r->piece[device][lane].lo;
    if (r->device[device].free_bytes > 0)
        assert_true(2.0 * (f64)(rows * r->work.row_bytes) <= 0.8 * (f64)r->device[device].free_bytes);
}

static void check_piece(const struct rig *r, const struct deal_piece *p) {
    const i64 rows = r->part[p->part].rows;
    assert_true(p->lo >= 0 && p->hi > p->lo && p->hi <= rows);
    assert_int_equal(p->lo % r->work.grain, 0);
    assert_true(p->hi % r->work.grain == 0 || p->hi == rows);
    assert_true(fabs(p->cost - (f64)(p->hi - p->lo) * r->part[p->part].cost) <= 1e-9 * p->cost);
}

/* Every idle lane asks; returns how many have a piece. */
static i32 ask_all(struct rig *r) {
    i32 busy = 0;
    for (i32 i = 0; i < r->n; i++)
        for (i32 lane = 0; lane < imax(1, r->device[i].lanes_most); lane++) {
            if (!r->on[i][lane]) {
                const int got = deal_next(r->d, i, lane, &r->piece[i][lane]);
                assert_true(got >= 0 && !(got == DEAL_PIECE && r->lost[i]));
                r->on[i][lane] = got == DEAL_PIECE;
                if (got == DEAL_PIECE) check_piece(r, &r->piece[i][lane]);
                if (got == DEAL_PIECE) check_memory(r, i);
            }
            busy += r->on[i][lane] && !r->lost[i];
        }
    return busy;
}

/* Something happens to one lane that is busy. */
static void step(struct rig *r, i32 device, i32 lane) {
    const struct deal_piece *p = &r->piece[device][lane];
    r->now += 1e-3 * draw(r);
    r->on[device][lane] = false;
    if (r->lost[device]) {
        assert_false(deal_done(r->d, device, lane, p, 1, r->now)); /* late */
    } else if (draw(r) < r->p_lose) {
        deal_lost(r->d, device);
        r->lost[device] = true;
        assert_false(deal_done(r->d, device, lane, p, 1, r->now));
    } else if (r->refuses[device] || draw(r) < r->p_refuse) {
        assert_true(deal_refused(r->d, device, lane, p));
        assert_false(deal_refused(r->d, device, lane, p));
    } else {
        assert_true(deal_done(r->d, device, lane, p, 1e-9 + p->cost * 1e-3 * draw(r), r->now));
        assert_false(deal_done(r->d, device, lane, p, 1, r->now));
    }
}

static void play(struct rig *r) {
    for (i64 steps = 0;; steps++) {
        const i32 busy = ask_all(r);
        if (deal_state(r->d) != DEAL_RUNNING) return;
        assert_true(busy > 0); /* else all wait for each other */
        assert_true(steps < 2000000);
        i32 pick = (i32)draw_to(r, r->n * LANES);
        while (!r->on[pick / LANES][pick % LANES]) pick = (pick + 1) % (r->n * LANES);
        step(r, pick / LANES, pick % LANES);
    }
}

/* Results follow each other by partition and row, and have every row once. */
static void check_results(struct rig *r) {
    i64 n, at = 0;
    const struct deal_piece *p = deal_results(r->d, &n);
    for (i32 part = 0; part < r->nparts; part++)
        for (i64 row = 0; row < r->part[part].rows; at++) {
            assert_true(at < n);
            assert_int_equal(p[at].part, part);
            assert_int_equal(p[at].lo, row);
            row = p[at].hi;
        }
    assert_int_equal(at, n);
}

static enum deal_state play_case(u64 seed, i32 rounds) {
    struct rig r = {.seed = seed};
    rig_devices(&r);
    rig_work(&r);
    const char *policy = deal_policy_name((i32)draw_to(&r, 9));
    T_OK(deal_new(r.device, r.n, &r.work, policy ? policy : "auto", &r.d));
    for (i32 k = 0; k < rounds; k++) {
        play(&r);
        if (deal_state(r.d) != DEAL_FINISHED) break;
        check_results(&r);
        if (k + 1 < rounds) T_OK(deal_again(r.d, NULL));
    }
    const enum deal_state state = deal_state(r.d);
    if (state == DEAL_STUCK)
        for (i32 i = 0; i < r.n; i++) {
            struct deal_report v;
            deal_report(r.d, i, &v);
            assert_int_not_equal(v.status, DEAL_IN);
        }
    deal_free(r.d);
    return state;
}

TEST(every_row_is_done_once_in_random_cases) {
    i32 finished = 0, stuck = 0;
    const i32 cases = t_few() ? 300 : 6000;
    for (i32 k = 0; k < cases; k++)
        if (play_case((u64)k, 1 + k % 3) == DEAL_FINISHED)
            finished++;
        else
            stuck++;
    printf("%d cases finished, in %d no device was left\n", finished, stuck);
    assert_true(finished > cases / 2 && stuck > 0);
}

/* A device that refuses all memory does nothing, and the other one with one lane does everything. */
TEST(device_that_refuses_all_memory_is_out_and_the_other_one_does_the_work) {
    for (i32 p = 0; deal_policy_name(p); p++) {
        struct rig r = {.seed = 5, .n = 2, .nparts = 3, .part = {{1000, 1}, {10, 2}, {500, 0.5}}};
        r.device[0] = (struct deal_device){.rate = 10, .lanes_most = 3};
        r.device[1] = (struct deal_device){.rate = 1};
        r.refuses[0] = true;
        r.work = (struct deal_work){.nparts = 3, .part = r.part, .grain = 10};
        T_OK(deal_new(r.device, 2, &r.work, deal_policy_name(p), &r.d));
        play(&r);
        assert_int_equal(deal_state(r.d), DEAL_FINISHED);
        check_results(&r);
        struct deal_report v;
        deal_report(r.d, 0, &v);
        assert_int_equal(v.status, DEAL_REFUSED);
        assert_int_equal(v.pieces, 0);
        deal_free(r.d);
    }
}

TEST(pieces_are_halved_until_the_device_accepts_them) {
    struct deal_piece piece;
    struct deal_report v;
    struct dealer *d;
    const struct deal_part part = {1024, 1};
    const struct deal_device device = {.rate = 1};
    const struct deal_work work = {1, &part, 1, 16, NULL};
    T_OK(deal_new(&device, 1, &work, "pull", &d));
    i64 rows = 1024;
    for (i32 k = 0; k < 6; k++, rows /= 2) {
        assert_int_equal(deal_next(d, 0, 0, &piece), DEAL_PIECE);
        assert_int_equal(piece.hi - piece.lo, rows);
        assert_true(deal_refused(d, 0, 0, &piece));
    }
    assert_int_equal(deal_next(d, 0, 0, &piece), DEAL_PIECE);
    assert_int_equal(piece.hi - piece.lo, 16);
    assert_true(deal_refused(d, 0, 0, &piece));
    assert_int_equal(deal_state(d), DEAL_STUCK);
    assert_int_equal(deal_next(d, 0, 0, &piece), DEAL_NONE);
    deal_report(d, 0, &v);
    assert_int_equal(v.status, DEAL_REFUSED);
    assert_int_equal(v.refused, 7);
    deal_free(d);
}

/* Memory that others have given back is found again. */
TEST(pieces_grow_again_after_64_without_a_refusal) {
    struct deal_piece piece, old = {0};
    struct dealer *d;
    const struct deal_part part = {4096, 1};
    const struct deal_device device = {.rate = 1};
    const struct deal_work work = {1, &part, 0, 1, NULL};
    T_OK(deal_new(&device, 1, &work, "pull", &d));
    for (i32 k = 0; k < 8; k++) {
        assert_int_equal(deal_next(d, 0, 0, &piece), DEAL_PIECE);
        assert_true(deal_refused(d, 0, 0, &piece));
    }
    for (i32 k = 0; k < 65; k++) {
        assert_int_equal(deal_next(d, 0, 0, &piece), DEAL_PIECE);
        assert_int_equal(piece.hi - piece.lo, k < 64 ? 16 : 32);
        if (k > 0) assert_false(deal_done(d, 0, 0, &old, 1, k)); /* a piece that the lane had before */
        assert_true(deal_done(d, 0, 0, &piece, 1, k));
        old = piece;
    }
    deal_free(d);
}

TEST(lost_device_gives_its_pieces_back_in_order) {
    struct deal_piece a, b;
    struct dealer *d;
    const struct deal_part part[3] = {{10, 1}, {20, 1}, {30, 1}};
    const struct deal_device device[2] = {{.rate = 1, .lanes_most = 2}, {.rate = 1}};
    const struct deal_work work = {3, part, 0, 1, NULL};
    T_OK(deal_new(device, 2, &work, "pull", &d));
    assert_int_equal(deal_next(d, 0, 0, &a), DEAL_PIECE);
    assert_int_equal(deal_next(d, 0, 1, &b), DEAL_PIECE);
    assert_int_equal(a.part, 0);
    assert_int_equal(b.part, 1);
    deal_lost(d, 0);
    for (i32 k = 0; k < 3; k++) {
        assert_int_equal(deal_next(d, 1, 0, &b), DEAL_PIECE);
        assert_int_equal(b.part, k);
        assert_true(deal_done(d, 1, 0, &b, 1, 2));
    }
    assert_false(deal_done(d, 0, 0, &a, 1, 3));
    assert_int_equal(deal_state(d), DEAL_FINISHED);
    deal_free(d);
}

TEST(device_without_a_measured_rate_gets_small_pieces) {
    struct deal_piece a, b;
    struct dealer *d;
    const struct deal_part part = {1000000, 1};
    const struct deal_device device[2] = {{.rate = 1000, .overhead_s = 1e-3}, {.rate = 0}};
    const struct deal_work work = {1, &part, 0, 1, NULL};
    T_OK(deal_new(device, 2, &work, "auto", &d));
    assert_int_equal(deal_next(d, 0, 0, &a), DEAL_PIECE);
    const f64 first = a.cost;
    assert_true(first <= 20 * 1e-3 * 1000);
    assert_int_equal(deal_next(d, 1, 0, &b), DEAL_PIECE);
    assert_true(b.cost <= 1e6 / 4096);
    assert_true(deal_done(d, 0, 0, &a, 1e-3 + first / 1000, 1));
    assert_int_equal(deal_next(d, 0, 0, &a), DEAL_PIECE);
    assert_true(a.cost <= 2 * first); /* the other one may be far faster than the mean */
    assert_true(deal_done(d, 1, 0, &b, 1e-3 + b.cost / 1000, 2));
    assert_true(deal_done(d, 0, 0, &a, 1e-3 + a.cost / 1000, 3));
    assert_int_equal(deal_next(d, 0, 0, &a), DEAL_PIECE);
    assert_true(a.cost > 4 * first);
    deal_free(d);
}

TEST(bad_input_is_refused) {
    struct dealer *d;
    const struct deal_part part = {10, 1}, negative = {-1, 1}, free_of_cost = {10, 0};
    const i32 nowhere = 7;
    const struct deal_device device = {.rate = 1}, bad_rate = {.rate = -1}, bad_lanes = {.lanes_most = 99};
    T_FAILS(deal_new(&device, 1, &(struct deal_work){1, &part, 0, 1, NULL}, "guidet", &d), E103);
    assert_null(d);
    assert_string_equal(err_last()->fix, "guided");
    T_FAILS(deal_new(&device, 0, &(struct deal_work){1, &part, 0, 1, NULL}, "auto", &d), E401);
    T_FAILS(deal_new(&bad_rate, 1, &(struct deal_work){1, &part, 0, 1, NULL}, "auto", &d), E401);
    T_FAILS(deal_new(&bad_lanes, 1, &(struct deal_work){1, &part, 0, 1, NULL}, "auto", &d), E401);
    T_FAILS(deal_new(&device, 1, &(struct deal_work){1, &part, 0, 0, NULL}, "auto", &d), E401);
    T_FAILS(deal_new(&device, 1, &(struct deal_work){1, &negative, 0, 1, NULL}, "auto", &d), E401);
    T_FAILS(deal_new(&device, 1, &(struct deal_work){1, &free_of_cost, 0, 1, NULL}, "auto", &d), E401);
    T_FAILS(deal_new(&device, 1, &(struct deal_work){1, &part, 0, 1, &nowhere}, "auto", &d), E401);
    for (i64 n = 1; n < 6; n++) {
        mem_fail_nth(n);
        T_FAILS(deal_new(&device, 1, &(struct deal_work){1, &part, 0, 1, (const i32[]){0}}, "auto", &d), E601);
        assert_null(d);
    }
    mem_fail_nth(0);
}

TEST(no_work_is_finished_at_once) {
    struct dealer *d;
    struct deal_piece p;
    i64 n;
    const struct deal_device device = {.rate = 1};
    const struct deal_work work = {0, NULL, 0, 1, NULL};
    T_OK(deal_new(&device, 1, &work, "auto", &d));
    assert_int_equal(deal_state(d), DEAL_FINISHED);
    assert_int_equal(deal_next(d, 0, 0, &p), DEAL_NONE);
    (void)deal_results(d, &n);
    assert_int_equal(n, 0);
    deal_free(d);
}

/* Printed, not asserted: other programs run on this machine. */
TEST(cost_of_a_piece_in_nanoseconds) {
    static const i32 devices[] = {4, 17, 256};
    for (size_t k = 0; k < COUNT(devices); k++)
        for (i32 p = 0; deal_policy_name(p); p++) {
            struct deal_device device[256];
            static struct deal_part part[20000];
            struct deal_piece piece;
            struct dealer *d;
            for (i32 i = 0; i < devices[k]; i++) device[i] = (struct deal_device){.rate = 1 + i % 3, .overhead_s = 1};
            for (i32 i = 0; i < 20000; i++) part[i] = (struct deal_part){100 + i % 1000, 1};
            const struct deal_work work = {20000, part, 0, 1, NULL};
            const f64 begin = clock_now();
            T_OK(deal_new(device, devices[k], &work, deal_policy_name(p), &d));
            const f64 made = clock_now();
            i64 pieces = 0;
            for (i32 i = 0; deal_state(d) == DEAL_RUNNING; i = (i + 1) % devices[k])
                if (deal_next(d, i, 0, &piece) == DEAL_PIECE) {
                    pieces++;
                    deal_done(d, i, 0, &piece, piece.cost / device[i].rate + 1, (f64)pieces);
                }
            printf("%3d devices %-7s %6d pieces, %5.0f ns each, and %5.0f ns to begin\n", devices[k], deal_policy_name(p),
                   (i32)pieces, 1e9 * (clock_now() - made) / (f64)pieces, 1e9 * (made - begin) / (f64)pieces);
            deal_free(d);
        }
}

T_MAIN(cmocka_unit_test(every_row_is_done_once_in_random_cases),
       cmocka_unit_test(device_that_refuses_all_memory_is_out_and_the_other_one_does_the_work),
       cmocka_unit_test(pieces_are_halved_until_the_device_accepts_them),
       cmocka_unit_test(pieces_grow_again_after_64_without_a_refusal),
       cmocka_unit_test(lost_device_gives_its_pieces_back_in_order),
       cmocka_unit_test(device_without_a_measured_rate_gets_small_pieces), cmocka_unit_test(bad_input_is_refused),
       cmocka_unit_test(no_work_is_finished_at_once), cmocka_unit_test(cost_of_a_piece_in_nanoseconds))
