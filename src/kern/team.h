/* team.h - synchronization of a team (struct cell_team in kern.h): each member has one flag on its own cache line, which only
 * increases.
 *
 *     member k:   compute own panels of step t      team_signal(done)      team_wait(done)      step t + 1
 *
 * team_signal is a release and team_wait an acquire: after the wait a member sees everything that the others wrote before they
 * signalled. A wait takes about a microsecond if all members run; otherwise it yields the core (backoff.h). */
#ifndef STRETTO_KERN_TEAM_H
#define STRETTO_KERN_TEAM_H

#include "base/backoff.h"
#include "kern/kern.h"

static inline u64 *team_flag(const struct cell_team *m, i32 k) {
    return (u64 *)(void *)(m->flag + (i64)k * TEAM_LINE);
}

/* Splits `count` items among n members: [*begin, *end) is the range of member `me`. */
static inline void team_part(const struct cell_team *m, i32 count, i32 *begin, i32 *end) {
    *begin = m ? (i32)((i64)count * m->me / m->n) : 0;
    *end = m ? (i32)((i64)count * (m->me + 1) / m->n) : count;
}

/* Fetches n floats and the own flag in exclusive state: only this member writes them, so the later stores do not wait for other
 * cores. */
static inline void team_prefetch(const struct cell_team *m, const f32 *p, i64 n) {
#if defined(__x86_64__) || defined(__i386__)
    if (m->flag) __asm__ volatile("prefetchw %0" : : "m"(*team_flag(m, m->me)));
    for (i64 i = 0; i < n; i += TEAM_LINE / (i64)sizeof *p) __asm__ volatile("prefetchw %0" : : "m"(p[i]));
#else
    (void)m, (void)p, (void)n;
#endif
}

static inline void team_signal(const struct cell_team *m, i32 done) {
    if (m && m->flag) __atomic_store_n(team_flag(m, m->me), m->base + (u64)done, __ATOMIC_RELEASE);
}

static inline void team_wait_one(const struct cell_team *m, i32 k, i32 done) {
    for (struct backoff r = {0}; __atomic_load_n(team_flag(m, k), __ATOMIC_ACQUIRE) < m->base + (u64)done;) backoff_pause(&r);
}

/* Waits until every other member has signalled `done`. 0 = no wait: flags may still hold values of an earlier call. */
static inline void team_wait(const struct cell_team *m, i32 done) {
    for (i32 k = 0; m && m->flag && done > 0 && k < m->n; k++)
        if (k != m->me) team_wait_one(m, k, done);
}

/* For kernels that do not split their work: member 0 computes everything, the others wait for it in team_end. */
static inline bool team_is_leader(const struct cell_args *x) { return !x->team || !x->team->flag || x->team->me == 0; }
static inline void team_end(const struct cell_args *x, i32 steps) {
    if (team_is_leader(x))
        team_signal(x->team, steps);
    else /* so there are flags */
        team_wait_one(x->team, 0, steps);
}

#endif
