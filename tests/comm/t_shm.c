/* t_shm.c - shared-memory transport: messages of any size, from segments and other memory, in order; a segment replaced by
 * another; disagreement and failure are reported; recovery after deaths; switching it off. Ranks are threads here, and each
 * opens the others' memory as a process would. */
#include "t.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "comm/comm.h"
#include "comm/shm.h"
#include "comm/transport.h"

enum { RANKS = 4, TURNS = 3, PART = 1 << 20 };

struct rank {
    struct comm *comm;
    err (*body)(struct rank *r);
    bool direct;
    err e;
    struct err_record why;
    pthread_t thread;
    struct comm_message m[64]; /* of a job */
    i32 n, looks;
};

#include "bodies.h"

static struct transport far; /* threads, as if connected by a network */
static bool cannot_recover;
static i32 looks; /* polls of the rank that fails */
static _Atomic i32 ended; /* ranks that have finished and reported it */
static err refuse_recovery(void *self);

static err join(const struct transport *t, void *end, i32 rank, i32 size, const void *arg, struct comm **out) {
    (void)arg;
    if (rank == 0) {
        far = *t;
        far.direct = false;
        far.by_host = true;
        if (cannot_recover) far.allow_recovery = refuse_recovery;
    }
    return comm_new(&far, end, rank, size, out);
}

static void *live(void *self) {
    struct rank *r = self;
    r->e = comm_connect(r->comm);
    r->direct = comm_direct(r->comm);
    if (r->e >= 0) r->e = r->body(r);
    if (r->e < 0) r->why = *err_last();
    if (r->e < 0) comm_abort(r->comm);
    atomic_fetch_add(&ended, 1);
    return NULL;
}

static void run(err (*body)(struct rank *r), struct rank *r) {
    struct comm *comm[RANKS];
    T_OK(comm_threads_by(RANKS, join, NULL, comm));
    for (i32 k = 0; k < RANKS; k++) {
        r[k] = (struct rank){.comm = comm[k], .body = body};
        assert_int_equal(pthread_create(&r[k].thread, NULL, live, &r[k]), 0);
    }
    for (i32 k = 0; k < RANKS; k++) pthread_join(r[k].thread, NULL);
    for (i32 k = 0; k < RANKS; k++) comm_free(r[k].comm);
}

static void add(struct rank *r, i32 peer, bool sends, void *data, u32 bytes, u32 channel) {
    struct comm_message *m = &r->m[r->n];
    *m = (struct comm_message){.peer = peer, .sends = sends, .data = data, .channel = (u8)channel};
    m->head = (struct comm_head){.serial = 5, .number = (u32)r->n / 2, .bytes = bytes, .name = "load"};
    r->n++;
}

static err all_job(struct comm *c, void *arg) {
    struct rank *r = arg;
    return comm_wait(c, r->m, r->n);
}

static err go(struct rank *r) {
    comm_begin(r->comm, all_job, r);
    const err e = comm_end(r->comm);
    r->n = 0;
    return e;
}

static u8 byte_of(i32 rank, i64 i, i32 turn) { return (u8)(i * 7 + i / 251 + rank * 31 + turn * 13); }

static const u32 sizes[] = {0, 1, 40, 1024, 9000, 16384, 16385, 70000, 1200000};
enum { SIZES = COUNT(sizes), LARGEST = 1200000 };

/* Every rank sends all sizes to the next rank on both channels and receives from the previous one. */
static err ring(struct rank *r, u8 *mine, u8 *theirs, i32 turn) {
    const i32 me = comm_rank(r->comm), next = (me + 1) % RANKS, last = (me + RANKS - 1) % RANKS;
    for (i64 i = 0; i < LARGEST; i++) mine[i] = byte_of(me, i, turn);
    memset(theirs, 0, 2 * SIZES * (size_t)LARGEST);
    for (u32 k = 0; k < 2 * SIZES; k++) {
        add(r, next, true, mine, sizes[k / 2], k % 2);
        add(r, last, false, theirs + (size_t)k * LARGEST, sizes[k / 2], k % 2);
    }
    TRY(go(r));
    for (u32 k = 0; k < 2 * SIZES; k++)
        for (i64 i = 0; i < LARGEST; i++)
            if (theirs[(size_t)k * LARGEST + (size_t)i] != (i < sizes[k / 2] ? byte_of(last, i, turn) : 0))
                return FAIL(E1, "turn %d: %u bytes: wrong at %lld", turn, sizes[k / 2], (long long)i);
    return 0;
}

static err all_sizes(struct rank *r) {
    u8 *theirs = mem_alloc(2 * SIZES * (size_t)LARGEST), *plain = mem_alloc(LARGEST);
    err e = theirs && plain ? ring(r, plain, theirs, 9) : -E601;
    for (i32 turn = 0; turn < TURNS && e >= 0; turn++) { /* each round a different segment in the same list entry */
        u8 *mine = comm_alloc(r->comm, LARGEST);
        e = mine ? ring(r, mine, theirs, turn) : -E601;
        comm_release(r->comm, mine);
    }
    mem_free(theirs);
    mem_free(plain);
    return e;
}

TEST(messages_of_all_sizes_arrive) {
    static const char *const ways[] = {"slots", "place", "auto"}; /* for large messages, from the second round on */
    static struct rank r[RANKS];
    for (size_t i = 0; i < COUNT(ways); i++) {
        setenv("STRETTO_NEAR", ways[i], 1);
        run(all_sizes, r);
        for (i32 k = 0; k < RANKS; k++) {
            if (r[k].e < 0) fail_msg("%s, rank %d: %s", ways[i], k, r[k].why.text);
            assert_true(r[k].direct);
        }
    }
    unsetenv("STRETTO_NEAR");
}

static err small_things(struct rank *r) {
    u64 version;
    TRY(gather_and_share(r, 300, &version));
    return version == 77 ? 0 : FAIL(E1, "%llu was told", (unsigned long long)version);
}

TEST(small_collectives_go_through_memory_and_without_it) {
    static struct rank r[RANKS];
    run(small_things, r);
    for (i32 k = 0; k < RANKS; k++) {
        T_OK(r[k].e);
        assert_true(r[k].direct);
    }
    setenv("STRETTO_NEAR", "off", 1);
    run(small_things, r);
    unsetenv("STRETTO_NEAR");
    for (i32 k = 0; k < RANKS; k++) {
        T_OK(r[k].e);
        assert_false(r[k].direct);
    }
}

TEST(ranks_that_disagree_are_named) {
    static struct rank r[RANKS];
    run(other_words, r);
    other_words_are_named(r);
}

static err one_fails(struct rank *r) {
    if (comm_rank(r->comm) == 1) return FAIL(E703, "the disk of this rank is full");
    u64 mine = 1, all[RANKS];
    return comm_allgather(r->comm, "roll", &mine, sizeof mine, all);
}

TEST(a_rank_that_fails_is_named_at_once) {
    static struct rank r[RANKS];
    run(one_fails, r);
    for (i32 k = 0; k < RANKS; k++) {
        assert_int_equal(r[k].e, -E703);
        assert_non_null(strstr(r[k].why.text, "the disk of this rank is full"));
    }
}

/* Rank 3 fails, ranks 0 and 1 end because of it; rank 2 arrives later and must get rank 3's error. */
static err hear_late(struct rank *r) {
    const struct timespec moment = {.tv_nsec = 1000000};
    u64 mine = 1, all[RANKS];
    if (comm_rank(r->comm) == 3) return FAIL(E703, "the disk of this rank is full");
    while (comm_rank(r->comm) == 2 && atomic_load(&ended) < RANKS - 1) nanosleep(&moment, NULL);
    return comm_allgather(r->comm, "roll", &mine, sizeof mine, all);
}

TEST(whoever_ends_for_another_is_not_taken_for_it) {
    static struct rank r[RANKS];
    atomic_store(&ended, 0);
    run(hear_late, r);
    for (i32 k = 0; k < RANKS; k++) {
        assert_int_equal(r[k].e, -E703);
        assert_string_equal(r[k].why.text, k == 3 ? "the disk of this rank is full" : "rank 3: the disk of this rank is full");
    }
}

/* A peer that is this process, with one segment; a freed segment is not opened although its fd number refers to a file. */
struct owner {
    struct shm x;
    struct peer peer;
    struct region *region;
    struct mapping own;
    const char *from;
};

static void owner_new(struct owner *o, const struct transport *inside) {
    *o = (struct owner){.x = {.inside = inside, .size = 1}, .region = mem_alloc(sizeof *o->region)};
    assert_non_null(o->region);
    assert_true(shm_map_new(&o->own, 4096));
    o->peer = (struct peer){.region = {.base = o->region, .fd = -1}, .pid = (i32)getpid()};
    o->x.peer = &o->peer;
    atomic_store(&o->region->segment[5].fd, o->own.fd);
    atomic_store(&o->region->segment[5].bytes, 4096);
    atomic_store(&o->region->segment[5].serial, 3);
}

static void owner_free(struct owner *o) {
    shm_unmap(&o->peer.seen[5]);
    shm_unmap(&o->own);
    mem_free(o->region);
}

static const struct slot asked = {.segment = 5, .at = 40};

TEST(a_segment_that_was_freed_is_not_opened) {
    static const struct transport mpi = {.name = "mpi"};
    struct owner o;
    owner_new(&o, &mpi);
    ((char *)o.own.base)[40] = 'x';
    T_OK(shm_find(&o.x, 0, &asked, &o.from));
    assert_int_equal(*o.from, 'x');
    shm_unmap(&o.peer.seen[5]);
    atomic_store(&o.region->segment[5].serial, 0);
    T_OK(shm_find(&o.x, 0, &asked, &o.from));
    assert_null(o.from);
    assert_null(o.peer.seen[5].base);
    atomic_store(&o.region->segment[5].serial, 4); /* another segment in the same entry */
    T_OK(shm_find(&o.x, 0, &asked, &o.from));
    assert_int_equal(*o.from, 'x');
    assert_int_equal(o.peer.seen[5].serial, 4);
    owner_free(&o);
}

TEST(what_there_is_too_little_of_is_named) {
    static const struct transport mpi = {.name = "mpi"}, threads = {.name = "threads"};
    struct rlimit usual, none;
    struct owner o;
    owner_new(&o, &mpi);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &usual), 0);
    none = usual;
    none.rlim_cur = 0;
    setrlimit(RLIMIT_NOFILE, &none);
    const err e = shm_find(&o.x, 0, &asked, &o.from);
    o.x.inside = &threads;
    const struct err_record by_mpi = *err_last();
    const err again = shm_find(&o.x, 0, &asked, &o.from);
    const struct err_record by_threads = *err_last();
    setrlimit(RLIMIT_NOFILE, &usual);
    T_FAILS(e, E601);
    T_FAILS(again, E601);
    assert_non_null(strstr(by_mpi.text, "Too many open files (ulimit -n)"));
    assert_non_null(strstr(by_mpi.fix, "by MPI alone"));
    assert_null(strstr(by_threads.fix, "MPI"));
    owner_free(&o);
}

/* The largest number of ranks that uses shared memory, and one more: messages arrive in both. */
enum { CROWD = 65 };

static void *told_by_all(void *self) {
    struct rank *r = self;
    u64 mine = 3 * (u64)comm_rank(r->comm), all[CROWD];
    r->e = comm_connect(r->comm);
    if (r->e >= 0) r->e = comm_allgather(r->comm, "roll", &mine, sizeof mine, all);
    for (u64 k = 0; r->e >= 0 && k < (u64)comm_size(r->comm); k++)
        if (all[k] != 3 * k) r->e = FAIL(E1, "rank %llu sent %llu", (unsigned long long)k, (unsigned long long)all[k]);
    if (r->e < 0) r->why = *err_last();
    if (r->e < 0) comm_abort(r->comm);
    r->direct = comm_direct(r->comm);
    return NULL;
}

static bool crowd_shares_memory(i32 size) {
    static struct rank r[CROWD];
    struct comm *comm[CROWD];
    T_OK(comm_threads_by(size, join, NULL, comm));
    for (i32 k = 0; k < size; k++) {
        r[k] = (struct rank){.comm = comm[k]};
        assert_int_equal(pthread_create(&r[k].thread, NULL, told_by_all, &r[k]), 0);
    }
    for (i32 k = 0; k < size; k++) pthread_join(r[k].thread, NULL);
    for (i32 k = 0; k < size; k++) {
        if (r[k].e < 0) fail_msg("rank %d: %s", k, r[k].why.text);
        assert_true(r[k].direct == r[0].direct);
        comm_free(comm[k]);
    }
    return r[0].direct; /* `far` is not */
}

TEST(threads_that_are_too_many_do_without_memory) {
    if (!t_few()) assert_true(crowd_shares_memory(CROWD - 1));
    assert_false(crowd_shares_memory(CROWD));
}

TEST(a_rank_that_does_not_come_is_named) {
    static struct rank r[RANKS];
    run(stay_away, r);
    T_OK(r[1].e);
    who_stays_away_is_named(r);
}

/* Rank 1 fails after a number of polls while others read its messages, and its segment is replaced by a smaller one. */
static err fail_soon(struct comm *c, void *arg) {
    struct rank *r = arg;
    for (i32 i = 0; i < r->looks; i++) {
        const struct comm_message *waiting = NULL;
        bool moved = false;
        TRY(comm_poll(c, r->m, r->n, &moved, &waiting));
    }
    return FAIL(E703, "the disk of this rank is full");
}

static err round_about(struct rank *r, u8 *mine, u8 *theirs) {
    const i32 me = comm_rank(r->comm), next = (me + 1) % RANKS, last = (me + RANKS - 1) % RANKS;
    for (u32 k = 0; k < 8; k++) {
        add(r, next, true, mine, PART, 0);
        add(r, last, false, theirs, PART, 0);
    }
    if (me != 1) return go(r);
    comm_begin(r->comm, fail_soon, r);
    return comm_end(r->comm);
}

static err one_fails_in_the_middle(struct rank *r) {
    u8 *mine = comm_alloc(r->comm, PART), *theirs = mem_alloc(PART);
    r->looks = looks;
    const err e = mine && theirs ? round_about(r, mine, theirs) : -E601;
    const struct err_record why = *err_last();
    comm_release(r->comm, mine);
    comm_release(r->comm, comm_alloc(r->comm, PART / 16));
    mem_free(theirs);
    err_put(&why);
    return e;
}

TEST(a_rank_that_fails_while_others_read_is_named_too) {
    static struct rank r[RANKS];
    for (i32 i = 0; i < (t_few() ? 3 : 40); i++) {
        looks = i % 5;
        run(one_fails_in_the_middle, r);
        for (i32 k = 0; k < RANKS; k++)
            if (r[k].e != -E703 && (k == 1 || r[k].e != 0)) fail_msg("turn %d, rank %d: %s", i, k, r[k].why.text);
    }
}

static err refuse_recovery(void *self) {
    (void)self;
    return FAIL(E803, "this launcher ends all");
}

static err ask(struct rank *r) {
    const err e = comm_allow_recovery(r->comm);
    r->direct = comm_direct(r->comm);
    if (e != (far.allow_recovery == refuse_recovery ? -E803 : 0)) return FAIL(E1, "%d", e);
    return small_things(r);
}

static void run_ask(bool recovers) {
    static struct rank r[RANKS];
    cannot_recover = !recovers;
    run(ask, r);
    cannot_recover = false;
    for (i32 k = 0; k < RANKS; k++) {
        if (r[k].e < 0) fail_msg("rank %d: %s", k, r[k].why.text);
        assert_true(r[k].direct);
    }
}

TEST(shared_memory_is_used_with_and_without_recovery) {
    run_ask(true);
    run_ask(false);
}

/* Every rank sends its part to the next rank six times, from a segment and through slots, more messages than slots. */
static void pass(struct rank *r, u8 *mine, u8 *plain, u8 *theirs, u64 turn) {
    const i32 me = comm_rank(r->comm), n = comm_size(r->comm), next = (me + 1) % n, last = (me + n - 1) % n;
    r->n = 0;
    memset(theirs, 0, 6 * PART);
    for (i64 i = 0; i < PART; i++) mine[i] = plain[i] = byte_of(me, i, (i32)turn);
    for (u32 k = 0; k < 6; k++) {
        add(r, next, true, k % 2 ? plain : mine, PART - k, 0);
        add(r, last, false, theirs + k * PART, PART - k, 0);
    }
}

static err passed(struct rank *r, const u8 *theirs, u64 turn) {
    const i32 n = comm_size(r->comm), last = (comm_rank(r->comm) + n - 1) % n;
    for (u32 k = 0; k < 6; k++)
        for (i64 i = 0; i < PART; i++)
            if (theirs[k * PART + i] != (i < PART - k ? byte_of(last, i, (i32)turn) : 0))
                return FAIL(E1, "turn %llu, message %u: wrong at %lld", (unsigned long long)turn, k, (long long)i);
    return 0;
}

/* Resumes at the round of the rank that is furthest behind. */
static err go_on(struct rank *r, u64 *turn) {
    struct comm_loss loss;
    u64 all[RANKS];
    for (;;) {
        TRY(comm_recover(r->comm, &loss));
        const err e = comm_allgather(r->comm, "turn", turn, sizeof *turn, all);
        if (e < 0 && !comm_died(r->comm)) return e;
        if (e < 0) continue;
        for (i32 k = 0; k < comm_size(r->comm); k++) *turn = all[k] < *turn ? all[k] : *turn;
        return 0;
    }
}

enum { LIVES = 5 };

/* The first rank dies in the second round, the third in the next. */
static err turns(struct rank *r, u8 *mine, u8 *plain, u8 *theirs) {
    const i32 first = comm_rank(r->comm);
    for (u64 turn = 0; turn < LIVES;) {
        pass(r, mine, plain, theirs, turn);
        const bool dies = first == (looks % 2 ? 0 : 1) ? turn == 1 : first == 2 && turn == 2;
        comm_begin(r->comm, dies ? fail_soon : all_job, r);
        const err e = comm_end(r->comm);
        if (e < 0 && (dies || !comm_died(r->comm))) return e;
        if (e >= 0) TRY(passed(r, theirs, turn));
        if (e >= 0) turn++;
        else TRY(go_on(r, &turn));
    }
    return comm_size(r->comm) == RANKS - 2 ? 0 : FAIL(E1, "%d ranks are left", comm_size(r->comm));
}

static err two_die(struct rank *r) {
    TRY(comm_allow_recovery(r->comm));
    u8 *mine = comm_alloc(r->comm, PART), *plain = mem_alloc(PART), *theirs = mem_alloc(6 * PART);
    r->looks = looks;
    const err e = mine && plain && theirs ? turns(r, mine, plain, theirs) : -E601;
    const struct err_record why = *err_last();
    comm_release(r->comm, mine);
    mem_free(plain);
    mem_free(theirs);
    err_put(&why);
    return e;
}

TEST(ranks_go_on_in_memory_without_those_that_die_between_messages) {
    static struct rank r[RANKS];
    for (i32 i = 0; i < (t_few() ? 3 : 8); i++) {
        looks = i;
        run(two_die, r);
        for (i32 k = 0; k < RANKS; k++) {
            const bool died = k == (i % 2 ? 0 : 1) || k == 2;
            assert_true(r[k].direct);
            if (r[k].e != (died ? -E703 : 0)) fail_msg("turn %d, rank %d: %d, %s", i, k, r[k].e, r[k].why.text);
        }
    }
}

/* Two threads of a rank fail at the same time: exactly one complete error is published. */
static void *say(void *self) {
    struct comm *c = ((struct rank *)self)->comm;
    char text[64];
    memset(text, 'a' + ((struct rank *)self)->n, sizeof text - 1);
    text[sizeof text - 1] = 0;
    if (FAIL(E703, "%s", text) < 0) comm_abort(c);
    return NULL;
}

static err two_voices(struct rank *r) {
    u64 mine = 1, all[RANKS];
    if (comm_rank(r->comm) != 1) return comm_allgather(r->comm, "roll", &mine, sizeof mine, all);
    struct rank voice[2] = {{.comm = r->comm}, {.comm = r->comm, .n = 1}};
    for (i32 k = 0; k < 2; k++)
        if (pthread_create(&voice[k].thread, NULL, say, &voice[k]) != 0) return FAIL(E601, "no thread");
    for (i32 k = 0; k < 2; k++) pthread_join(voice[k].thread, NULL);
    return 0;
}

TEST(a_rank_that_fails_twice_is_heard_once) {
    static struct rank r[RANKS];
    for (i32 i = 0; i < (t_few() ? 2 : 10); i++) {
        run(two_voices, r);
        for (i32 k = 0; k < RANKS; k++) {
            if (k == 1) continue;
            assert_int_equal(r[k].e, -E703);
            const char *text = strrchr(r[k].why.text, ' ') + 1;
            assert_int_equal(strlen(text), 63);
            for (i32 j = 1; j < 63; j++) assert_int_equal(text[j], text[0]);
        }
    }
}

T_MAIN(cmocka_unit_test(messages_of_all_sizes_arrive), cmocka_unit_test(small_collectives_go_through_memory_and_without_it),
       cmocka_unit_test(ranks_that_disagree_are_named), cmocka_unit_test(a_rank_that_fails_is_named_at_once),
       cmocka_unit_test(whoever_ends_for_another_is_not_taken_for_it), cmocka_unit_test(a_rank_that_does_not_come_is_named),
       cmocka_unit_test(a_segment_that_was_freed_is_not_opened), cmocka_unit_test(what_there_is_too_little_of_is_named),
       cmocka_unit_test(threads_that_are_too_many_do_without_memory),
       cmocka_unit_test(a_rank_that_fails_while_others_read_is_named_too),
       cmocka_unit_test(shared_memory_is_used_with_and_without_recovery),
       cmocka_unit_test(ranks_go_on_in_memory_without_those_that_die_between_messages),
       cmocka_unit_test(a_rank_that_fails_twice_is_heard_once))
