/* t_comm.c - messages between ranks as threads: small collectives, order, and the errors if ranks disagree, are late or cannot
 * connect. */
#define _GNU_SOURCE
#include "t.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "comm/faulty.h"

enum { RANKS = 5, MANY = 3000 };

struct rank {
    struct comm *comm;
    err (*body)(struct rank *r);
    err e;
    struct err_record why;
    pthread_t thread;
    u64 sum;
};

#include "bodies.h"

/* Assertions are allowed on the test's own thread only. */
static void *live(void *self) {
    struct rank *r = self;
    r->e = comm_connect(r->comm);
    if (r->e >= 0) r->e = r->body(r);
    if (r->e < 0) r->why = *err_last();
    if (r->e < 0) comm_abort(r->comm);
    return NULL;
}

static void run(err (*body)(struct rank *r), struct rank *r) {
    struct comm *comm[RANKS];
    T_OK(comm_threads(RANKS, comm));
    for (i32 k = 0; k < RANKS; k++) {
        r[k] = (struct rank){.comm = comm[k], .body = body};
        assert_int_equal(pthread_create(&r[k].thread, NULL, live, &r[k]), 0);
    }
    for (i32 k = 0; k < RANKS; k++) pthread_join(r[k].thread, NULL);
}

static void end(struct rank *r) {
    for (i32 k = 0; k < RANKS; k++) comm_free(r[k].comm);
}

static err numbers(struct rank *r) {
    TRY(gather_and_share(r, 200, &r->sum));
    return comm_check_equal(r->comm, "options", 42, NULL);
}

TEST(ranks_gather_and_share) {
    static struct rank r[RANKS];
    run(numbers, r);
    for (i32 k = 0; k < RANKS; k++) {
        T_OK(r[k].e);
        assert_int_equal(r[k].sum, 77);
        assert_int_equal(comm_rank_info(r[k].comm, 3)->pid, getpid());
        assert_int_equal(comm_rank_info(r[0].comm, k)->rank, k);
    }
    assert_string_equal(comm_transport(r[0].comm), "threads");
    end(r);
}

/* More than one message holds: what lies on both sides of the border arrives. */
static err long_share(struct rank *r) {
    enum { WORDS = (1 << 23) + 3, BORDER = 1 << 23, ROOT = 2 };
    const i64 at[] = {0, BORDER - 1, BORDER, WORDS - 1};
    u64 *word;
    NEW(word, WORDS);
    for (size_t i = 0; i < COUNT(at) && comm_rank(r->comm) == ROOT; i++) word[at[i]] = i + 1;
    const err e = comm_broadcast_from(r->comm, ROOT, "long", word, (i64)sizeof *word * WORDS);
    for (size_t i = 0; i < COUNT(at); i++) r->sum += word[at[i]] == i + 1;
    mem_free(word);
    return e;
}

TEST(ranks_share_what_is_longer_than_a_message) {
    static struct rank r[RANKS];
    run(long_share, r);
    for (i32 k = 0; k < RANKS; k++) {
        T_OK(r[k].e);
        assert_int_equal(r[k].sum, 4);
    }
    end(r);
}

/* More messages in flight than a ring has entries: they arrive in order. */
static err many_job(struct comm *c, void *arg) {
    struct rank *r = arg;
    static struct comm_message message[RANKS][MANY];
    static u64 number[RANKS][MANY];
    struct comm_message *m = message[comm_rank(c)];
    for (u32 i = 0; i < MANY; i++) {
        m[i] = (struct comm_message){.head = {.serial = 9, .number = i, .bytes = 8, .name = "n"}};
        m[i].data = &number[comm_rank(c)][i];
        m[i].sends = comm_rank(c) == 0;
        m[i].peer = 1 - comm_rank(c);
        number[comm_rank(c)][i] = m[i].sends ? 3 * i : 0;
        TRY(comm_post(c, &m[i]));
    }
    for (u32 left = MANY; left > 0;) {
        bool moved = false;
        left = 0;
        for (u32 i = 0; i < MANY; i++) {
            bool before = m[i].done, done;
            TRY(comm_test(c, &m[i], &done));
            moved = moved || done != before;
            left += !done;
        }
        if (left) TRY(comm_idle(c, moved, &m[0]));
    }
    for (u32 i = 0; i < MANY; i++) r->sum += number[comm_rank(c)][i] == 3 * i;
    return 0;
}

static err many(struct rank *r) {
    if (comm_rank(r->comm) > 1) return 0;
    comm_begin(r->comm, many_job, r);
    return comm_end(r->comm);
}

TEST(messages_of_a_pair_keep_their_order) {
    static struct rank r[RANKS];
    run(many, r);
    T_OK(r[0].e);
    T_OK(r[1].e);
    assert_int_equal(r[1].sum, MANY);
    end(r);
}

static err disagree(struct rank *r) {
    return comm_check_equal(r->comm, "data", comm_rank(r->comm) == 3 ? 1 : 2, "the same data file on every host");
}

TEST(ranks_that_disagree_are_named) {
    static struct rank r[RANKS];
    run(disagree, r);
    for (i32 k = 0; k < RANKS; k++) {
        assert_int_equal(r[k].e, -E804);
        assert_non_null(strstr(r[k].why.text, "data: rank 3 "));
    }
    end(r);
    run(other_words, r);
    other_words_are_named(r);
    end(r);
}

TEST(a_rank_that_does_not_come_is_named) {
    static struct rank r[RANKS];
    run(stay_away, r);
    who_stays_away_is_named(r);
    end(r);
}

TEST(a_hash_sees_every_bit) {
    unsigned char data[37] = {1, 2, 3};
    const u64 whole = comm_hash(COMM_HASH, data, sizeof data);
    assert_true(comm_hash(COMM_HASH, data, sizeof data - 1) != whole);
    for (i32 bit = 0; bit < 8 * (i32)sizeof data; bit++) {
        data[bit / 8] ^= (unsigned char)(1u << bit % 8);
        assert_true(comm_hash(COMM_HASH, data, sizeof data) != whole);
        data[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    assert_true(comm_hash(COMM_HASH, data, sizeof data) == whole);
}

TEST(a_launcher_whose_library_is_not_there) {
    struct comm *c;
    i32 size;
    setenv("OMPI_COMM_WORLD_SIZE", "3", 1);
    setenv("OMPI_COMM_WORLD_RANK", "2", 1);
    setenv("STRETTO_MPI", "of-another-world", 1);
    assert_string_equal(comm_launched(&size), "mpirun of Open MPI");
    assert_int_equal(size, 3);
    assert_int_equal(comm_launched_rank(), 2);
    T_FAILS(comm_mpi(&c), E803);
    assert_null(c);
    assert_non_null(strstr(err_last()->text, "stretto-mpi-of-another-world.so"));
    setenv("OMPI_COMM_WORLD_SIZE", "1", 1);
    T_OK(comm_mpi(&c));
    assert_null(c);
    unsetenv("OMPI_COMM_WORLD_SIZE");
    unsetenv("OMPI_COMM_WORLD_RANK");
    unsetenv("STRETTO_MPI");
}

/* A link of limited rate: messages are sequential per direction, and none arrives early. */
enum { LOADS = 4, LOAD = 50000 };
#define RATE 2e6
#define LAG 0.01

static f64 begun[2]; /* when a rank sent its first message; read by the receiver */

static err slow_job(struct comm *c, void *arg) {
    struct rank *r = arg;
    const i32 peer = 1 - comm_rank(c);
    static char data[2][2 * LOADS][LOAD];
    struct comm_message m[2 * LOADS] = {0};
    begun[comm_rank(c)] = clock_now();
    for (u32 i = 0; i < 2 * LOADS; i++) {
        m[i] = (struct comm_message){.head = {.number = i % LOADS, .bytes = LOAD, .name = "load"}, .peer = peer};
        m[i].sends = i < LOADS;
        m[i].data = data[comm_rank(c)][i];
        TRY(comm_post(c, &m[i]));
    }
    const f64 t0 = clock_now();
    for (u32 left = 1, i; left > 0;) {
        bool moved = false, done;
        for (i = 0, left = 0; i < 2 * LOADS; i++, left += !done) {
            const bool before = m[i].done;
            TRY(comm_test(c, &m[i], &done));
            moved = moved || done != before;
            if (!done || before || m[i].sends) continue;
            if (clock_now() - begun[peer] < (m[i].head.number + 1) * (LOAD / RATE) + LAG - 1e-3)
                return FAIL(E1, "load %u came after %.4f s", m[i].head.number, clock_now() - begun[peer]);
        }
        if (left) TRY(comm_idle(c, moved, &m[0]));
    }
    r->sum = (u64)(1e6 * (clock_now() - t0));
    return 0;
}

static err slow(struct rank *r) {
    comm_begin(r->comm, slow_job, r);
    return comm_end(r->comm);
}

/* Ranks over a transport with the given faults. */
static void run_faulty(struct rank r[2], err (*body)(struct rank *r), const struct comm_fault *fault) {
    struct comm *comm[2];
    T_OK(comm_faulty(2, fault, comm));
    for (i32 k = 0; k < 2; k++) {
        r[k] = (struct rank){.comm = comm[k], .body = body};
        assert_int_equal(pthread_create(&r[k].thread, NULL, live, &r[k]), 0);
    }
    for (i32 k = 0; k < 2; k++) pthread_join(r[k].thread, NULL);
    for (i32 k = 0; k < 2; k++) comm_free(comm[k]);
}

TEST(a_slow_line_takes_its_time) {
    static struct rank r[2];
    run_faulty(r, slow, &(struct comm_fault){.rate = RATE, .lag = LAG});
    for (i32 k = 0; k < 2; k++) {
        T_OK(r[k].e);
        if ((f64)r[k].sum > 1e6 * (LOADS * LOAD / RATE + LAG) * 50) /* allowance for a busy machine */
            fail_msg("rank %d: %.3f ms", k, (f64)r[k].sum / 1e3);
    }
}

/* Two messages with equal headers that are swapped, and one at which the rank dies. */
static err two_and_last_job(struct comm *c, void *arg) {
    static char data[2][3];
    struct comm_message m[3] = {0};
    (void)arg;
    for (u32 i = 0; i < 3; i++) {
        m[i] = (struct comm_message){.head = {.bytes = 1, .name = "word"}, .peer = 1 - comm_rank(c), .sends = comm_rank(c) == 0};
        m[i].data = &data[comm_rank(c)][i];
        if (i == 2) strcpy(m[i].head.name, "last");
    }
    return comm_wait(c, m, 3);
}

static err two_and_last(struct rank *r) {
    comm_set_deadline(r->comm, t_few() ? 10 : 1);
    comm_begin(r->comm, two_and_last_job, NULL);
    return comm_end(r->comm);
}

TEST(a_rank_dies_behind_messages_that_changed_places) {
    static struct rank r[2];
    run_faulty(r, two_and_last, &(struct comm_fault){.swap = 2, .die = 1, .of = "last"});
    for (i32 k = 0; k < 2; k++)
        if (r[k].e != -E801 || !strstr(r[k].why.text, "rank 0 was told to die")) fail_msg("rank %d: %s", k, r[k].why.text);
}

/* comm_wake during a poll prevents the sleep of two milliseconds that follows. Some calls may take long on a busy machine;
 * without comm_wake all do. */
enum { NAPS = 50 };

static err naps_job(struct comm *c, void *arg) {
    struct rank *r = arg;
    i32 shorter = 0, longer = 0;
    comm_set_idle_sleep(c, 2e-3);
    for (i32 k = 0; k < 2 * NAPS; k++) {
        const f64 t0 = clock_now();
        if (k % 2) comm_wake(c);
        TRY(comm_idle(c, false, NULL));
        const f64 seconds = clock_now() - t0;
        if (k % 2) shorter += seconds < 1e-3;
        else longer += seconds > 1.5e-3;
    }
    r->sum = (u64)imin(shorter, longer);
    return 0;
}

static err sleeping(struct rank *r) {
    comm_begin(r->comm, naps_job, r);
    return comm_end(r->comm);
}

TEST(a_nudge_in_the_middle_of_a_look_is_kept_once) {
    static struct rank r[2];
    run_faulty(r, sleeping, &(struct comm_fault){0});
    for (i32 k = 0; k < 2; k++) {
        T_OK(r[k].e);
        if (r[k].sum < (t_few() ? 1 : NAPS / 2)) fail_msg("rank %d: %d of %d", k, (i32)r[k].sum, NAPS);
    }
}

T_MAIN(cmocka_unit_test(a_rank_dies_behind_messages_that_changed_places),
       cmocka_unit_test(a_nudge_in_the_middle_of_a_look_is_kept_once),
       cmocka_unit_test(a_slow_line_takes_its_time), cmocka_unit_test(ranks_gather_and_share),
       cmocka_unit_test(ranks_share_what_is_longer_than_a_message),
       cmocka_unit_test(messages_of_a_pair_keep_their_order),
       cmocka_unit_test(ranks_that_disagree_are_named), cmocka_unit_test(a_rank_that_does_not_come_is_named),
       cmocka_unit_test(a_hash_sees_every_bit), cmocka_unit_test(a_launcher_whose_library_is_not_there))
