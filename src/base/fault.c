/* fault.c - see fault.h. */
#include "base/fault.h"

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/str.h"

enum { FIELDS = 4, WORD = 32 };

struct demand {
    i64 rank, step, nth; /* -1 = any */
    char phase[WORD], kind[WORD];
    f64 factor;        /* of the phase slow */
    const char *latch; /* file, or NULL */
};

static const char *const phases[] = {"write", "rename", "manifest", "recovery", "report", "spill", "slow"};
enum { SLOWEST = 100 };
static const char *const kinds[] = {"kill9", "enospc", "bitflip"};

static i32 index_of(const char *word, const char *const *words, i32 n) {
    for (i32 i = 0; i < n; i++)
        if (strcmp(word, words[i]) == 0) return i;
    return -1;
}

static bool number(const char *s, i64 *out) {
    *out = -1;
    return strcmp(s, "*") == 0 || (str_to_i64(s, strlen(s), out) && *out >= 0);
}

/* Splits in place at `mark`: returns the text after it, or NULL. */
static char *cut(char *s, char mark) {
    char *at = strchr(s, mark);
    if (at) *at++ = 0;
    return at;
}

/* Parses "slow(2)"; no other phase takes a number. */
static bool phase_of(const char *field, struct demand *d) {
    const char *open = strchr(field, '('), *end = open ? strchr(open, ')') : NULL;
    const i32 n = open ? (i32)(open - field) : (i32)strlen(field);
    snprintf(d->phase, sizeof d->phase, "%.*s", n, field);
    d->factor = 0;
    if (index_of(d->phase, phases, COUNT(phases)) < 0 || (strcmp(d->phase, "slow") == 0) != (open != NULL)) return false;
    if (!open) return true;
    return end && !end[1] && str_to_f64(open + 1, (size_t)(end - open - 1), '.', &d->factor) && d->factor >= 1 &&
           d->factor <= SLOWEST;
}

static bool parse(char *text, struct demand *d) {
    char *field[FIELDS] = {text}, *kind;
    d->latch = cut(text, '@');
    kind = cut(text, '=');
    for (i32 i = 1; i < FIELDS && field[i - 1]; i++) field[i] = cut(field[i - 1], ':');
    d->nth = 1;
    snprintf(d->kind, sizeof d->kind, "%s", kind ? kind : kinds[0]);
    if (!field[2] || !number(field[0], &d->rank) || !number(field[1], &d->step)) return false;
    if (field[3] && (!number(field[3], &d->nth) || d->nth < 1)) return false;
    return phase_of(field[2], d) && index_of(d->kind, kinds, COUNT(kinds)) >= 0;
}

/* Parses STRETTO_FAULT for a rank; *any = false if it does not apply. */
static err demanded(i32 rank, struct demand *d, bool *any) {
    const char *text = getenv("STRETTO_FAULT");
    char copy[4096];
    *any = false;
    if (!text || !*text) return 0;
    snprintf(copy, sizeof copy, "%s", text);
    if (!parse(copy, d))
        return FAIL_AT(E104, "STRETTO_FAULT", "rank:step:phase[:nth][=kind][@FILE] or rank:step:slow(2)   (src/base/fault.h)",
                       "\"%s\" names no fault", text);
    if (d->latch) d->latch = text + (d->latch - copy);
    *any = d->rank < 0 || d->rank == rank;
    return 0;
}

/* True for the first process that creates the latch file, in this run or a restarted one. */
static bool first(const char *latch) {
    if (!latch) return true;
    const int fd = open(latch, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) return false;
    close(fd);
    return true;
}

/* Number of calls in this process under the same STRETTO_FAULT, from 1. */
static i64 times(const char *demand) {
    static _Atomic u64 state; /* hash of the demand, times */
    const u64 hash = hash_bytes(HASH_SEED, demand, strlen(demand));
    u64 old = atomic_load(&state), now;
    do now = old >> 32 == hash >> 32 ? old + 1 : hash >> 32 << 32 | 1;
    while (!atomic_compare_exchange_weak(&state, &old, now));
    return (i64)(now & UINT32_MAX);
}

err fault_at(const char *phase, i32 rank, i64 step, enum fault *out) {
    struct demand d;
    bool any;
    *out = FAULT_NONE;
    TRY(demanded(rank, &d, &any));
    if (!any || strcmp(d.phase, phase) != 0 || (d.step >= 0 && step < d.step)) return 0;
    if (times(getenv("STRETTO_FAULT")) != d.nth || !first(d.latch)) return 0;
    *out = (enum fault)index_of(d.kind, kinds, COUNT(kinds));
    if (*out == FAULT_NONE) raise(SIGKILL);
    return 0;
}

err fault_slow(i32 rank, i64 *from, f64 *factor) {
    struct demand d;
    bool any;
    *factor = 0;
    TRY(demanded(rank, &d, &any));
    if (!any || strcmp(d.phase, "slow") != 0) return 0;
    *factor = d.factor;
    *from = d.step;
    return 0;
}
