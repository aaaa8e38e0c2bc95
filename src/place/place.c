/* place.c - runs a method by name, fixes the order that the simulator saw, and says what would fit where a model does not. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "place/inside.h"

#define PLACE(name) extern const struct place_method place_##name;
#include "place/methods.def"
#undef PLACE

static const struct place_method *const METHODS[] = {
#define PLACE(name) &place_##name,
#include "place/methods.def"
#undef PLACE
};

const struct place_method *place_method_at(i32 index) {
    return index >= 0 && index < (i32)COUNT(METHODS) ? METHODS[index] : NULL;
}

const char *place_method_name(i32 index) {
    const struct place_method *m = place_method_at(index);
    return m ? m->name : NULL;
}

const char *place_method_help(i32 index) {
    const struct place_method *m = place_method_at(index);
    return m ? m->help : NULL;
}

static err parse(const char *text, const struct place_method **out, u64 *seed) {
    const size_t n = strcspn(text, ":");
    const char *names[COUNT(METHODS)];
    char fix[64];
    *seed = 0;
    *out = NULL;
    for (i32 i = 0; i < (i32)COUNT(METHODS); i++) {
        names[i] = METHODS[i]->name;
        if (strlen(names[i]) == n && memcmp(names[i], text, n) == 0) *out = METHODS[i];
    }
    if (!*out) {
        const i32 near = str_nearest(text, names, COUNT(METHODS));
        snprintf(fix, sizeof fix, "--place %s", near >= 0 ? names[near] : "best");
        return FAIL_AT(E103, "--place", fix, "there is no placement method \"%s\"", text);
    }
    if (!text[n]) return 0;
    i64 number;
    snprintf(fix, sizeof fix, "--place %s", (*out)->name);
    if (!(*out)->number) return FAIL_AT(E103, "--place", fix, "the placement method \"%s\" takes no number", (*out)->name);
    if (!str_to_i64(text + n + 1, strlen(text + n + 1), &number) || number < 0)
        return FAIL_AT(E103, "--place", "--place random:1", "\"%s\": the number behind the colon is a random seed, 0 or more",
                       text);
    *seed = (u64)number;
    return 0;
}

static f64 mib(i64 bytes) { return (f64)bytes / 1048576; }

/* What is true of every method: ranges of layers within so much memory fit. */
static err what_would_fit(struct problem *p, struct str *fix) {
    i32 *stage, *row, k = imin(p->P, p->U);
    f64 bytes;
    ARENA_NEW(&p->arena, stage, p->U);
    ARENA_NEW(&p->arena, row, k);
    for (i32 i = 0; i < k; i++) row[i] = p->by_speed[i];
    const struct stages s = {STAGES_MEMORY, k, row, 1, false};
    TRY(stages_cut(p, &s, stage, &bytes));
    str_addf(fix, "%d device%s of %.1f MiB", k, k > 1 ? "s" : "", mib((i64)ceil(bytes)));
    i64 largest = 0;
    for (i32 d = 0; d < p->P; d++) largest = lmax(largest, p->m->device[d].memory);
    const i32 more = stages_devices(p, largest);
    if (more > p->P) str_addf(fix, "\n%d devices of %.1f MiB", more, mib(largest));
    return 0;
}

static err does_not_fit(struct problem *p, const struct placement *r) {
    struct str fix = {0};
    const i32 d = r->over_device;
    const i64 limit = p->m->device[d].memory;
    const err e = what_would_fit(p, &fix);
    if (e < 0) {
        str_free(&fix);
        return e;
    }
    const err failed =
        FAIL_AT(E401, "--place", str_text(&fix), "%s: device %d (rank %d) needs %.1f MiB and has %.1f MiB, %.1f MiB too little",
                r->method, d, p->m->device[d].rank, mib(r->peak[d]), mib(limit), mib(r->over_bytes));
    str_free(&fix);
    return failed;
}

static void check_fit(const struct problem *p, struct placement *r) {
    r->fits = true;
    r->over_device = -1;
    r->over_bytes = 0;
    for (i32 d = 0; d < p->P; d++) {
        const i64 limit = p->m->device[d].memory;
        if (limit == 0 || r->peak[d] - limit <= r->over_bytes) continue;
        r->fits = false;
        r->over_device = d;
        r->over_bytes = r->peak[d] - limit;
    }
}

/* What the simulator's last run says. */
static err read_run(struct problem *p, struct placement *r) {
    struct place_bound bound;
    TRY(problem_bound(p, &bound));
    memcpy(r->start, sim_start(p), (size_t)p->n * sizeof *r->start);
    memcpy(r->end, sim_end(p), (size_t)p->n * sizeof *r->end);
    memcpy(r->peak, sim_peak(p), (size_t)p->P * sizeof *r->peak);
    memset(r->busy, 0, (size_t)p->P * sizeof *r->busy);
    for (i32 x = 0; x < p->n; x++) r->busy[r->device[x]] += r->end[x] - r->start[x];
    r->copies = sim_copies(p);
    r->makespan = sim_makespan(p);
    r->bound = bound.seconds;
    r->bound_name = bound.name;
    check_fit(p, r);
    return 0;
}

static err placement_arrays(struct placement *r, i32 n, i32 P) {
    r->nnode = n;
    r->ndevice = P;
    ARENA_NEW(&r->arena, r->device, n);
    ARENA_NEW(&r->arena, r->order, n);
    ARENA_NEW(&r->arena, r->first, P + 1);
    ARENA_NEW(&r->arena, r->start, n);
    ARENA_NEW(&r->arena, r->end, n);
    ARENA_NEW(&r->arena, r->busy, P);
    ARENA_NEW(&r->arena, r->peak, P);
    return 0;
}

/* The order of the nodes on each device, from the nodes in order of their start. */
static void fix_order(struct placement *r, const i32 *started) {
    for (i32 x = 0; x < r->nnode; x++) r->first[r->device[x] + 1]++;
    for (i32 d = 0; d < r->ndevice; d++) r->first[d + 1] += r->first[d];
    for (i32 i = 0; i < r->nnode; i++) r->order[r->first[r->device[started[i]]]++] = started[i];
    for (i32 d = r->ndevice; d > 0; d--) r->first[d] = r->first[d - 1];
    r->first[0] = 0;
}

static i32 *group_devices(struct problem *p, const struct placement *r) {
    i32 *device = arena_array(&p->arena, p->G, sizeof *device);
    for (i32 x = 0; device && x < p->n; x++) device[p->group[x]] = r->device[x];
    return device;
}

err placement_fill(struct problem *p, const i32 *device, const i32 *sequence, struct placement *r) {
    TRY(placement_arrays(r, p->n, p->P));
    for (i32 x = 0; x < p->n; x++) r->device[x] = device[p->group[x]];
    fix_order(r, sequence);
    if (!sim_order(p, device, r->order, r->first)) return FAIL(E1, "the order of a placement contradicts its edges");
    return read_run(p, r);
}

err placement_new(struct placement **out) { return mem_new((void **)out, 1, sizeof **out); }

static err run(struct problem *p, const char *text, struct placement *r) {
    const struct place_method *m;
    struct trial t;
    u64 seed;
    bool able = false;
    TRY(parse(text, &m, &seed));
    TRY(trial_new(p, &t));
    str_print(t.name, sizeof t.name, "%s", text);
    TRY(m->run(p, seed, &t, &able));
    if (!able)
        return FAIL_AT(E401, "--place", "--place best   or   --place hybrid",
                       "%s: %d tasks on %d devices are too many for this method", m->name, p->n, p->P);
    sim_trial(p, &t);
    TRY(placement_fill(p, t.device, sim_started(p), r));
    str_print(r->method, sizeof r->method, "%s", t.name);
    r->simulated = p->simulated;
    return r->fits || m->baseline ? 0 : does_not_fit(p, r);
}

err place_run(const char *method, const struct place_graph *g, const struct place_machine *m, const struct place_options *o,
              struct placement **out) {
    const f64 begin = clock_now();
    struct problem p;
    struct placement *r;
    *out = NULL;
    TRY(problem_new(g, m, o, &p));
    err e = placement_new(&r);
    if (e == 0) {
        e = run(&p, method, r);
        if (e < 0)
            placement_free(r);
        else
            *out = r;
    }
    problem_free(&p);
    if (*out) (*out)->seconds = clock_now() - begin;
    return e;
}

static err judge(struct problem *p, struct placement *r) {
    if (r->nnode != p->n || r->ndevice != p->P)
        return FAIL(E401, "a placement of %d tasks on %d devices does not belong to %d tasks on %d devices", r->nnode, r->ndevice,
                    p->n, p->P);
    const i32 *device = group_devices(p, r);
    if (!device) return -E601;
    for (i32 x = 0; x < p->n; x++)
        if (device[p->group[x]] != r->device[x]) return FAIL(E401, "tasks of group %d are on two devices", p->group[x]);
    if (!sim_order(p, device, r->order, r->first))
        return FAIL(E401, "the order of the placement contradicts the edges of the graph");
    return read_run(p, r);
}

err place_judge(const struct place_graph *g, const struct place_machine *m, const struct place_options *o, struct placement *r) {
    struct problem p;
    TRY(problem_new(g, m, o, &p));
    const err e = judge(&p, r);
    problem_free(&p);
    return e;
}

void placement_free(struct placement *p) {
    if (!p) return;
    arena_free(&p->arena);
    mem_free(p);
}
