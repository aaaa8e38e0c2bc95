/* link.c - latency and rate of the link between two ranks, by messages that go to and fro. */
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "comm/rank.h"

enum { SMALL = 64, LARGE = 1 << 20, TIMES_SMALL = 41, TIMES_LARGE = 7 };
#define SPREAD_S 0.02 /* until the system has moved threads of two ranks from one core to two */
#define PATIENT_S 0.2 /* the same where messages take longer than NEAR_S: another program may have one of the cores */
#define NEAR_S 5e-6

struct ping {
    char *data; /* [LARGE] */
    u64 serial;
    struct comm_link *out;
};

static int ascending(const void *a, const void *b) {
    const f64 x = *(const f64 *)a, y = *(const f64 *)b;
    return (x > y) - (x < y);
}

static err pass(struct comm *c, const struct ping *p, u32 number, u32 bytes, bool sends) {
    struct comm_message m = {.peer = comm_rank(c) == 0 ? comm_size(c) - 1 : 0, .sends = sends, .data = p->data};
    m.head = (struct comm_head){.serial = p->serial, .number = number, .bytes = bytes, .name = "link"};
    return comm_wait(c, &m, 1);
}

/* Half the time of a message there and back: the lower quartile, since other programs only make it longer. */
static err half_round(struct comm *c, const struct ping *p, u32 bytes, i32 times, f64 *seconds) {
    f64 took[TIMES_SMALL];
    const bool first = comm_rank(c) == 0;
    for (i32 i = 0; i < times; i++) {
        const f64 t0 = clock_now();
        TRY(pass(c, p, (u32)i, bytes, first));
        TRY(pass(c, p, (u32)i, bytes, !first));
        took[i] = 0.5 * (clock_now() - t0);
    }
    qsort(took, (size_t)times, sizeof *took, ascending);
    *seconds = took[times / 4];
    return 0;
}

/* The least of rounds for as long as threads may still share a core, with each other or with another program; rank 0 says whether
 * another one follows. */
static err small_rounds(struct comm *c, const struct ping *p, f64 *seconds) {
    const bool first = comm_rank(c) == 0;
    const f64 begin = clock_now();
    *seconds = INFINITY;
    do {
        f64 round;
        TRY(half_round(c, p, SMALL, TIMES_SMALL, &round));
        *seconds = dmin(*seconds, round);
        if (first) p->data[0] = clock_now() - begin < (*seconds > NEAR_S ? PATIENT_S : SPREAD_S);
        TRY(pass(c, p, TIMES_SMALL, SMALL, first));
    } while (p->data[0]);
    return 0;
}

static err ping_job(struct comm *c, void *arg) {
    struct ping *p = arg;
    f64 small = 0, large = 0;
    err e = small_rounds(c, p, &small);
    if (e >= 0) e = half_round(c, p, LARGE, TIMES_LARGE, &large);
    if (e < 0) comm_cancel(c);
    *p->out = (struct comm_link){.latency = small, .per_byte = dmax(0, large - small) / (LARGE - SMALL)};
    return e;
}

err comm_measure_link(struct comm *c, struct comm_link *out) {
    struct ping p = {.out = out};
    *out = (struct comm_link){0};
    if (comm_size(c) < 2) return 0;
    p.serial = ++c->serial;
    NEW(p.data, LARGE);
    const bool ends = comm_rank(c) == 0 || comm_rank(c) == comm_size(c) - 1;
    err e = ends ? rank_job(c, ping_job, &p) : 0;
    if (e >= 0) e = comm_broadcast(c, "link", out, sizeof *out);
    mem_free(p.data);
    return e;
}
