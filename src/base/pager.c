/* pager.c - see pager.h: a table of areas sorted by address, a ring of resident runs, and the handler of SIGSEGV.
 *
 * The handler uses system calls and the tables alone.  They live in pages of their own, since the heap calls the pager.  The lock
 * spins: a thread that holds it never touches watched memory, and blocks no signal that the handler could wait for. */
#define _GNU_SOURCE
#include "base/pager.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    PAGE = 4096,
    AROUND = 16,     /* pages of a run at a random place: what the kernel maps around a fault */
    RUN_MOST = 256,  /* pages of a run of a sequential pass */
    AREAS = 1 << 14, /* two mappings of the process for each run: the system allows 65530 */
    RUNS = 1 << 14,
    LOOK = 8,         /* runs between two looks at the memory of the process; */
    LOOK_PAGES = 128, /* or pages */
    SPARE = 512,      /* pages that the process may take between two looks */
    PEEKS = 64,       /* peeks between two looks */
    LEAST = 512       /* resident pages that no limit takes away: 2 MiB */
};

struct area {
    char *at;
    i64 pages, next; /* next: the page after the last run, where a sequential pass goes on */
    i64 run;         /* pages of that run */
    int rights, fd;
    i64 offset; /* in the file */
    size_t own; /* bytes of this struct with its marks */
    u8 in[];    /* [pages] 1 = resident */
};

struct run {
    struct area *area; /* NULL: unmapped since */
    i64 first, n;
};

static struct {
    atomic_flag lock;
    _Atomic i64 limit;
    const _Atomic i64 *live;
    i64 narea, pages, resident, faults; /* pages: of all areas */
    u64 peeks;
    i64 runs, taken;          /* admitted since the last look, and their pages */
    struct area *area[AREAS]; /* by address */
    struct run ring[RUNS];    /* runs [head, tail), modulo RUNS */
    u64 head, tail;
    i64 anonymous, file; /* bytes of the process at the last look: not of files; of files that are not watched */
    i64 other;           /* bytes of `anonymous` that are not of the heap */
    i64 fit;             /* pages of runs with which the process would have been at the limit at the last look */
    int statm;           /* /proc/self/statm, -1 = not open */
    struct sigaction before;
} pager = {.lock = ATOMIC_FLAG_INIT, .statm = -1};

i64 pager_limited(void) { return atomic_load_explicit(&pager.limit, memory_order_relaxed); }

static void lock(void) {
    while (atomic_flag_test_and_set_explicit(&pager.lock, memory_order_acquire)) sched_yield();
}

static void unlock(void) { atomic_flag_clear_explicit(&pager.lock, memory_order_release); }

/* The next number of a text of digits and spaces. */
static i64 next_number(const char **p) {
    i64 n = 0;
    while (**p == ' ') ++*p;
    for (; **p >= '0' && **p <= '9'; ++*p) n = n * 10 + (**p - '0');
    return n;
}

static i64 live(void) { return pager.live ? atomic_load_explicit(pager.live, memory_order_relaxed) : 0; }

/* Reads what the process holds: resident pages, and those of files among them. */
static void look(void) {
    char text[128];
    const i64 limit = pager_limited() / PAGE;
    if (pager.statm < 0) pager.statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    const ssize_t n = pager.statm < 0 ? 0 : pread(pager.statm, text, sizeof text - 1, 0);
    pager.runs = pager.taken = 0;
    pager.fit = INT64_MAX;
    if (n <= 0) return;
    text[n] = 0;
    const char *p = text;
    next_number(&p);
    const i64 all = next_number(&p), file = next_number(&p);
    const i64 others = lmax(0, file - pager.resident) * PAGE; /* a run may hold pages that nothing has touched yet */
    pager.anonymous = (all - file) * PAGE;
    pager.file = pager.resident ? lmax(pager.file, others) : others;
    pager.fit = pager.resident + limit - SPARE - all;
}

/* Pages that may be resident beside the program, its stacks and its heap. */
static i64 budget(void) {
    const i64 limit = pager_limited(), heap = lmax(pager.anonymous, pager.other + live());
    if (limit == 0) return INT64_MAX;
    return lmax(LEAST, lmin(pager.fit, (limit - pager.file - heap) / PAGE - SPARE));
}

/* The system call itself: transports of MPI put code of theirs in front of the functions of the C library. */
static bool protect(char *at, i64 pages, int rights) { return syscall(SYS_mprotect, at, (size_t)pages * PAGE, rights) == 0; }

static void drop_oldest(void) {
    const struct run *r = &pager.ring[pager.head++ % RUNS];
    if (!r->area) return;
    char *at = r->area->at + r->first * PAGE;
    protect(at, r->n, PROT_NONE); /* first: nobody maps a page again while it is dropped */
    syscall(SYS_madvise, at, (size_t)r->n * PAGE, MADV_DONTNEED);
    memset(r->area->in + r->first, 0, (size_t)r->n);
    pager.resident -= r->n;
}

static void make_room(i64 pages) {
    const i64 most = budget();
    while (pager.head < pager.tail && pager.resident + pages > most) drop_oldest();
}

/* Pages that one run may have: many areas in turn, as the columns of a file that is read, must fit beside each other. */
static i64 run_most(void) {
    i64 most = RUN_MOST;
    while (most > 1 && most * 8 * pager.narea > budget()) most /= 2;
    return most;
}

/* A run around page k: twice the one before where the pass goes on, else what the kernel maps around a fault. */
static struct run run_of(struct area *a, i64 k) {
    const i64 most = run_most(), large = lmax(AROUND, (budget() / RUNS + AROUND - 1) / AROUND * AROUND);
    const bool on = k == a->next;
    const i64 n = lmin(most, on ? 2 * a->run : lmin(large, RUN_MOST));
    i64 first = on ? k : k / n * n, end = lmin(a->pages, first + n);
    for (i64 i = k; i > first; i--)
        if (a->in[i - 1]) first = i;
    for (i64 i = k + 1; i < end; i++)
        if (a->in[i]) end = i;
    return (struct run){a, first, end - first};
}

static void admit(struct area *a, i64 k) {
    pager.faults++;
    if (++pager.runs >= LOOK || pager.taken >= LOOK_PAGES) look();
    const struct run r = run_of(a, k);
    make_room(r.n);
    if (pager.tail - pager.head == RUNS) drop_oldest();
    for (i32 tries = 0; !protect(a->at + r.first * PAGE, r.n, a->rights); tries++) {
        if (tries == 1) return; /* the signal then ends the process as one that is not ours */
        for (u64 half = (pager.tail - pager.head) / 2; half > 0; half--) drop_oldest(); /* too many mappings */
    }
    memset(a->in + r.first, 1, (size_t)r.n);
    a->next = r.first + r.n;
    a->run = lmax(1, lmin(r.n, RUN_MOST / 2));
    pager.resident += r.n;
    pager.taken += r.n;
    pager.ring[pager.tail++ % RUNS] = r;
}

/* The number of areas at or below an address. */
static i64 below(const char *p) {
    i64 lo = 0, hi = pager.narea;
    while (lo < hi) {
        const i64 mid = (lo + hi) / 2;
        if (pager.area[mid]->at <= p)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static struct area *area_of(const char *p) {
    const i64 i = below(p);
    struct area *a = i ? pager.area[i - 1] : NULL;
    return a && p < a->at + a->pages * PAGE ? a : NULL;
}

static bool touch(const char *p) {
    lock();
    struct area *a = area_of(p);
    const i64 k = a ? (p - a->at) / PAGE : 0;
    if (a && !a->in[k]) admit(a, k); /* else another thread has just done it */
    const bool in = a && a->in[k];
    unlock();
    return in;
}

/* A fault elsewhere goes to the handler of before, or ends the process: the instruction faults again. */
static void on_fault(int n, siginfo_t *info, void *context) {
    const int kept = errno;
    const bool ours = touch(info->si_addr);
    errno = kept;
    if (ours) return;
    if (pager.before.sa_flags & SA_SIGINFO)
        pager.before.sa_sigaction(n, info, context);
    else if (pager.before.sa_handler == SIG_DFL || pager.before.sa_handler == SIG_IGN)
        sigaction(n, &pager.before, NULL);
    else
        pager.before.sa_handler(n);
}

/* A library that was loaded since may have replaced the handler (MPI, for its reports of crashes): so this happens for every
 * area. */
static bool take_signal(void) {
    struct sigaction now, mine = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigfillset(&mine.sa_mask);
    if (sigaction(SIGSEGV, NULL, &now) != 0) return false;
    if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_fault) return true;
    pager.before = now;
    return sigaction(SIGSEGV, &mine, NULL) == 0;
}

void pager_limit(i64 bytes, const _Atomic i64 *heap) {
    lock();
    pager.live = heap;
    if (bytes != atomic_load(&pager.limit)) {
        look();
        pager.other = lmax(0, pager.anonymous - live());
        atomic_store(&pager.limit, bytes);
    }
    unlock();
}

static bool put_area(struct area *a) {
    if (pager.narea == AREAS || !take_signal() || !protect(a->at, a->pages, PROT_NONE)) return false;
    const i64 i = below(a->at);
    memmove(pager.area + i + 1, pager.area + i, sizeof *pager.area * (size_t)(pager.narea - i));
    pager.area[i] = a;
    pager.narea++;
    pager.pages += a->pages;
    return true;
}

bool pager_watch(void *at, size_t bytes, int rights, int fd, i64 offset) {
    const size_t own = (sizeof(struct area) + bytes / PAGE + PAGE - 1) / PAGE * PAGE;
    if (!pager_limited() || bytes < PAGE) return false;
    struct area *a = mmap(NULL, own, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (a == MAP_FAILED) return false;
    *a = (struct area){.at = at, .pages = (i64)(bytes / PAGE), .rights = rights, .fd = fd, .offset = offset, .own = own};
    a->run = 1;
    lock();
    const bool put = put_area(a);
    unlock();
    if (!put) munmap(a, own);
    return put;
}

void pager_drop(const void *at, bool erase) {
    lock();
    const i64 i = below(at) - 1;
    struct area *a = i >= 0 && pager.area[i]->at == at ? pager.area[i] : NULL;
    for (u64 r = pager.head; a && r < pager.tail; r++) {
        struct run *run = &pager.ring[r % RUNS];
        if (run->area != a) continue;
        run->area = NULL;
        pager.resident -= run->n;
    }
    if (a) {
        pager.narea--;
        pager.pages -= a->pages;
        memmove(pager.area + i, pager.area + i + 1, sizeof *pager.area * (size_t)(pager.narea - i));
    }
    unlock();
    if (!a) return;
    /* where the file system has no holes, the blocks stay until the file is closed */
    if (erase && a->fd >= 0) fallocate(a->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, a->offset, a->pages * PAGE);
    munmap(a, a->own);
}

bool pager_holds(const void *p) {
    lock();
    const bool holds = area_of(p) != NULL;
    unlock();
    return holds;
}

const void *pager_peek(const void *p, i64 n, void *copy) {
    if (pager_limited() == 0 || n <= 0) return p;
    lock();
    const struct area *a = area_of(p);
    const i64 at = a ? (const char *)p - a->at : 0;
    bool in = !a || a->fd < 0;
    const int fd = in ? -1 : a->fd;
    const i64 offset = in ? 0 : a->offset + at;
    if (!in && a->in[at / PAGE] && a->in[(at + n - 1) / PAGE]) in = true;
    if (++pager.peeks % PEEKS == 0) { /* training may run on peeks alone while libraries take memory */
        look();
        make_room(0);
    }
    unlock();
    return !in && pread(fd, copy, (size_t)n, offset) == (ssize_t)n ? copy : p;
}

void pager_restart(void) {
    lock();
    while (pager.head < pager.tail) drop_oldest();
    if (pager.narea > 0) take_signal();
    unlock();
}

void pager_trim(void) {
    lock();
    if (pager.resident > 0) {
        look();
        make_room(0);
    }
    unlock();
}

struct pager_stats pager_stats(void) {
    lock();
    const struct pager_stats s = {pager.narea, pager.pages * PAGE, pager.resident * PAGE, pager.faults};
    unlock();
    return s;
}
