/* flight.c - the ring buffer of the flight recorder and the text file made from it. */
#include "comm/flight.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/stacks.h"

_Static_assert(sizeof(struct flight_entry) == FLIGHT_WORDS * sizeof(u64), "an entry is its words");

void flight_add(struct flight *f, const struct flight_entry *e) {
    u64 word[FLIGHT_WORDS];
    if (!f) return;
    struct flight_entry now = *e;
    if (now.time == 0) now.time = clock_now();
    memcpy(word, &now, sizeof word);
    const u64 at = atomic_fetch_add_explicit(&f->next, 1, memory_order_relaxed);
    _Atomic u64 *serial = &f->ring[at % FLIGHT_RING].serial, *to = f->ring[at % FLIGHT_RING].word;
    /* another thread is writing this slot: drop the entry */
    if (atomic_exchange_explicit(serial, FLIGHT_BUSY, memory_order_acq_rel) == FLIGHT_BUSY) return;
    for (i32 k = 0; k < FLIGHT_WORDS; k++) atomic_store_explicit(&to[k], word[k], memory_order_release);
    atomic_store_explicit(serial, at + 1, memory_order_release);
}

static bool get(const struct flight *f, u64 at, struct flight_entry *out) {
    u64 word[FLIGHT_WORDS];
    const _Atomic u64 *serial = &f->ring[at % FLIGHT_RING].serial, *from = f->ring[at % FLIGHT_RING].word;
    if (atomic_load_explicit(serial, memory_order_acquire) != at + 1) return false;
    for (i32 k = 0; k < FLIGHT_WORDS; k++) word[k] = atomic_load_explicit(&from[k], memory_order_acquire);
    memcpy(out, word, sizeof word);
    return atomic_load_explicit(serial, memory_order_acquire) == at + 1;
}

/* ------------------------------------------------------------------ the page ------------------------------------------------ */

struct page {
    int fd;
    bool failed;
    i32 n;
    char text[4096];
};

static void flush(struct page *p) {
    p->failed = p->failed || write(p->fd, p->text, (size_t)p->n) != p->n;
    p->n = 0;
}

PRINTF_LIKE(2, 3) static void put(struct page *p, const char *fmt, ...) {
    va_list list;
    if (p->n > (i32)sizeof p->text / 2) flush(p);
    va_start(list, fmt);
    const i32 room = (i32)sizeof p->text - p->n, n = vsnprintf(p->text + p->n, (size_t)room, fmt, list);
    va_end(list);
    p->n += imin(imax(n, 0), room - 1);
}

static void put_message(struct page *p, const struct flight_entry *e) {
    const bool out = e->what == FLIGHT_SEND || e->what == FLIGHT_SENT;
    put(p, "%8llu  %6u  %-16.*s %10u  %s %d%s\n", (unsigned long long)e->serial, e->number, COMM_NAME, e->name, e->bytes,
        out ? "to" : "from", e->peer, e->channel == CHANNEL_ROUND ? ", in a task" : "");
}

static void put_entry(struct page *p, const struct flight_entry *e, f64 now) {
    static const char *const word[] = {"send", "await", "sent", "came", "step", "ended", "phase"};
    put(p, "%12.6f  %-5s  ", now - e->time, e->what < COUNT(word) ? word[e->what] : "?");
    if (e->what == FLIGHT_PHASE) put(p, "%.*s\n", COMM_NAME, e->name);
    else if (e->what >= FLIGHT_STEP) put(p, "%8llu  step %u\n", (unsigned long long)e->serial, e->number);
    else put_message(p, e);
}

static bool ends(const struct flight_entry *e, const struct flight_entry *last) {
    return last->what == e->what + (FLIGHT_SENT - FLIGHT_SEND) && last->serial == e->serial && last->number == e->number &&
           last->peer == e->peer && last->channel == e->channel && strncmp(last->name, e->name, COMM_NAME) == 0;
}

/* True if the message that starts at entry `at` has no matching end entry. */
static bool is_open(const struct flight *f, u64 at, u64 end, const struct flight_entry *e) {
    struct flight_entry last;
    if (e->what > FLIGHT_AWAIT) return false;
    for (u64 k = at + 1; k < end; k++)
        if (get(f, k, &last) && ends(e, &last)) return false;
    return true;
}

static void put_entries(struct page *p, const struct flight *f, f64 now) {
    static const char columns[] = "       age s  what   exchange  number  name                  bytes  rank\n";
    const u64 end = atomic_load(&f->next), begin = end > FLIGHT_RING ? end - FLIGHT_RING : 0;
    struct flight_entry e;
    put(p, "\nBegun and not done, oldest first:\n%s", columns);
    for (u64 k = begin; k < end; k++)
        if (get(f, k, &e) && is_open(f, k, end, &e)) put_entry(p, &e, now);
    put(p, "\nThe last %llu of %llu entries, newest last:\n%s", (unsigned long long)(end - begin), (unsigned long long)end,
        columns);
    for (u64 k = begin; k < end; k++)
        if (get(f, k, &e)) put_entry(p, &e, now);
}

static void put_title(struct page *p, const struct flight_title *t) {
    char date[32];
    clock_date(date);
    put(p, "Flight record of rank %d of %d (host %s, pid %d), %s UTC\n", t->who->rank, t->world, t->who->host, t->who->pid, date);
    put(p, "why: %.1200s\n", t->why);
    if (t->self[0]) put(p, "this rank: %s\n", t->self);
    if (t->scene[0]) put(p, "%s", t->scene);
}

static bool write_page(int fd, const struct flight *f, const struct flight_title *t) {
    struct page p = {.fd = fd};
    put_title(&p, t);
    if (t->stacks) { /* first, because threads move on */
        put(&p, "\nThreads of this process:\n");
        flush(&p);
        stacks_write(fd);
    }
    put_entries(&p, f, clock_now());
    flush(&p);
    return !p.failed;
}

void flight_write(const struct flight *f, const struct flight_title *t, char path[FLIGHT_PATH]) {
    char tmp[FLIGHT_PATH + 8];
    const struct err_record before = *err_last();
    snprintf(tmp, sizeof tmp, "%.4096s/flight", t->folder);
    bool good = mkdir(tmp, 0755) == 0 || errno == EEXIST;
    snprintf(path, FLIGHT_PATH, "%.4096s/flight/rank-%d.txt", t->folder, t->who->rank);
    snprintf(tmp, sizeof tmp, "%s.tmp", path);
    const int fd = good ? open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644) : -1;
    good = fd >= 0 && write_page(fd, f, t);
    good = fd >= 0 && close(fd) == 0 && good && rename(tmp, path) == 0;
    if (!good) {
        unlink(tmp);
        path[0] = 0;
    }
    err_put(&before);
}

void comm_delete_records(const char *folder) {
    char path[FLIGHT_PATH];
    for (i32 k = 0, missing = 0; k < COMM_RANKS && missing < 16; k++) { /* stop after 16 missing files: not every rank writes
                                                                         * one */
        snprintf(path, sizeof path, "%.4096s/flight/rank-%d.txt", folder, k);
        missing = unlink(path) == 0 ? 0 : missing + 1;
    }
}
