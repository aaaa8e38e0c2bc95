/* offload.c - see offload.h. */
#include "learn/offload.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "deal/run.h"
#include "gpu/gpu.h"

#define NEVER 1e9 /* seconds: a device that hangs ends by its own deadline (gpu_sync), a piece of the host ends */

struct device_state {
    struct gpu *gpu; /* NULL = the cores of this host */
    char name[16];   /* "opencl:0" */
    i32 lanes;
    bool lost, prepared;
    f64 cost;        /* of the pieces that it computed */
    struct deal_device known; /* what was learned of its speed */
};

struct offload {
    struct offload_kernel k;
    const struct events *events;
    struct device_state *at; /* [n] */
    i32 n, lanes;            /* lanes: of the device that has most */
    struct dealer *dealer;   /* of the last run; NULL = none */
    f64 left;                /* cost of what the cores computed when no device was left */
};

/* ------------------------------------------------------------------ opening ------------------------------------------------- */

static void warn(const struct offload *o, const struct device_state *d) {
    const struct err_record *why = err_last();
    i32 left = 0;
    bool cores = false;
    for (i32 i = 0; i < o->n; i++) {
        left += !o->at[i].lost;
        cores = cores || (!o->at[i].lost && !o->at[i].gpu);
    }
    event_note(o->events, EVENT_WARNING, "device %s failed: %.600s; its rows go to %s", why->where[0] ? why->where : d->name,
               why->text, left == 0 || (left == 1 && cores) ? "the cores of the host" : "the other devices");
    err_clear();
}

/* A device that refuses its memory is left out, as one that fails later; one that never worked is an error of the setup. */
static err open_device(struct offload *o, struct device_state *d, const struct machine *m) {
    const struct device *at = &m->device[0];
    const struct gpu_driver *driver = gpu_driver_find(at->kind);
    d->lanes = driver ? m->ndevice : 1;
    d->known = (struct deal_device){.weight = at->share, .lanes_most = d->lanes, .lanes = d->lanes, .lanes_fixed = true,
                                    .overhead_s = driver ? 1e-3 : 0};
    snprintf(d->name, sizeof d->name, driver ? "%s:%d" : "%s", at->kind, at->card);
    if (!driver) return 0;
    const err e = gpu_open(driver, at->card, d->lanes, o->k.bytes, &d->gpu);
    if (e != -E601) return e;
    d->lost = true;
    warn(o, d);
    return 0;
}

static err open_all(struct offload *o, const struct resources *use) {
    NEW(o->at, use->nforward);
    o->n = use->nforward;
    for (i32 i = 0; i < o->n; i++) TRY(open_device(o, &o->at[i], use->forward[i]));
    return 0;
}

err offload_open(const struct offload_kernel *k, const struct resources *use, struct offload **out) {
    struct offload *o;
    *out = NULL;
    if (comm_size(use->comm) > 1)
        return FAIL_AT(E106, "--device", "--device without --ranks   or   --ranks without --device",
                       "the devices of one process share the rows; %d ranks do not", comm_size(use->comm));
    NEW(o, 1);
    o->k = *k;
    o->events = use->events;
    o->lanes = offload_lanes(use);
    const err e = open_all(o, use);
    if (e < 0) offload_close(o);
    else *out = o;
    return e;
}

void offload_close(struct offload *o) {
    if (!o) return;
    for (i32 i = 0; o->at && i < o->n; i++) gpu_close(o->at[i].gpu);
    deal_free(o->dealer);
    mem_free(o->at);
    mem_free(o);
}

i32 offload_devices(const struct offload *o) { return o->n + 1; }

i32 offload_slots(const struct offload *o) { return offload_devices(o) * o->lanes; }

i32 offload_lanes(const struct resources *use) {
    i32 most = 1;
    for (i32 i = 0; i < use->nforward; i++) most = imax(most, use->forward[i]->ndevice);
    return most;
}

/* ------------------------------------------------------------------ pieces -------------------------------------------------- */

static struct offload_lane lane_of(const struct offload *o, i32 device, i32 lane) {
    struct gpu *gpu = device < o->n ? o->at[device].gpu : NULL;
    return (struct offload_lane){device, lane, device * o->lanes + lane, gpu ? gpu_heap(gpu) : NULL};
}

/* A device that has its heap and refuses memory later would refuse a smaller piece, too. */
static err as_lost(err e) { return e == -E601 ? -E831 : e; }

static err piece(void *self, i32 device, i32 lane, const struct deal_piece *p) {
    struct offload *o = self;
    struct device_state *d = &o->at[device];
    const struct offload_lane at = lane_of(o, device, lane);
    if (!d->gpu) {
        o->k.on_host(o->k.self, &at, p);
        return 0;
    }
    const struct gpu_place was = gpu_enter(d->gpu, lane);
    o->k.on_device(o->k.self, &at, p);
    const err e = gpu_sync();
    gpu_enter(was.gpu, was.lane);
    return as_lost(e);
}

static err accept(void *self, i32 device, i32 lane, const struct deal_piece *p) {
    struct offload *o = self;
    const struct offload_lane at = lane_of(o, device, lane);
    o->at[device].cost += p->cost;
    o->k.accept(o->k.self, &at, p);
    return 0;
}

/* ------------------------------------------------------------------ a run --------------------------------------------------- */

static bool none_left(const struct offload *o) {
    for (i32 i = 0; i < o->n; i++)
        if (!o->at[i].lost) return false;
    return true;
}

/* What all rows need, to every device that is left. */
static void begin(struct offload *o) {
    for (i32 i = 0; i < o->n; i++) {
        struct device_state *d = &o->at[i];
        if (d->lost || !d->gpu || !(o->k.begin || (o->k.prepare && !d->prepared))) continue;
        const struct offload_lane at = lane_of(o, i, 0);
        const struct gpu_place was = gpu_enter(d->gpu, 0);
        if (o->k.prepare && !d->prepared) o->k.prepare(o->k.self, &at);
        if (o->k.begin) o->k.begin(o->k.self, &at);
        d->prepared = true;
        const err e = gpu_sync();
        gpu_enter(was.gpu, was.lane);
        d->lost = e < 0;
        if (d->lost) warn(o, d);
    }
}

static err new_dealer(struct offload *o, const struct deal_part *part, i32 n) {
    const struct deal_work work = {.nparts = n, .part = part, .grain = o->k.grain};
    struct deal_device *device;
    deal_free(o->dealer);
    o->dealer = NULL;
    NEW(device, o->n);
    for (i32 i = 0; i < o->n; i++) device[i] = o->at[i].known;
    const err e = deal_new(device, o->n, &work, "auto", &o->dealer);
    mem_free(device);
    return e;
}

/* After a run: which devices are lost, and why; the speeds. */
static void look(struct offload *o) {
    for (i32 i = 0; i < o->n; i++) {
        struct device_state *d = &o->at[i];
        struct deal_report r;
        deal_report(o->dealer, i, &r);
        d->known = r.as;
        const bool now = !d->lost && d->gpu && gpu_failed(d->gpu) < 0;
        d->lost = d->lost || now;
        if (now) warn(o, d);
    }
}

/* Rows on the cores, which no device of the list has computed. */
static void take_rows(struct offload *o, const struct deal_part *part, i32 k, i64 lo, i64 hi) {
    const struct offload_lane cores = lane_of(o, o->n, 0);
    const struct deal_piece p = {.part = k, .lo = lo, .hi = hi, .cost = part[k].cost * (f64)(hi - lo)};
    if (hi <= lo) return;
    o->k.on_host(o->k.self, &cores, &p);
    o->k.accept(o->k.self, &cores, &p);
    o->left += p.cost;
}

/* The rows that are in none of the pieces that count, in order of partition and row. */
static void take_rest(struct offload *o, const struct deal_part *part, i32 n, const struct deal_piece *done, i64 ndone) {
    for (i32 k = 0; k < n; k++) {
        i64 at = 0;
        for (; ndone > 0 && done->part == k; done++, ndone--) {
            take_rows(o, part, k, at, done->lo);
            at = done->hi;
        }
        take_rows(o, part, k, at, part[k].rows);
    }
}

static err deal(struct offload *o, const struct deal_part *part, i32 n, bool again) {
    const struct deal_job job = {.self = o, .piece = piece, .accept = accept, .patience_s = NEVER, .first_s = NEVER};
    struct deal_ran ran;
    i64 ndone;
    TRY(again && o->dealer ? deal_again(o->dealer, NULL) : new_dealer(o, part, n));
    for (i32 i = 0; i < o->n; i++)
        if (o->at[i].lost) deal_lost(o->dealer, i);
    const err e = deal_run(o->dealer, &job, &ran);
    const struct err_record why = *err_last();
    look(o);
    if (e == -E831 && none_left(o)) {
        const struct deal_piece *done = deal_results(o->dealer, &ndone);
        take_rest(o, part, n, done, ndone);
        err_clear();
        return 0;
    }
    if (e < 0) err_put(&why);
    return e;
}

err offload_run(struct offload *o, const struct deal_part *part, i32 n, bool again) {
    begin(o);
    if (!none_left(o)) return deal(o, part, n, again);
    take_rest(o, part, n, NULL, 0);
    return 0;
}

void offload_shares(const struct offload *o, char *out, size_t size) {
    size_t at = 0;
    f64 all = o->left;
    for (i32 i = 0; i < o->n; i++) all += o->at[i].cost;
    out[0] = 0;
    for (i32 i = 0; i < o->n && at < size; i++)
        at += (size_t)snprintf(out + at, size - at, "%s%s %.0f %%", i ? ", " : "", o->at[i].name,
                               100 * o->at[i].cost / dmax(1, all));
    if (o->left > 0 && at < size) snprintf(out + at, size - at, ", the cores %.0f %%", 100 * o->left / dmax(1, all));
}
