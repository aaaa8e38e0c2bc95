/* allreduce.c - times the ordered sum (all-reduce) of a vector over ranks, as a training step does it.
 *
 *     allreduce parts                      cost of monitoring in ns: an entry of the flight record, a hash of 1 KB
 *     allreduce RANKS [SECONDS]            ranks as threads; under mpirun RANKS is 0 and they are processes
 *         -> copy BYTES SECONDS            memcpy on all ranks at once: the limit of a copy
 *            exchange BYTES SECONDS        each rank writes memory that the other has read, then reads the other's (threads)
 *            BYTES SECONDS right|wrong     per size: median over batches of the mean time of a sum
 *
 * Up to 4 KB every rank sends its vector to all, and each adds in order of rank, as steps do for losses and norms. Above that,
 * reduce-scatter and all-gather, as for gradients and weights: range j of all vectors goes to rank j, which adds them in order
 * and sends the sum to all; in pieces that are added while in cache and whose buffer is then reused. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/rank_cores.h"
#include "base/backoff.h"
#include "base/clock.h"
#include "base/mem.h"
#include "comm/comm.h"
#include "comm/copy.h"
#include "comm/flight.h"
#include "kern/kern.h"

enum { RANKS = 8, SMALL = 4096, PIECE = 1 << 18, AHEAD = 4, LOOKS = 16, BATCHES = 9, WARM = 3, MOST = 1 << 26 };
_Static_assert((i64)RANKS * AHEAD * PIECE <= MOST, "places of all ranks");

struct rank {
    struct comm *comm;
    struct rank_cores cores;
    f64 budget;     /* approximate seconds per batch */
    i64 n;          /* floats of the vector */
    f32 *v, *other; /* v: own vector; other: [rank][AHEAD][PIECE] received pieces, or MOST bytes to copy */
    struct comm_message *m; /* [count] messages; sends before `first` are complete */
    i32 count, first;
    bool thread_rank;
    i64 turn; /* number of barriers passed */
    err e;
    struct err_record why;
    pthread_t thread;
};

static f32 start_value(i32 rank, i64 i) { return (f32)(rank + 1) * 0.25f + (f32)(i % 64); }

static void fill(struct rank *r) {
    for (i64 i = 0; i < r->n; i++) r->v[i] = start_value(comm_rank(r->comm), i);
}

static bool is_right(const struct rank *r) {
    for (i64 i = 0; i < r->n; i++) {
        f32 sum = 0;
        for (i32 k = 0; k < comm_size(r->comm); k++) sum += start_value(k, i);
        if (r->v[i] != sum) return false;
    }
    return true;
}

static i64 border(const struct rank *r, i32 k) { return r->n * k / comm_size(r->comm) / 16 * 16; }
static i64 end_of(const struct rank *r, i32 k) { return k + 1 == comm_size(r->comm) ? r->n : border(r, k + 1); }

static struct comm_message message(i32 peer, bool sends, f32 *data, i64 n, u32 number) {
    struct comm_message m = {.peer = peer, .sends = sends, .data = data};
    m.head = (struct comm_head){.number = number, .bytes = (u32)(n * 4), .name = "sum"};
    return m;
}

/* Adds messages for the pieces of a range of the vector, to or from a rank. */
static void pieces(struct rank *r, i32 peer, bool sends, i32 range) {
    const i64 lo = border(r, range), hi = end_of(r, range), step = PIECE / 4;
    for (i64 at = lo; at < hi; at += step)
        r->m[r->count++] = message(peer, sends, r->v + at, lmin(step, hi - at), (u32)((at - lo) / step));
}

/* Buffer for piece p of a rank: reuses that of a summed piece, which is in cache. */
static f32 *place(const struct rank *r, i32 k, i32 p) { return r->other + ((i64)k * AHEAD + p % AHEAD) * (PIECE / 4); }

/* Polls the oldest pending sends, which may need it to progress. */
static err push_on(struct rank *r, bool *moved) {
    for (i32 i = r->first, looks = 0; i < r->count && looks < LOOKS; i++) {
        struct comm_message *m = &r->m[i];
        if (!m->sends || m->done || !m->started) continue;
        bool done;
        TRY(comm_test(r->comm, m, &done));
        *moved = *moved || done || m->moved;
        m->moved = false;
        looks++;
    }
    while (r->first < r->count && (r->m[r->first].done || !r->m[r->first].sends)) r->first++;
    return 0;
}

static err await(struct rank *r, struct comm_message *m) {
    for (;;) {
        bool done, moved = false;
        TRY(comm_test(r->comm, m, &done));
        if (done) return 0;
        TRY(push_on(r, &moved));
        TRY(comm_idle(r->comm, moved, m));
    }
}

/* Adds n floats at `at` of all ranks in order of rank into the vector; remote ones are in piece p. */
static void add(struct rank *r, i64 at, i64 n, i32 p) {
    const i32 me = comm_rank(r->comm), size = comm_size(r->comm);
    const struct kern *k = kern_best();
    if (size == 2) { /* two operands commute */
        k->add(n, r->v + at, place(r, 1 - me, p));
        return;
    }
    f32 *sum = place(r, me, p);
    memcpy(sum, me == 0 ? r->v + at : place(r, 0, p), (size_t)n * 4);
    for (i32 i = 1; i < size; i++) k->add(n, sum, i == me ? r->v + at : place(r, i, p));
    memcpy(r->v + at, sum, (size_t)n * 4);
}

static err post_from(struct rank *r, i32 at) {
    for (; at < r->count; at++) TRY(comm_post(r->comm, &r->m[at]));
    return 0;
}

static err await_from(struct rank *r, i32 at) {
    for (; at < r->count; at++) TRY(await(r, &r->m[at]));
    return 0;
}

/* All-gather and local sum for small vectors. */
static err small_sum(struct rank *r) {
    const i32 me = comm_rank(r->comm), size = comm_size(r->comm);
    for (i32 k = 0; k < size; k++)
        if (k != me) r->m[r->count++] = message(k, true, r->v, r->n, 0);
    const i32 mine = r->count;
    for (i32 k = 0; k < size; k++)
        if (k != me) r->m[r->count++] = message(k, false, place(r, k, 0), r->n, 0);
    TRY(post_from(r, 0));
    TRY(await_from(r, mine));
    TRY(await_from(r, 0));
    add(r, 0, r->n, 0);
    return 0;
}

/* Posts the receives for piece p of the own range from all ranks. */
static err post_piece(struct rank *r, const i32 *in, i32 p) {
    for (i32 k = 0; k < comm_size(r->comm); k++) {
        struct comm_message *m = &r->m[in[k] + p];
        if (in[k] < 0 || p >= in[RANKS]) continue;
        m->data = place(r, k, p);
        TRY(comm_post(r->comm, m));
    }
    return 0;
}

/* Posts receives for the own range as far as buffers allow; in[k]: first message of rank k, in[RANKS]: number of messages. */
static err receive(struct rank *r, i32 *in) {
    const i32 me = comm_rank(r->comm), first = r->count;
    for (i32 k = 0; k < comm_size(r->comm); k++) {
        in[k] = k == me ? -1 : r->count;
        if (k != me) pieces(r, k, false, me);
    }
    in[RANKS] = (r->count - first) / (comm_size(r->comm) - 1);
    for (i32 p = 0; p < AHEAD; p++) TRY(post_piece(r, in, p));
    return 0;
}

/* Sums piece p once all ranks' parts have arrived, and sends the sum to all. */
static err sum_piece(struct rank *r, const i32 *in, i32 p) {
    const i32 me = comm_rank(r->comm), size = comm_size(r->comm), sums = r->count;
    const i64 at = border(r, me) + (i64)p * (PIECE / 4), len = lmin(PIECE / 4, end_of(r, me) - at);
    for (i32 k = 0; k < size; k++)
        if (k != me) TRY(await(r, &r->m[in[k] + p]));
    add(r, at, len, p);
    TRY(post_piece(r, in, p + AHEAD));
    for (i32 k = 0; k < size; k++)
        if (k != me) r->m[r->count++] = message(k, true, r->v + at, len, (u32)p);
    for (i32 i = sums; i < r->count; i++) TRY(comm_post(r->comm, &r->m[i]));
    return 0;
}

/* Sends the other ranks' ranges, receives and sums the own range, then receives the other sums. */
static err large_sum(struct rank *r) {
    const i32 me = comm_rank(r->comm), size = comm_size(r->comm);
    i32 in[RANKS + 1];
    for (i32 k = 0; k < size; k++)
        if (k != me) pieces(r, k, true, k);
    const i32 mine = r->count;
    TRY(post_from(r, 0));
    TRY(receive(r, in));
    for (i32 p = 0; p < in[RANKS]; p++) TRY(sum_piece(r, in, p));
    for (i32 i = 0; i < mine; i++) TRY(await(r, &r->m[i])); /* before their ranges are overwritten */
    const i32 sums = r->count;
    for (i32 k = 0; k < size; k++)
        if (k != me) pieces(r, k, false, k);
    TRY(post_from(r, sums));
    TRY(await_from(r, sums));
    return await_from(r, mine);
}

static err sum_job(struct comm *c, void *arg) {
    struct rank *r = arg;
    (void)c;
    r->count = r->first = 0;
    return r->n * 4 <= SMALL ? small_sum(r) : large_sum(r);
}

static err sum(struct rank *r) {
    comm_begin(r->comm, sum_job, r);
    return comm_end(r->comm);
}

static err barrier(struct rank *r) {
    u8 mine = 1, all[COMM_RANKS];
    return comm_allgather(r->comm, "barrier", &mine, 1, all);
}

static int by_size(const void *a, const void *b) {
    const f64 x = *(const f64 *)a, y = *(const f64 *)b;
    return (x > y) - (x < y);
}

static f64 median(f64 *v, i32 n) {
    qsort(v, (size_t)n, sizeof *v, by_size);
    return v[n / 2];
}

/* Number of sums per batch for the time budget; rank 0's clock decides. */
static err count_of(struct rank *r, i32 *count) {
    f64 t0 = 0;
    for (i32 k = 0; k < WARM + 1; k++) {
        if (k == WARM) t0 = clock_now();
        TRY(sum(r));
    }
    *count = (i32)dmax(1, dmin(20000, r->budget / (clock_now() - t0 + 1e-9)));
    return comm_broadcast(r->comm, "count", count, sizeof *count);
}

static err one_size(struct rank *r, i64 bytes) {
    f64 took[BATCHES];
    i32 count;
    r->n = bytes / 4;
    fill(r);
    TRY(sum(r));
    u8 good = is_right(r), all[COMM_RANKS];
    memset(r->v, 0, (size_t)bytes); /* repeated sums would overflow */
    TRY(count_of(r, &count));
    for (i32 b = 0; b < BATCHES; b++) {
        TRY(barrier(r));
        const f64 t0 = clock_now();
        for (i32 k = 0; k < count; k++) TRY(sum(r));
        took[b] = (clock_now() - t0) / count;
    }
    TRY(comm_allgather(r->comm, "right", &good, 1, all));
    for (i32 k = 0; k < comm_size(r->comm); k++) good = good && all[k];
    if (comm_rank(r->comm) == 0) printf("%lld %.9f %s\n", (long long)bytes, median(took, BATCHES), good ? "right" : "wrong");
    return 0;
}

/* memcpy on all ranks at once, each in its own memory. */
static err copy_limit(struct rank *r, i64 bytes) {
    f64 took[BATCHES];
    for (i32 b = 0; b < BATCHES + 1; b++) {
        const i32 turns = (i32)lmax(1, MOST / bytes);
        TRY(barrier(r));
        const f64 t0 = clock_now();
        for (i32 k = 0; k < turns; k++) {
            memcpy(r->other, r->v, (size_t)bytes);
            __asm__ volatile("" : : "r"(r->other) : "memory");
        }
        if (b > 0) took[b - 1] = (clock_now() - t0) / turns;
    }
    if (comm_rank(r->comm) == 0) printf("copy %lld %.9f\n", (long long)bytes, median(took, BATCHES));
    return 0;
}

/* Barrier of threads without messages, which would be measured too. */
static void meet(struct rank *r) {
    static struct {
        _Alignas(64) _Atomic i64 turn;
    } at[RANKS];
    atomic_store_explicit(&at[comm_rank(r->comm)].turn, ++r->turn, memory_order_release);
    for (i32 k = 0; k < comm_size(r->comm); k++)
        while (atomic_load_explicit(&at[k].turn, memory_order_acquire) < r->turn) cpu_relax();
}

/* Each rank writes memory that the other has read and reads what the other wrote: an in-place sum does both with every byte.
 * Takes the better of two write methods. Threads only. */
static err exchange_limit(struct rank *r, i64 bytes) {
    static char *of[RANKS];
    const i32 me = comm_rank(r->comm), next = (me + 1) % comm_size(r->comm), turns = (i32)lmax(1, MOST / 4 / bytes);
    f64 took[BATCHES], best = 1e9;
    if (!r->thread_rank) return 0;
    of[me] = (char *)r->v;
    TRY(barrier(r));
    for (i32 way = 0; way < 2; way++) {
        for (i32 b = 0; b < BATCHES + 1; b++) {
            meet(r);
            const f64 t0 = clock_now();
            for (i32 k = 0; k < turns; k++) {
                if (way == 0) memcpy(of[me], r->other, (size_t)bytes);
                else copy_out(of[me], r->other, (size_t)bytes);
                meet(r);
                memcpy(r->other, of[next], (size_t)bytes);
                __asm__ volatile("" : : "r"(r->other) : "memory");
                meet(r);
            }
            if (b > 0) took[b - 1] = (clock_now() - t0) / turns;
        }
        best = dmin(best, median(took, BATCHES));
    }
    if (me == 0) printf("exchange %lld %.9f\n", (long long)bytes, best);
    return 0;
}

static err all_sizes(struct rank *r) {
    for (i64 bytes = 4; bytes <= MOST; bytes *= 4) {
        if (bytes >= 1 << 16) TRY(copy_limit(r, bytes));
        if (bytes >= 1 << 16) TRY(exchange_limit(r, bytes));
        TRY(one_size(r, bytes));
    }
    return 0;
}

static err live(struct rank *r) {
    const i32 size = comm_size(r->comm);
    if (r->cores.has) cores_stay(&r->cores.share);
    TRY(comm_connect(r->comm));
    r->v = comm_alloc(r->comm, MOST);
    NEW(r->other, MOST / 4);
    NEW(r->m, 4 * (i64)size * (MOST / PIECE + 1));
    err e = r->v ? all_sizes(r) : -E601;
    if (e >= 0) e = barrier(r); /* until all have read the sent data */
    comm_release(r->comm, r->v);
    mem_free(r->other);
    mem_free(r->m);
    return e;
}

static void *on_a_thread(void *self) {
    struct rank *r = self;
    r->e = live(r);
    if (r->e < 0) r->why = *err_last();
    if (r->e < 0) comm_abort(r->comm);
    else comm_succeed(r->comm);
    return NULL;
}

/* Cost of monitoring: nanoseconds per flight record entry, and per kilobyte of weight hash. */
static err print_parts(void) {
    enum { TIMES = 200000, BYTES = 1 << 22 };
    f64 entry[BATCHES], hash[BATCHES];
    struct flight *f = mem_alloc(sizeof *f);
    char *data = mem_alloc(BYTES);
    u64 h = COMM_HASH;
    for (i32 b = 0; f && data && b < BATCHES; b++) {
        const f64 t0 = clock_now();
        for (i32 k = 0; k < TIMES; k++) flight_add(f, &(struct flight_entry){.number = (u32)k, .what = FLIGHT_STEP});
        const f64 t1 = clock_now();
        h = comm_hash(h, data, BYTES);
        entry[b] = (t1 - t0) / TIMES;
        hash[b] = (clock_now() - t1) / (BYTES >> 10);
    }
    if (f && data) printf("entry %.2f\n", 1e9 * median(entry, BATCHES));
    if (f && data) printf("hash %.2f %llx\n", 1e9 * median(hash, BATCHES), (unsigned long long)h);
    const err e = f && data ? 0 : -E601;
    mem_free(f);
    mem_free(data);
    return e;
}

static err as_threads(struct rank *r, i32 size) {
    struct comm *comm[RANKS];
    TRY(comm_threads(size, comm));
    for (i32 k = 0; k < size; k++) {
        r[k].comm = comm[k];
        r[k].thread_rank = true;
        rank_cores_of_thread(k, size, 1, &r[k].cores);
        if (pthread_create(&r[k].thread, NULL, on_a_thread, &r[k]) != 0) return FAIL(E601, "no thread for rank %d", k);
    }
    for (i32 k = 0; k < size; k++) pthread_join(r[k].thread, NULL);
    for (i32 k = 0; k < size; k++) comm_free(r[k].comm);
    return 0;
}

static err as_process(struct rank *r) {
    TRY(comm_mpi(&r->comm));
    if (!r->comm) return FAIL(E803, "no launcher has started this");
    on_a_thread(r);
    comm_free(r->comm);
    return 0;
}

int main(int argc, char **argv) {
    static struct rank r[RANKS];
    const i32 size = argc > 1 ? atoi(argv[1]) : 0;
    for (i32 k = 0; k < RANKS; k++) r[k].budget = argc > 2 ? strtod(argv[2], NULL) : 0.01;
    setvbuf(stdout, NULL, _IOLBF, 0);
    err e = size > RANKS ? FAIL(E103, "at most %d ranks", RANKS) : kern_init();
    if (argc > 1 && strcmp(argv[1], "parts") == 0) return err_exit_status(e >= 0 ? print_parts() : e);
    if (e >= 0) e = size > 0 ? as_threads(r, size) : as_process(&r[0]);
    for (i32 k = 0; k < imax(1, size) && e >= 0; k++) {
        if (r[k].e < 0) err_put(&r[k].why);
        e = r[k].e;
    }
    if (e < 0) fprintf(stderr, "%s\n", err_last()->text);
    return err_exit_status(e);
}
