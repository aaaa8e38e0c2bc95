/* sim.c - an imaginary device: the kernels run on the calling thread, in the order of a virtual clock.
 *
 *     queue 0   | fwd 0..3 |  bwd 3..7  |          clock of a queue: when its last item ended
 *     queue 1   | fwd 0..3 | . | merge 7..8 |      '.': waits for queue 0, then for the bytes that a transfer brings
 *
 * The item that can start first runs next.  It takes the overhead of a task, the transfer of what other devices wrote, and the
 * longer of its predicted seconds and of the time in which the memory delivers the bytes that it uses.  All rates are those of
 * the machine text: sim*4 gflops=.. gbytes=.. memory=.. overhead_us=.. link_gbytes=.. link_us=.. */
#include "dev/dev.h"

static i32 workers(const struct pool *pool, i32 devices) {
    (void)pool;
    return devices;
}

static err fits(const struct device *d, const char *name, i64 bytes) {
    if (d->memory <= 0 || bytes <= d->memory) return 0;
    return FAIL_AT(E601, "--machine", "more devices, or a smaller --batch",
                   "device %s would hold %.1f MiB, its memory is %.1f MiB", name, (f64)bytes / 0x1p20, (f64)d->memory / 0x1p20);
}

static f64 *ends(const struct dev_work *w, u32 queue) { return w->finish + (size_t)queue * (w->longest + 1); }

/* When the item can start, if what it waits for has run. */
static bool can_start(const struct dev_work *w, const u32 *done, f64 clock, const struct dev_item *it, f64 *at) {
    *at = clock;
    for (u32 k = 0; k < it->nwait; k++) {
        if (done[it->wait[k].queue] < it->wait[k].count) return false;
        *at = dmax(*at, ends(w, it->wait[k].queue)[it->wait[k].count]);
    }
    return true;
}

static f64 seconds(const struct dev_work *w, const struct dev_item *it) {
    const struct device *d = it->device;
    const f64 memory = d->gbytes > 0 ? it->bytes / (d->gbytes * 1e9) : 0;
    const f64 wire = it->across ? it->moved / w->link_bytes + w->link_seconds : d->gbytes > 0 ? it->moved / (d->gbytes * 1e9) : 0;
    return d->overhead_us * 1e-6 + (it->moved > 0 ? wire : 0) + dmax(it->seconds, memory);
}

/* The queue whose next item can start first, and the item after it; -1 = all are done. */
static i32 earliest(const struct dev_work *w, const u32 *done, struct dev_item *item, u32 *next, f64 *at) {
    i32 best = -1;
    for (u32 q = 0; q < w->nqueue; q++) {
        struct dev_item it;
        f64 when;
        const u32 after = w->item(w->arg, q, done[q], &it);
        if (after == 0 || !can_start(w, done, ends(w, q)[done[q]], &it, &when)) continue;
        if (best >= 0 && when >= *at) continue;
        best = (i32)q;
        *item = it;
        *next = after;
        *at = when;
    }
    return best;
}

static f64 run(const struct dev_work *w) {
    u32 done[MACHINE_DEVICES] = {0};
    struct dev_item it;
    f64 at = 0, last = 0;
    u32 next = 0;
    for (u32 q = 0; q < w->nqueue; q++) ends(w, q)[0] = 0;
    for (i32 q; (q = earliest(w, done, &it, &next, &at)) >= 0;) {
        const u32 first = done[q];
        const f64 end = at + seconds(w, &it);
        w->run_item(w->arg, (u32)q, first, at, end);
        for (u32 i = first + 1; i <= next; i++) ends(w, (u32)q)[i] = end;
        done[q] = next;
        last = dmax(last, end);
    }
    return last;
}

extern const struct dev_type dev_sim;
const struct dev_type dev_sim = {
    .name = "sim",
    .help = "an imaginary device on a virtual clock, with the rates of the machine text",
    .is_virtual = true,
    .workers = workers,
    .fits = fits,
    .run = run,
};
