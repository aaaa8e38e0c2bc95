/* faulty.c - a transport that is as bad as one wishes: for tests of what stands above it.
 *
 *     agent --send--> [ held until due, in order ] --> the transport inside        delay   every message, a random time
 *                                                                                  rate    as on a line to each rank of so many
 *                                                                                          bytes per second, one after another
 *                                                                                  lag     every message, so long on its way
 *                                                                                  drop    the n-th never goes out
 *                                                                                  swap    the n-th and the next change places
 *                                                                                  die     at the n-th this rank fails,
 *                                                                                          and does nothing more; of those of
 *                                                                                          a name: when all else is done
 *
 * Messages are counted by each rank from 1 on, small collectives included. */
#include "comm/faulty.h"

#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/rng.h"
#include "comm/transport.h"

struct faulty {
    const struct transport *inside;
    void *end;
    struct comm_fault fault;
    i32 rank;
    i32 size;
    bool dead;
    u64 sent, met[2]; /* sent: messages, met: those that are counted for each of two deaths */
    i64 open;         /* begun and not done */
    u64 *asked, *gone; /* [size][channels] messages to a rank that it was asked for, and that went out */
    f64 *line;         /* [size] when the line to a rank is free again */
    struct comm_message *late; /* swapped: goes out after the next one */
};

/* What a message keeps in the last of its `inside`: the transport inside uses the first ones. */
enum { STATE = 6, PLACE = 7 };
enum { HELD = 1, OUT, OVER, LOST, FATAL };

static i32 way(const struct comm_message *m) { return m->peer * COMM_CHANNELS + m->channel; }

/* The line is held while the bytes go through; the lag comes on top, and holds up nobody. */
static f64 when(struct faulty *f, const struct comm_message *m) {
    const f64 now = clock_now(), late = f->fault.delay * (f64)rng_uniform(f->fault.seed, RNG_TEST, (u32)f->rank, f->sent);
    f64 *line = &f->line[m->peer];
    if (f->fault.rate > 0) *line = dmax(*line, now) + m->head.bytes / f->fault.rate;
    return dmax(now, *line) + f->fault.lag + late;
}

/* Is it this one that the rank dies of? */
static bool kills(struct faulty *f, const struct comm_message *m, i32 death) {
    const struct comm_fault *a = &f->fault;
    const char *of = death ? a->of2 : a->of;
    if (f->rank != (death ? a->rank2 : a->rank) || (of && strncmp(of, m->head.name, COMM_NAME) != 0)) return false;
    return ++f->met[death] == (death ? a->die2 : a->die);
}

static bool hits(const struct faulty *f, u64 n) { return n != 0 && f->sent == n && f->rank == f->fault.rank; }

static err die(struct faulty *f) {
    f->dead = true;
    return FAIL(E801, "rank %d was told to die at message %llu", f->rank, (unsigned long long)f->sent);
}

static err send_(void *self, struct comm_message *m) {
    struct faulty *f = self;
    f64 due;
    f->sent++;
    const bool first = kills(f, m, 0), second = kills(f, m, 1);
    if ((first && !f->fault.of) || (second && !f->fault.of2)) return die(f);
    due = when(f, m);
    f->open++;
    m->inside[STATE] = first || second ? FATAL : hits(f, f->fault.drop) ? LOST : HELD;
    m->inside[PLACE] = f->asked[way(m)]++;
    memcpy(&m->inside[0], &due, sizeof due);
    if (hits(f, f->fault.swap)) f->late = m;
    return 0;
}

static err recv_(void *self, struct comm_message *m) {
    struct faulty *f = self;
    f->open++;
    m->inside[STATE] = OUT;
    return f->inside->recv(f->end, m);
}

/* One that is done at once is not asked for again where it went out behind another. */
static err go(struct faulty *f, struct comm_message *m) {
    f->gone[way(m)]++;
    TRY(f->inside->send(f->end, m));
    m->inside[STATE] = m->done ? OVER : OUT;
    f->open -= m->done;
    return 0;
}

/* Its time has come, and those before it are out; of two that change places the second is the first. */
static err try_go(struct faulty *f, struct comm_message *m) {
    f64 due;
    memcpy(&due, &m->inside[0], sizeof due);
    if (clock_now() < due || m == f->late) return 0;
    const bool overtakes = f->late && way(f->late) == way(m) && m->inside[PLACE] == f->late->inside[PLACE] + 1;
    if (f->gone[way(m)] != m->inside[PLACE] - (overtakes ? 1 : 0)) return 0;
    struct comm_message *late = f->late;
    if (overtakes) f->late = NULL;
    TRY(go(f, m));
    return overtakes ? go(f, late) : 0;
}

static err test(void *self, struct comm_message *m, bool *done) {
    struct faulty *f = self;
    *done = false;
    if (m->inside[STATE] == HELD) TRY(try_go(f, m));
    if (m->inside[STATE] == FATAL && f->open == 1) return die(f);
    *done = m->inside[STATE] == OVER;
    if (m->inside[STATE] != OUT) return 0;
    TRY(f->inside->test(f->end, m, done));
    f->open -= *done;
    return 0;
}

static void cancel(void *self) {
    struct faulty *f = self;
    if (f->inside->cancel) f->inside->cancel(f->end);
}

static const struct err_record *find_abort(void *self, i32 *rank) {
    struct faulty *f = self;
    return f->inside->find_abort ? f->inside->find_abort(f->end, rank) : NULL;
}

static void abort_run(void *self, const struct err_record *why) {
    struct faulty *f = self;
    if (f->inside->abort) f->inside->abort(f->end, why);
}

static err allow_recovery(void *self) {
    struct faulty *f = self;
    return f->inside->allow_recovery(f->end);
}

static err send_dead(void *self, const struct rank_set *dead) {
    struct faulty *f = self;
    return f->dead ? die(f) : f->inside->send_dead(f->end, dead);
}

static err recv_dead(void *self, i32 from, struct rank_set *dead) {
    struct faulty *f = self;
    return f->dead ? die(f) : f->inside->recv_dead(f->end, from, dead);
}

static err reconnect(void *self, const i32 *left, i32 n) {
    struct faulty *f = self;
    const size_t ways = (size_t)f->size * COMM_CHANNELS;
    if (f->dead) return die(f);
    memset(f->asked, 0, ways * sizeof *f->asked);
    memset(f->gone, 0, ways * sizeof *f->gone);
    memset(f->line, 0, (size_t)f->size * sizeof *f->line);
    f->late = NULL;
    f->open = 0;
    return f->inside->reconnect(f->end, left, n);
}

static void close_(void *self, bool well) {
    struct faulty *f = self;
    f->inside->close(f->end, well);
    mem_free(f->asked);
    mem_free(f->gone);
    mem_free(f->line);
    mem_free(f);
}

static const struct transport faulty = {.name = "faulty",
                                        .send = send_,
                                        .recv = recv_,
                                        .test = test,
                                        .cancel = cancel,
                                        .find_abort = find_abort,
                                        .abort = abort_run,
                                        .close = close_,
                                        .allow_recovery = allow_recovery,
                                        .send_dead = send_dead,
                                        .recv_dead = recv_dead,
                                        .reconnect = reconnect};

static err wrap(const struct transport *t, void *end, i32 rank, i32 size, const void *fault, struct comm **out) {
    struct faulty *f = mem_alloc(sizeof *f);
    if (f) *f = (struct faulty){.inside = t, .end = end, .rank = rank, .size = size, .fault = *(const struct comm_fault *)fault};
    if (f) f->asked = mem_alloc((size_t)size * COMM_CHANNELS * sizeof *f->asked);
    if (f) f->gone = mem_alloc((size_t)size * COMM_CHANNELS * sizeof *f->gone);
    if (f) f->line = mem_alloc((size_t)size * sizeof *f->line);
    if (f && f->asked && f->gone && f->line) return comm_new(&faulty, f, rank, size, out);
    if (f) close_(f, false);
    else t->close(end, false);
    return -E601;
}

err comm_faulty(i32 size, const struct comm_fault *fault, struct comm **out) {
    return comm_threads_by(size, wrap, fault, out);
}
