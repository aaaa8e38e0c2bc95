/* t_flight.c - the flight record: newest entries of the ring, open messages, stacks; when it is written, and that it is not
 * written without a problem. */
#define _GNU_SOURCE
#include "t.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/event.h"
#include "base/file.h"
#include "base/mem.h"
#include "comm/flight.h"
#include "comm/watch.h"

enum { RANKS = 3 };

static char folder[512];

static void new_folder(const char *name) {
    snprintf(folder, sizeof folder, "%.400s/%s", t_dir(), name);
    assert_int_equal(mkdir(folder, 0755), 0);
}

static char *record_of(i32 rank) {
    static char *text;
    char path[600];
    i64 n;
    mem_free(text);
    text = NULL;
    snprintf(path, sizeof path, "%s/flight/rank-%d.txt", folder, rank);
    if (file_exists(path)) T_OK(file_load(path, 1 << 22, &text, &n));
    return text;
}

static void must_say(const char *text, const char *what) {
    if (!text || !strstr(text, what)) fail_msg("\"%s\" is not in:\n%.3000s", what, text ? text : "(no record)");
}

/* ------------------------------------------------------------------ the ring ------------------------------------------------ */

static void write_ring(const struct flight *f) {
    static const struct comm_rank_info me = {.rank = 0, .pid = 77, .host = "b"};
    const struct flight_title t = {.folder = folder, .why = "a test", .self = "", .scene = "", .who = &me, .world = RANKS};
    char path[FLIGHT_PATH];
    err_set(E105, NULL, NULL, "of before");
    flight_write(f, &t, path);
    assert_int_equal(err_last()->code, 105);
    assert_true(file_exists(path));
}

TEST(a_ring_keeps_the_newest_and_says_what_is_open) {
    struct flight *f = mem_alloc(sizeof *f);
    enum { ALL = 3 * FLIGHT_RING + 5 };
    new_folder("ring");
    for (u32 k = 0; k < ALL; k++) { /* of the awaited ones number ALL - 4 does not come */
        struct flight_entry e = {.serial = 9, .number = k / 2, .bytes = 8, .name = "grad.0", .peer = 1};
        e.what = k % 2 ? FLIGHT_CAME : FLIGHT_AWAIT;
        if (k == ALL - 3) e.number = 12345;
        flight_add(f, &e);
    }
    write_ring(f);
    const char *text = record_of(0), *open = strstr(text, "Begun and not done"), *last = strstr(text, "\nThe last 2048 of 6149");
    must_say(text, "Flight record of rank 0 of 3 (host b, pid 77)");
    assert_true(open && last && open < last);
    i32 lines = 0;
    f64 age = 1e9;
    for (const char *at = open; at < last; at++) lines += *at == '\n';
    assert_int_equal(lines, 2 + 3 - 1); /* title, columns; the one whose end was renamed, and the newest, which is awaited */
    lines = 0;
    for (const char *at = strstr(last, "bytes  rank\n") + 12; *at; at = strchr(at, '\n') + 1, lines++) {
        f64 now;
        assert_int_equal(sscanf(at, "%lf", &now), 1);
        assert_true(now <= age);
        age = now;
    }
    assert_int_equal(lines, FLIGHT_RING);
    must_say(last, " 12345 ");
    mem_free(f);
}

struct writer {
    struct flight *f;
    _Atomic bool stop;
};

static void *add_all_the_time(void *self) {
    struct writer *w = self;
    for (u32 k = 0; !atomic_load(&w->stop); k++) {
        struct flight_entry e = {.serial = k, .number = k, .bytes = k, .peer = (i32)(k % 7), .what = FLIGHT_SENT};
        snprintf(e.name, sizeof e.name, "%u", k);
        flight_add(w->f, &e);
    }
    return NULL;
}

TEST(an_entry_that_is_being_written_is_left_out) {
    struct writer w = {.f = mem_alloc(sizeof *w.f)};
    pthread_t thread[2];
    new_folder("race");
    for (i32 k = 0; k < 2; k++) assert_int_equal(pthread_create(&thread[k], NULL, add_all_the_time, &w), 0);
    for (i32 turn = 0; turn < (t_few() ? 2 : 8); turn++) {
        write_ring(w.f);
        const char *at = strstr(record_of(0), "The last");
        for (at = strstr(at, "rank\n") + 5; *at; at = strchr(at, '\n') + 1) {
            unsigned long long serial;
            unsigned number, name, bytes;
            const int n = sscanf(at, "%*f sent %llu %u %u %u", &serial, &number, &name, &bytes);
            if (n != 4 || serial != number || number != name || bytes != name)
                fail_msg("%.100s", at);
        }
    }
    atomic_store(&w.stop, true);
    for (i32 k = 0; k < 2; k++) pthread_join(thread[k], NULL);
    mem_free(w.f);
}

/* ------------------------------------------------------------------ ranks --------------------------------------------------- */

struct rank {
    struct comm *comm;
    err (*body)(struct rank *r);
    err e;
    struct err_record why;
    pthread_t thread;
};

static void *live(void *self) {
    struct rank *r = self;
    pthread_setname_np(pthread_self(), "caller");
    r->e = comm_connect(r->comm);
    if (r->e >= 0) r->e = r->body(r);
    if (r->e < 0) r->why = *err_last();
    if (r->e < 0) comm_abort(r->comm);
    return NULL;
}

static void run(const char *name, err (*body)(struct rank *r), struct rank *r) {
    struct comm *comm[RANKS];
    new_folder(name);
    T_OK(comm_threads(RANKS, comm));
    for (i32 k = 0; k < RANKS; k++) {
        r[k] = (struct rank){.comm = comm[k], .body = body};
        comm_set_record_folder(comm[k], folder);
        assert_int_equal(pthread_create(&r[k].thread, NULL, live, &r[k]), 0);
    }
    for (i32 k = 0; k < RANKS; k++) pthread_join(r[k].thread, NULL);
    for (i32 k = 0; k < RANKS; k++) comm_free(comm[k]);
}

static void scene(void *self, char *text, size_t size) { snprintf(text, size, "%s", (const char *)self); }

/* Rank 1 stays away: the others name it, and the file; in the file are phase, step, the open message and where callers are. */
static err stay_away(struct rank *r) {
    static char what[] = "worker 0: 3 of 4 tasks done, waits before update\n";
    u64 mine = 1, all[RANKS];
    const struct sink s = comm_sink(r->comm);
    comm_set_deadline(r->comm, t_few() ? 10 : 1.5);
    s.on(s.self, &(struct event){.kind = EVENT_PHASE, .text = "train"});
    comm_set_step(r->comm, 17, 812, scene, what);
    err e = comm_rank(r->comm) == 1 ? 0 : comm_allgather(r->comm, "roll", &mine, sizeof mine, all);
    comm_set_step(r->comm, 17, 812, NULL, NULL);
    return e;
}

TEST(a_wait_that_expires_is_written_down) {
    static struct rank r[RANKS];
    run("late", stay_away, r);
    for (i32 k = 0; k < RANKS; k += 2) {
        T_FAILS(r[k].e, E801);
        const char *text = record_of(k);
        must_say(text, " rank 1 (host ");
        must_say(text, "Begun and not done");
        must_say(text, "roll");
        must_say(text, "phase  train");
        must_say(text, " 17  step 812\n");
        must_say(text, "Threads of this process:");
        must_say(text, "stretto.watch, state");
        must_say(text, "flight_write+0x");
        must_say(r[k].why.text, "stacks and last messages in ");
        must_say(r[k].why.text, "/flight/rank-");
    }
    assert_true(strstr(record_of(0), "worker 0: 3 of 4") || strstr(record_of(2), "worker 0: 3 of 4"));
    comm_delete_records(folder);
    assert_null(record_of(0));
}

static err other_words(struct rank *r) {
    u64 mine = 1, all[RANKS];
    return comm_allgather(r->comm, comm_rank(r->comm) == 2 ? "apples" : "pears", &mine, sizeof mine, all);
}

TEST(heads_that_differ_are_written_down_by_all) {
    static struct rank r[RANKS];
    run("heads", other_words, r);
    for (i32 k = 0; k < RANKS; k++) {
        const char *text = record_of(k);
        T_FAILS(r[k].e, E804);
        must_say(text, "apples");
        must_say(text, "pears");
        assert_null(strstr(text, "Threads of this process:")); /* not a timeout, so no stacks */
    }
}

/* No message is awaited and the job does not end: a worker computes for too long. */
static err compute_job(struct comm *c, void *arg) {
    const struct timespec t = {.tv_nsec = 1000000};
    (void)arg;
    for (i32 k = 0; k < (t_few() ? 12000 : 1500); k++) {
        TRY(comm_idle(c, false, NULL));
        nanosleep(&t, NULL);
    }
    return 0;
}

static err one_computes(struct rank *r) {
    u64 mine = 1, all[RANKS];
    if (comm_rank(r->comm) == 1) {
        comm_set_deadline(r->comm, t_few() ? 8 : 0.4);
        comm_begin(r->comm, compute_job, NULL);
        TRY(comm_end(r->comm));
    }
    comm_set_deadline(r->comm, 60);
    return comm_allgather(r->comm, "roll", &mine, sizeof mine, all);
}

TEST(a_worker_that_does_not_come_back_is_written_down) {
    static struct rank r[RANKS];
    run("long", one_computes, r);
    for (i32 k = 0; k < RANKS; k++) T_OK(r[k].e); /* it came back */
    must_say(record_of(1), "why: nothing has moved for ");
    must_say(record_of(1), "Threads of this process:");
    assert_null(record_of(0));
    assert_null(record_of(2));
}

static err all_well(struct rank *r) {
    u64 mine = 1, all[RANKS];
    for (i32 k = 0; k < 500; k++) TRY(comm_allgather(r->comm, "roll", &mine, sizeof mine, all));
    const struct timespec t = {.tv_nsec = 500000000}; /* longer than the deadline, but no rank is known to be awaited */
    if (comm_rank(r->comm) == 0) nanosleep(&t, NULL);
    return comm_broadcast_slow(r->comm, "model", &mine, sizeof mine);
}

TEST(nothing_is_written_while_all_is_well) {
    static struct rank r[RANKS];
    run("well", all_well, r);
    for (i32 k = 0; k < RANKS; k++) {
        T_OK(r[k].e);
        assert_null(record_of(k));
    }
}

/* Rank 0 works for much longer than the deadline, with signs of life, without, or with none known. */
enum { SHOWS_LIFE = 1, IS_STILL, UNKNOWN };
static _Atomic i32 rank_0, moments, ended;

static f64 sign_of_life(void *self, i32 rank, char *text, size_t size) {
    (void)self;
    (void)rank;
    snprintf(text, size, "last seen at its work");
    const i32 n = atomic_fetch_add(&moments, 1);
    return atomic_load(&rank_0) == UNKNOWN ? 0 : atomic_load(&rank_0) == IS_STILL ? 7 : 1 + n;
}

static err long_work(struct rank *r) {
    u64 mine = 1;
    const struct timespec moment = {.tv_nsec = 10000000};
    const i32 least = t_few() ? 1000 : 100, most = atomic_load(&rank_0) == IS_STILL ? 60 * least : least;
    comm_set_hint(r->comm, sign_of_life, NULL);
    comm_set_deadline(r->comm, t_few() ? 0.2 : 0.02);
    for (i32 k = 0; k < most && comm_rank(r->comm) == 0 && atomic_load(&ended) < RANKS - 1; k++) nanosleep(&moment, NULL);
    const err e = comm_broadcast_slow(r->comm, "model", &mine, sizeof mine);
    atomic_fetch_add(&ended, 1);
    return e;
}

TEST(long_work_is_waited_for_while_there_is_life) {
    static struct rank r[RANKS];
    static const char *const name[] = {NULL, "alive", "still", "unknown"};
    for (i32 what = SHOWS_LIFE; what <= UNKNOWN; what++) {
        atomic_store(&rank_0, what);
        atomic_store(&ended, 0);
        run(name[what], long_work, r);
        for (i32 k = 1; k < RANKS; k++) {
            if (what != IS_STILL) T_OK(r[k].e);
            if (what != IS_STILL) continue;
            T_FAILS(r[k].e, E801);
            must_say(r[k].why.text, "rank ");
            must_say(r[k].why.text, "last seen at its work; stacks and last messages in ");
        }
    }
}

/* STRETTO_DEADLINE is set very short after the ranks have connected, and rank 0 is silent for a hundred deadlines. */
static err short_deadline(struct rank *r) {
    u64 mine = 1, all[RANKS];
    if (comm_rank(r->comm) == 0) setenv("STRETTO_DEADLINE", "0.01", 1);
    TRY(comm_allgather(r->comm, "roll", &mine, sizeof mine, all));
    comm_set_hint(r->comm, sign_of_life, NULL);
    if (comm_rank(r->comm) == 0) nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
    else comm_set_deadline(r->comm, 0);
    return comm_broadcast_slow(r->comm, "model", &mine, sizeof mine);
}

TEST(work_is_waited_for_however_short_the_deadline_of_messages_is) {
    static struct rank r[RANKS];
    atomic_store(&rank_0, IS_STILL);
    run("short", short_deadline, r);
    unsetenv("STRETTO_DEADLINE");
    for (i32 k = 0; k < RANKS; k++) T_OK(r[k].e);
}

static _Atomic i32 failing; /* the rank that fails; RANKS = none */

static err one_fails(struct rank *r) {
    const i32 me = comm_rank(r->comm);
    const struct timespec moment = {.tv_nsec = 300000000};
    comm_set_deadline(r->comm, 0.05);
    if (me == RANKS - 1) nanosleep(&moment, NULL); /* its work takes longer than the deadline of messages */
    return comm_agree(r->comm, "read", me >= atomic_load(&failing) ? FAIL_AT(E203, "a.csv:7", "repair it", "rank %d", me) : 0);
}

TEST(error_of_the_first_rank_is_that_of_all) {
    static struct rank r[RANKS];
    char name[16];
    for (i32 first = 0; first <= RANKS; first++) {
        atomic_store(&failing, first);
        snprintf(name, sizeof name, "agree%d", first);
        run(name, one_fails, r);
        for (i32 k = 0; k < RANKS; k++) {
            if (first == RANKS) T_OK(r[k].e);
            if (first == RANKS) continue;
            T_FAILS(r[k].e, E203);
            assert_string_equal(r[k].why.where, "a.csv:7");
            assert_int_equal(r[k].why.text[5] - '0', first);
        }
    }
}

/* ------------------------------------------------------------------ the watchdog -------------------------------------------- */

static void count(void *self, f64 quiet) {
    (void)quiet;
    atomic_fetch_add((_Atomic i32 *)self, 1);
}

TEST(a_watchdog_calls_once_for_each_silence) {
    _Atomic i32 calls = 0;
    struct watch w = {.deadline = t_few() ? 2 : 0.2, .alarm = count, .self = &calls};
    const struct timespec moment = {.tv_nsec = 10000000};
    T_OK(watch_begin(&w));
    for (i32 k = 0; k < 1000 && atomic_load(&calls) < 1; k++) nanosleep(&moment, NULL);
    for (i32 k = 0; k < 40; k++) nanosleep(&moment, NULL); /* two deadlines more */
    assert_int_equal(atomic_load(&calls), 1);
    watch_moved(&w);
    for (i32 k = 0; k < 1000 && atomic_load(&calls) < 2; k++) nanosleep(&moment, NULL);
    assert_int_equal(atomic_load(&calls), 2);
    atomic_store(&w.deadline, 4); /* occasional signs of life */
    for (i32 k = 0; k < 60; k++) {
        watch_moved(&w);
        nanosleep(&moment, NULL);
    }
    assert_int_equal(atomic_load(&calls), 2);
    watch_end(&w);
    watch_end(&(struct watch){0});
}

T_MAIN(cmocka_unit_test(a_ring_keeps_the_newest_and_says_what_is_open),
       cmocka_unit_test(an_entry_that_is_being_written_is_left_out), cmocka_unit_test(a_wait_that_expires_is_written_down),
       cmocka_unit_test(heads_that_differ_are_written_down_by_all),
       cmocka_unit_test(a_worker_that_does_not_come_back_is_written_down), cmocka_unit_test(nothing_is_written_while_all_is_well),
       cmocka_unit_test(long_work_is_waited_for_while_there_is_life),
       cmocka_unit_test(work_is_waited_for_however_short_the_deadline_of_messages_is),
       cmocka_unit_test(error_of_the_first_rank_is_that_of_all),
       cmocka_unit_test(a_watchdog_calls_once_for_each_silence))
