/* lost.c - see lost.h. */
#include "api/lost.h"

#include <stdio.h>
#include <string.h>

#include "api/ranks.h"
#include "base/clock.h"
#include "gpu/gpu.h"

enum { NAMES = 200 };

/* Bit k: device k of the run is lost. */
static u64 lost_of(const struct device_wishes *d) {
    u64 lost = 0;
    for (i32 i = 0; i < d->n; i++) {
        const struct gpu_driver *driver = gpu_driver_find(d->at[i].kind);
        if (driver && gpu_is_lost(driver, d->at[i].card)) lost |= (u64)1 << i;
    }
    return lost;
}

static i32 ranks_left(const struct device_wishes *d, u64 lost) {
    i32 n = 0;
    for (i32 i = 0; i < d->n; i++) n += (lost >> i & 1) == 0;
    return imax(1, n);
}

/* "opencl:1, cpu" of the devices in `which`. */
static void names_of(const struct device_wishes *d, u64 which, char out[NAMES]) {
    size_t at = 0;
    out[0] = 0;
    for (i32 i = 0; i < d->n && at < NAMES - 1; i++) {
        const bool is_cpu = strcmp(d->at[i].kind, "cpu") == 0;
        if (!(which >> i & 1)) continue;
        at += (size_t)snprintf(out + at, NAMES - at, "%s%s", at ? ", " : "", is_cpu ? "cpu" : d->at[i].kind);
        if (!is_cpu && at < NAMES) at += (size_t)snprintf(out + at, NAMES - at, ":%d", d->at[i].card);
    }
}

/* One warning: which device, at which step, why, and what goes on. */
static void tell(const struct stretto_trainer *t, u64 lost, const struct err_record *why, const char *then) {
    const struct device_wishes *d = &t->ctx.devices;
    const u64 all = d->n == DEVICE_WISHES ? ~(u64)0 : ((u64)1 << d->n) - 1;
    const bool none = (all & ~lost) == 0, plain = why->code != E831 && why->code != E601;
    char gone[NAMES], left[NAMES];
    names_of(d, lost, gone);
    names_of(d, all & ~lost, left);
    event_note(&t->events, EVENT_WARNING, "device %s failed at step %lld: %s%.600s; the run goes on, on %s, %s",
               plain || !why->where[0] ? gone : why->where, (long long)t->history.step, plain ? "E801, " : "", why->text,
               none ? "the cores of the host" : left, then);
}

/* The options of the job that follow from the context. */
static void take_over(struct stretto_trainer *t) {
    struct resources *use = &t->job.use;
    use->machine = t->ctx.use.machine;
    use->pool = t->ctx.use.pool;
    use->forward = t->ctx.use.forward;
    use->nforward = t->ctx.use.nforward;
    use->plan_text = NULL; /* a saved plan is one for the devices that there were */
    use->plan_path = NULL;
    if (t->run_dir) run_dir_renumber(t, false);
}

bool lost_left(struct stretto_trainer *t, err e, const char *then) {
    const struct err_record why = *err_last();
    const u64 lost = lost_of(&t->ctx.devices);
    if (t->ctx.comm || lost == 0 || (e != -E831 && e != -E601 && e != -E801)) return false;
    bool able = store_spec_ranks(&t->ctx.use.store, ranks_left(&t->ctx.devices, lost), NULL) >= 0;
    if (able) tell(t, lost, &why, then);
    if (able) able = run_context_without(lost, &t->ctx) >= 0;
    if (able) take_over(t);
    err_put(&why);
    return able;
}

/* Where the strategy that was asked for needs more devices than are left: any other one gives the same weights. */
static err fit_again(struct stretto_trainer *t, struct model **out) {
    err e = ranks_fit(t, t->learner, &t->job, out);
    if (e != -E401 && e != -E402) return e;
    t->job.use.parallel = "auto";
    t->job.use.place = NULL; /* it needs a pipeline */
    return ranks_fit(t, t->learner, &t->job, out);
}

/* A request that the devices that are left cannot meet: the loss is the error then. */
static bool cannot(err e) { return e == -E401 || e == -E402 || e == -E103 || e == -E106; }

err lost_fit(struct stretto_trainer *t, struct model **out) {
    const f64 begin = clock_now();
    err e = ranks_fit(t, t->learner, &t->job, out);
    while (e < 0) {
        const struct err_record why = *err_last();
        const bool saved = run_dir_has_checkpoint(t);
        err_put(&why);
        if (!lost_left(t, e, saved ? "from the newest checkpoint" : "from the beginning")) return e;
        t->job.spent = clock_now() - begin;
        t->job.resume = t->resume = t->run_dir != NULL;
        if (!t->run_dir) t->history.n = 0;
        const err first = e;
        e = fit_again(t, out);
        if (!cannot(e)) continue;
        err_put(&why);
        return first;
    }
    return e;
}
