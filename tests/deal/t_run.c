/* t_run.c - the dealer on threads: fake devices that sleep, with injected refusals, losses and hangs. */
#include "t.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/rng.h"
#include "deal/run.h"

enum { DEVICES = 3, LANES = 2, PARTS = 5, ROWS = 3000 };

enum fake { WELL, REFUSES_SOME, REFUSES_LARGE, REFUSES_ALL, LAUNCH_FAILS, LOST_IN_THE_MIDDLE, HANGS, BREAKS };

static pthread_mutex_t gate_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t gate_change = PTHREAD_COND_INITIALIZER;
static bool gate_open; /* pieces that hang end when it opens */
static i32 alive;      /* rigs that a run may use */

/* On the heap: threads that were left behind use it until ended(). */
struct rig {
    enum fake fake[DEVICES];
    i64 fails_at[DEVICES]; /* piece of the device, from 1 on */
    i64 count[DEVICES], largest;
    pthread_mutex_t lock;
    i32 first[PARTS + 1];
    u8 accepted[PARTS * ROWS];
    i64 scratch[DEVICES][LANES], sum; /* what a lane has computed; what counts */
    i64 seen;
    err accept_error;
};

static void rest(f64 seconds) {
    const struct timespec t = {.tv_nsec = (long)(seconds * 1e9)};
    nanosleep(&t, NULL);
}

static void hang(void) {
    pthread_mutex_lock(&gate_lock);
    while (!gate_open) pthread_cond_wait(&gate_change, &gate_lock);
    pthread_mutex_unlock(&gate_lock);
}

static i64 count(struct rig *r, i32 device) {
    pthread_mutex_lock(&r->lock);
    const i64 n = ++r->count[device];
    pthread_mutex_unlock(&r->lock);
    return n;
}

static err fault(struct rig *r, i32 device, const struct deal_piece *p) {
    const i64 n = count(r, device), at = r->fails_at[device];
    switch (r->fake[device]) {
    case REFUSES_SOME: return n <= at ? FAIL(E601, "no memory on device %d", device) : 0;
    case REFUSES_LARGE: return p->hi - p->lo > at ? FAIL(E601, "no memory on device %d", device) : 0;
    case REFUSES_ALL: return FAIL(E601, "no memory on device %d", device);
    case LAUNCH_FAILS: return n >= at ? FAIL(E831, "device %d refused a launch", device) : 0;
    case LOST_IN_THE_MIDDLE:
        if (n < at) return 0;
        rest(1e-4);
        return FAIL(E831, "device %d is lost", device);
    case HANGS:
        if (n >= at) hang();
        return 0;
    case BREAKS: return n >= at ? FAIL(E501, "the loss became infinite") : 0;
    default: return 0;
    }
}

/* The sum of the rows' numbers, in the buffer of the lane. */
static err piece(void *self, i32 device, i32 lane, const struct deal_piece *p) {
    struct rig *r = self;
    TRY(fault(r, device, p));
    rest((f64)(p->hi - p->lo) * 1e-6 * (1 + device));
    i64 sum = 0;
    for (i64 i = p->lo; i < p->hi; i++) sum += r->first[p->part] + i;
    r->scratch[device][lane] = sum;
    return 0;
}

static err accept(void *self, i32 device, i32 lane, const struct deal_piece *p) {
    struct rig *r = self;
    r->sum += r->scratch[device][lane];
    for (i64 i = p->lo; i < p->hi; i++) r->accepted[r->first[p->part] + i]++;
    if (++r->seen == 5 && r->accept_error < 0) return FAIL(E601, "no memory for results");
    return 0;
}

static void ended(void *self) {
    struct rig *r = self;
    pthread_mutex_destroy(&r->lock);
    mem_free(r);
    pthread_mutex_lock(&gate_lock);
    alive--;
    pthread_cond_broadcast(&gate_change);
    pthread_mutex_unlock(&gate_lock);
}

static struct rig *rig_new(void) {
    struct rig *r = mem_alloc(sizeof *r);
    assert_non_null(r);
    pthread_mutex_init(&r->lock, NULL);
    pthread_mutex_lock(&gate_lock);
    alive++;
    gate_open = false;
    pthread_mutex_unlock(&gate_lock);
    return r;
}

/* Opens the gate and waits until no thread uses a rig. */
static void all_ended(void) {
    pthread_mutex_lock(&gate_lock);
    gate_open = true;
    pthread_cond_broadcast(&gate_change);
    while (alive > 0) pthread_cond_wait(&gate_change, &gate_lock);
    pthread_mutex_unlock(&gate_lock);
}

struct outcome {
    err e;
    struct deal_ran ran;
    bool whole; /* every row counted once; else none more than once */
};

/* The rig is freed by the run: what counts of it is copied at the last moment by `look`, which is the job's ended(). */
struct spy {
    struct rig *r;
    u8 most, least;
    i64 sum;
};

static void look(struct spy *s, i64 rows) {
    s->most = 0;
    s->least = 255;
    for (i64 i = 0; i < rows; i++) {
        if (s->r->accepted[i] > s->most) s->most = s->r->accepted[i];
        if (s->r->accepted[i] < s->least) s->least = s->r->accepted[i];
    }
    s->sum = s->r->sum;
}

static void nothing(void *self) { (void)self; }

static struct outcome play(struct rig *r, u64 seed, f64 patience, const char *policy) {
    struct deal_device device[DEVICES];
    struct deal_part part[PARTS];
    struct dealer *d;
    struct outcome out = {0};
    struct spy spy = {.r = r};
    const bool may_hang = patience < 1;
    for (i32 i = 0; i < DEVICES; i++)
        device[i] = (struct deal_device){.rate = i == 1 ? 0 : 1e6 / (1 + i), .overhead_s = 1e-5, .lanes_most = LANES};
    for (i32 i = 0; i < PARTS; i++) {
        part[i] = (struct deal_part){(i64)(ROWS * rng_uniform(seed, RNG_TEST, 3, (u64)i)), 1};
        r->first[i + 1] = r->first[i] + (i32)part[i].rows;
    }
    const i64 rows = r->first[PARTS]; /* the run may free the rig */
    const struct deal_work work = {PARTS, part, 0, 8, NULL};
    const struct deal_job job = {r, piece, accept, may_hang ? ended : nothing, patience, 0};
    T_OK(deal_new(device, DEVICES, &work, policy, &d));
    out.e = deal_run(d, &job, &out.ran);
    if (!may_hang) {
        look(&spy, rows);
        assert_true(spy.most <= 1);
        out.whole = spy.least == 1 || rows == 0;
        if (out.whole) assert_int_equal(spy.sum, rows * (rows - 1) / 2);
    }
    if (out.e == 0) {
        i64 n, done = 0;
        const struct deal_piece *p = deal_results(d, &n);
        for (i64 i = 0; i < n; i++) done += p[i].hi - p[i].lo;
        assert_int_equal(done, rows);
        assert_int_equal(out.ran.pieces, n);
    }
    deal_free(d);
    if (!may_hang) ended(r);
    return out;
}

static i32 times(void) { return t_few() ? 10 : 100; }

/* The other devices do the work; with all devices failing, one sentence says so. */
static void inject(enum fake fake, i64 at, i32 devices, err ends_with) {
    static const char *const policies[] = {"auto", "guided", "finish", "whole"};
    for (i32 k = 0; k < times(); k++) {
        struct rig *r = rig_new();
        const i64 later = ends_with == 0 && fake != REFUSES_LARGE ? k % 3 : 0;
        for (i32 i = 0; i < devices; i++) r->fake[i] = fake, r->fails_at[i] = at + later;
        const struct outcome o = play(r, (u64)k, 30, policies[k % 4]);
        if (o.e != ends_with) fail_msg("case %d: %d, %s", k, o.e, err_last()->text);
        if (o.e == 0) assert_true(o.whole);
        if (o.e < 0) assert_true(strlen(err_last()->text) > 20 && !strchr(err_last()->text, '\n'));
        assert_int_equal(o.ran.left_behind, 0);
    }
    all_ended();
}

TEST(devices_that_work_do_every_row_once) { inject(WELL, 1, 0, 0); }
TEST(refused_memory_makes_pieces_smaller) {
    inject(REFUSES_SOME, 1, 2, 0);
    inject(REFUSES_LARGE, 100, 3, 0);
}
TEST(device_that_refuses_all_memory_leaves_the_work_to_the_others) { inject(REFUSES_ALL, 1, 2, 0); }
TEST(refused_launch_leaves_the_work_to_the_others) { inject(LAUNCH_FAILS, 1, 2, 0); }
TEST(loss_in_the_middle_leaves_the_work_to_the_others) { inject(LOST_IN_THE_MIDDLE, 1, 2, 0); }
TEST(run_without_a_device_left_ends_with_one_sentence) {
    inject(REFUSES_ALL, 1, 3, -E601);
    assert_non_null(strstr(err_last()->text, "no memory on device"));
    inject(LOST_IN_THE_MIDDLE, 1, 3, -E831);
    assert_non_null(strstr(err_last()->text, "is lost"));
}
TEST(any_other_error_stops_the_run) {
    inject(BREAKS, 1, 1, -E501);
    assert_string_equal(err_last()->text, "the loss became infinite");
}

TEST(error_while_a_result_is_accepted_stops_the_run) {
    struct rig *r = rig_new();
    r->accept_error = -E601;
    const struct outcome o = play(r, 4, 30, "auto");
    assert_int_equal(o.e, -E601);
    assert_string_equal(err_last()->text, "no memory for results");
    all_ended();
}

/* A hung lane is left behind; what it computes later is dropped, and its buffers live until it ends. */
TEST(lane_that_hangs_is_left_behind_and_its_late_result_is_dropped) {
    i32 finished = 0, left = 0;
    f64 longest = 0;
    for (i32 k = 0; k < times(); k++) {
        struct rig *r = rig_new();
        r->fake[k % 2] = HANGS;
        r->fails_at[k % 2] = 3 + k % 3; /* later than the first one, for which a device without a rate has a minute */
        const f64 begin = clock_now();
        const struct outcome o = play(r, (u64)k, 0.05, k % 3 ? "auto" : "guided");
        longest = dmax(longest, clock_now() - begin);
        finished += o.e == 0;
        left += o.ran.left_behind;
        if (o.e < 0) assert_int_equal(o.e, -E831);
        if (k % 10 == 9) all_ended();
    }
    all_ended();
    printf("%d of %d runs finished, %d threads were left behind, longest run %.2f s\n", finished, times(), left, longest);
    assert_true(finished > times() / 2 && left > 0);
}

/* The same through the eyes of the results: rows of a late lane count once, from the device that did them again. */
TEST(rows_of_a_hung_lane_are_done_by_the_others_once) {
    struct deal_device device[2] = {{.rate = 1e6, .overhead_s = 1e-5}, {.rate = 1e6, .overhead_s = 1e-5}};
    const struct deal_part part = {ROWS, 1};
    const struct deal_work work = {1, &part, 0, 1, NULL};
    struct dealer *d;
    struct deal_ran ran;
    struct rig *r = rig_new();
    r->fake[0] = HANGS;
    r->fails_at[0] = 2;
    const struct deal_job job = {r, piece, accept, ended, 0.05, 0};
    T_OK(deal_new(device, 2, &work, "auto", &d));
    T_OK(deal_run(d, &job, &ran));
    assert_int_equal(ran.lost, 1);
    assert_int_equal(ran.left_behind, 1);
    struct spy spy = {.r = r}; /* the hung thread has not ended: the rig is there */
    look(&spy, ROWS);
    assert_int_equal(spy.most, 1);
    assert_int_equal(spy.least, 1);
    assert_int_equal(spy.sum, (i64)ROWS * (ROWS - 1) / 2);
    deal_free(d); /* before the late thread comes back */
    all_ended();
}

static err sleeping_piece(void *self, i32 device, i32 lane, const struct deal_piece *p) {
    (void)lane;
    rest(p->cost / ((const f64 *)self)[device]);
    return 0;
}

TEST(dealer_goes_on_with_another_round_after_a_loss) {
    struct deal_device device[2] = {{.rate = 1e6, .lanes_most = 2}, {.rate = 1e6}};
    const struct deal_part part[2] = {{ROWS, 1}, {ROWS, 1}};
    const struct deal_work work = {2, part, 0, 1, NULL};
    struct dealer *d;
    struct deal_ran ran;
    struct rig *r = rig_new();
    r->first[1] = ROWS;
    r->fake[1] = LOST_IN_THE_MIDDLE;
    r->fails_at[1] = 3;
    const struct deal_job job = {r, piece, accept, nothing, 30, 0};
    T_OK(deal_new(device, 2, &work, "auto", &d));
    for (u8 round = 1; round <= 3; round++) {
        T_OK(deal_run(d, &job, &ran));
        for (i32 i = 0; i < 2 * ROWS; i++) assert_int_equal(r->accepted[i], round);
        T_OK(deal_again(d, NULL));
    }
    deal_free(d);
    ended(r);
    all_ended();
}

/* Speeds 1:1:2:4 that the dealer does not know, partitions 1/i; printed, because other programs run on this machine. */
TEST(makespan_of_sleeping_devices) {
    for (i32 p = 0; deal_policy_name(p); p++) {
        struct deal_device device[4];
        struct deal_part part[64];
        struct dealer *d;
        struct deal_ran ran;
        f64 rate[4] = {1e5, 1e5, 2e5, 4e5}, rows = 0;
        for (i32 i = 0; i < 4; i++) device[i] = (struct deal_device){.overhead_s = 60e-6};
        for (i32 i = 0; i < 64; i++) {
            part[i] = (struct deal_part){1 + 30000 / (1 + (i * 37) % 64), 1};
            rows += (f64)part[i].rows;
        }
        const struct deal_work work = {64, part, 0, 1, NULL};
        const struct deal_job job = {.self = rate, .piece = sleeping_piece};
        T_OK(deal_new(device, 4, &work, deal_policy_name(p), &d));
        T_OK(deal_run(d, &job, &ran));
        printf("%-7s %4d pieces, %.3f s, %.3f of the ideal\n", deal_policy_name(p), (i32)ran.pieces, ran.seconds,
               ran.seconds / (rows / 8e5));
        deal_free(d);
    }
}

T_MAIN(cmocka_unit_test(devices_that_work_do_every_row_once), cmocka_unit_test(refused_memory_makes_pieces_smaller),
       cmocka_unit_test(device_that_refuses_all_memory_leaves_the_work_to_the_others),
       cmocka_unit_test(refused_launch_leaves_the_work_to_the_others),
       cmocka_unit_test(loss_in_the_middle_leaves_the_work_to_the_others),
       cmocka_unit_test(run_without_a_device_left_ends_with_one_sentence), cmocka_unit_test(any_other_error_stops_the_run),
       cmocka_unit_test(error_while_a_result_is_accepted_stops_the_run),
       cmocka_unit_test(lane_that_hangs_is_left_behind_and_its_late_result_is_dropped),
       cmocka_unit_test(rows_of_a_hung_lane_are_done_by_the_others_once),
       cmocka_unit_test(dealer_goes_on_with_another_round_after_a_loss),
       cmocka_unit_test(makespan_of_sleeping_devices))
