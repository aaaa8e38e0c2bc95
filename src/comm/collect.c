/* collect.c - small collectives between training steps: allgather, broadcast, check_equal, over point-to-point messages. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "comm/rank.h"

#define LONGER 10 /* comm_broadcast_slow waits this many deadlines without a sign of life */

struct small {
    const char *name;
    const void *mine;
    u32 bytes;
    char *all; /* [size][bytes] */
    i32 root;  /* sending rank; -1 = all */
    u64 serial;
};

static struct comm_message small_message(const struct small *s, i32 peer, bool sends) {
    struct comm_message m = {.peer = peer, .sends = sends};
    m.head = (struct comm_head){.serial = s->serial, .bytes = s->bytes};
    snprintf(m.head.name, sizeof m.head.name, "%s", s->name);
    m.data = sends ? (void *)(uintptr_t)s->mine : s->all + (s->root < 0 ? (i64)peer * s->bytes : 0);
    return m;
}

static void small_messages(const struct comm *c, const struct small *s, struct comm_message *m, i32 *n) {
    for (i32 k = 0; k < comm_size(c); k++) {
        if (k == comm_rank(c)) continue;
        if (s->root < 0 || s->root == k) m[(*n)++] = small_message(s, k, false);
        if (s->root < 0 || s->root == comm_rank(c)) m[(*n)++] = small_message(s, k, true);
    }
}

static err small_job(struct comm *c, void *arg) {
    struct comm_message *m;
    i32 n = 0;
    NEW(m, 2 * comm_size(c));
    small_messages(c, arg, m, &n);
    err e = comm_wait(c, m, n);
    if (e < 0) comm_cancel(c);
    mem_free(m);
    return e;
}

static err run_collective(struct comm *c, struct small s) {
    s.serial = ++c->serial;
    return rank_job(c, small_job, &s);
}

err comm_allgather(struct comm *c, const char *name, const void *mine, u32 bytes, void *all) {
    memcpy((char *)all + (i64)comm_rank(c) * bytes, mine, bytes);
    if (comm_size(c) == 1) return 0;
    return run_collective(c, (struct small){name, mine, bytes, all, .root = -1});
}

err comm_broadcast_from(struct comm *c, i32 root, const char *name, void *data, i64 bytes) {
    enum { PART = 1 << 26 }; /* bytes of a message */
    char *p = data;
    if (comm_size(c) == 1) return 0;
    do {
        const u32 part = (u32)lmin(PART, bytes);
        TRY(run_collective(c, (struct small){name, p, part, p, .root = root}));
        p += part;
        bytes -= part;
    } while (bytes > 0);
    return 0;
}

err comm_broadcast(struct comm *c, const char *name, void *data, i64 bytes) {
    return comm_broadcast_from(c, 0, name, data, bytes);
}

/* FNV-1a over words of eight bytes. */
u64 comm_hash(u64 before, const void *data, size_t bytes) {
    const unsigned char *p = data;
    u64 h = before, word = 0;
    for (; bytes >= sizeof word; bytes -= sizeof word, p += sizeof word) {
        memcpy(&word, p, sizeof word);
        h = (h ^ word) * 0x100000001b3u;
        h ^= h >> 32;
    }
    for (; bytes > 0; bytes--, p++) h = (h ^ *p) * 0x100000001b3u;
    return h;
}

/* STRETTO_DEADLINE applies to messages; it does not make work faster. A shorter deadline set with comm_set_deadline does count.
 * Returns the deadline of before, for stop_waiting. */
static f64 wait_for_work(struct comm *c) {
    const f64 usual = comm_set_deadline(c, (f64)INFINITY);
    c->patience = c->life_check = LONGER * (usual < clock_deadline() ? usual : dmax(usual, CLOCK_DEADLINE));
    return usual;
}

static void stop_waiting(struct comm *c, f64 usual) {
    c->patience = 0;
    comm_set_deadline(c, usual);
}

err comm_broadcast_slow(struct comm *c, const char *name, void *data, u32 bytes) {
    if (comm_size(c) == 1) return 0;
    const f64 usual = wait_for_work(c);
    const err e = comm_broadcast(c, name, data, bytes);
    stop_waiting(c, usual);
    return e;
}

err comm_allgather_slow(struct comm *c, const char *name, const void *mine, u32 bytes, void *all) {
    if (comm_size(c) == 1) return comm_allgather(c, name, mine, bytes, all);
    const f64 usual = wait_for_work(c);
    const err e = comm_allgather(c, name, mine, bytes, all);
    stop_waiting(c, usual);
    return e;
}

/* Where the error of a rank is not one that rank 0 has on its own host. */
static void name_host(const struct comm *c, i32 rank, char text[sizeof((struct err_record *)0)->text]) {
    const char *host = comm_rank_info(c, rank)->host;
    const size_t n = strlen(text), room = sizeof((struct err_record *)0)->text;
    if (strcmp(host, comm_rank_info(c, 0)->host) != 0) snprintf(text + n, room - n, " (rank %d, host %s)", rank, host);
}

err comm_agree(struct comm *c, const char *name, err e) {
    struct err_record why = {0};
    i32 mine = e < 0 ? -e : 0, *code, first = 0;
    if (comm_size(c) == 1) return e;
    if (e < 0) why = *err_last();
    NEW(code, comm_size(c));
    const err sent = comm_allgather_slow(c, name, &mine, sizeof mine, code);
    while (sent >= 0 && first < comm_size(c) && code[first] == 0) first++;
    mem_free(code);
    TRY(sent);
    if (first == comm_size(c)) return 0;
    TRY(comm_broadcast_from(c, first, name, &why, sizeof why));
    name_host(c, first, why.text);
    err_put(&why);
    return -why.code;
}

err comm_share_failure(struct comm *c, const char *name, err e) {
    struct err_record why = {0};
    if (e < 0) why = *err_last();
    TRY(comm_broadcast_slow(c, name, &why, sizeof why));
    if (why.code == 0) return 0;
    err_put(&why);
    return -why.code;
}

err comm_check_equal(struct comm *c, const char *what, u64 number, const char *fix) {
    if (comm_size(c) == 1) return 0;
    u64 *all;
    NEW(all, comm_size(c));
    err e = comm_allgather(c, what, &number, sizeof number, all);
    for (i32 k = 0; k < comm_size(c) && e >= 0; k++)
        if (all[k] != all[0])
            e = FAIL_AT(E804, NULL, fix, "%s: rank %d (host %s) differs from rank 0 (host %s): hash %016llx, not %016llx", what,
                        k, comm_rank_info(c, k)->host, comm_rank_info(c, 0)->host, (unsigned long long)all[k],
                        (unsigned long long)all[0]);
    mem_free(all);
    return e;
}
