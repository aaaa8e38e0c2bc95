/* bench_kern.c - times recurrent layers, forward + backward + dW, at five reference shapes.
 *
 *     bench_kern [--shape 1..5] [--threads N] [--seconds S] [--precision bf16] [--isa NAME] [--phases] [KEY=VALUE ...]
 *     bench_kern --serve [--threads N] [--cpu K] [--isa NAME]      runs commands from stdin: serve.c
 *     bench_kern --ladder | --count                                every kernel slot: ladder.c
 *
 * bench_step is the same program linked with model, planner and executor: layers as a model runs them (layer=1, proj=32) and
 * full training steps with optimizer (step=1).
 *
 * KEY=VALUE, also --KEY VALUE: cell=gru layers=2 dirs=2 ragged=1 stepped=1 team=1 step=1 layer=1 proj=32 dx=1 how=1 slice=512,
 * and T= B= I= H= for another shape. A calibration loop on every thread (calib.h) runs before and after each sample. A sample
 * counts as undisturbed if both rates exceed 90 % of this process's usual rate (its third quartile) and its threads waited for
 * a processor less than 2 % of the time. Output per shape: median of the undisturbed samples, first quartile, raw median and
 * (one thread) median processor time in ms, GF/s of useful work and its fraction of the rate measured at the same time. */
#define _GNU_SOURCE
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "calib.h"
#include "ladder.h"
#include "serve.h"

enum { SAMPLES_MAX = 4000, SHAPES = 5 };

static const i32 shapes[SHAPES][4] = {
    {100, 32, 8, 64}, {100, 64, 16, 128}, {168, 64, 32, 256}, {512, 1, 8, 128}, {50, 256, 64, 512}};

struct options {
    struct spec spec;
    i32 shape, cpu; /* shape: 0 = all, or the one of the spec; cpu: first processor to pin threads to, -1 = do not pin */
    f64 seconds;
    bool serve, ladder, count;
};

/* ------------------------------------------------------------------ measuring ----------------------------------------------- */

static struct calib calib;

static void burst(void *c, i32 id) {
    (void)id;
    calib_burst(c);
}

static f64 rate_now(struct pool *pool, f64 *tile) {
    pool_run(pool, burst, &calib);
    return calib_take(&calib, tile);
}

static f64 cpu(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (f64)t.tv_sec + 1e-9 * (f64)t.tv_nsec;
}

static int by_value(const void *a, const void *b) {
    return (*(const f64 *)a > *(const f64 *)b) - (*(const f64 *)a < *(const f64 *)b);
}

static f64 quarter(f64 *v, i32 n, i32 q) {
    qsort(v, (size_t)n, sizeof *v, by_value);
    return n ? v[imin(n - 1, n * q / 4)] : 0;
}

struct samples {
    f64 ms[SAMPLES_MAX], cpu[SAMPLES_MAX], wait[SAMPLES_MAX], rate[SAMPLES_MAX], tile[SAMPLES_MAX], quiet[SAMPLES_MAX],
        scratch[SAMPLES_MAX], phase[4][SAMPLES_MAX];
    i32 n, nquiet;
    f64 fma, tiles; /* mean rates of the undisturbed samples, all threads */
};

static void take(struct samples *s, struct rig *r, struct pool *pool, f64 seconds) {
    f64 tile0, tile1, before = rate_now(pool, &tile0);
    r->step(r);
    s->n = 0;
    for (const f64 start = clock_now(); s->n < SAMPLES_MAX && (s->n < 9 || clock_now() - start < seconds); s->n++) {
        const f64 waited = calib_waited(), c = cpu(), t = clock_now();
        r->step(r);
        s->ms[s->n] = (clock_now() - t) * 1e3;
        s->cpu[s->n] = (cpu() - c) * 1e3, s->wait[s->n] = (calib_waited() - waited) * 1e3;
        for (i32 p = 0; p < 4; p++) s->phase[p][s->n] = r->phase[p];
        const f64 after = rate_now(pool, &tile1);
        s->rate[s->n] = fmin(before, after), s->tile[s->n] = fmin(tile0, tile1);
        before = after, tile0 = tile1;
    }
}

static void sift(struct samples *s, i32 threads) {
    memcpy(s->scratch, s->rate, (size_t)s->n * sizeof(f64));
    const f64 usual = quarter(s->scratch, s->n, 3);
    memcpy(s->scratch, s->tile, (size_t)s->n * sizeof(f64));
    const f64 tiles = quarter(s->scratch, s->n, 3);
    s->nquiet = 0, s->fma = s->tiles = 0;
    for (i32 i = 0; i < s->n; i++) {
        if (s->rate[i] < 0.9 * usual || s->tile[i] < 0.9 * tiles || s->wait[i] > 0.02 * s->ms[i]) continue;
        s->quiet[s->nquiet++] = s->ms[i], s->fma += s->rate[i] * threads, s->tiles += s->tile[i] * threads;
    }
    s->fma = s->nquiet ? s->fma / s->nquiet : usual * threads, s->tiles = s->nquiet ? s->tiles / s->nquiet : tiles * threads;
}

static void print_row(struct samples *s, const struct rig *r, i32 number) {
    const struct spec *p = &r->spec;
    const f64 ms = quarter(s->nquiet ? s->quiet : s->ms, s->nquiet ? s->nquiet : s->n, 2), rate = r->flop / ms * 1e-6;
    printf("S%d T%d B%d I%d H%d threads %d: %s %.3f ms  p25 %.3f  raw %.3f", number, p->T, p->B, p->I, p->H, p->threads,
           s->nquiet ? "quiet" : "NOT QUIET", ms, quarter(s->quiet, s->nquiet, 1), quarter(s->ms, s->n, 2));
    if (p->threads == 1) printf("  cpu %.3f", quarter(s->cpu, s->n, 2));
    printf("  (%d of %d)  %.0f GF/s = %.0f %% of %.0f", s->nquiet, s->n, rate, 100 * rate / s->fma, s->fma);
    if (s->tiles > 0) printf(", %.0f %% of %.0f from L1", 100 * rate / s->tiles, s->tiles);
    static const char *const name[] = {"prep", "fwd", "bwd", "dw"};
    for (i32 i = 0; i < 4 && p->phases; i++) printf("  %s %.3f", name[i], quarter(s->phase[i], s->n, 1) * 1e3);
    printf("\n");
    fflush(stdout);
}

static err measure(const struct options *o, struct pool *pool, i32 number) {
    static struct samples s;
    struct spec spec = o->spec;
    struct rig *r;
    if (number)
        spec.T = shapes[number - 1][0], spec.B = shapes[number - 1][1], spec.I = shapes[number - 1][2],
        spec.H = shapes[number - 1][3];
    TRY(rig_new(&spec, pool, &r));
    err e = 0;
    if (*r->why) {
        printf("S%d: %s\n", number, r->why);
    } else if ((e = r->load(r, NULL)) >= 0) {
        take(&s, r, pool, o->seconds);
        sift(&s, spec.threads);
        print_row(&s, r, number);
    }
    rig_free(r);
    return e;
}

/* ------------------------------------------------------------------ options ------------------------------------------------- */

/* Each pool thread pins itself: pool threads do not inherit the affinity. */
static void pin(void *cpu, i32 id) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)(*(const i32 *)cpu + id), &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0)
        fprintf(stderr, "bench_kern: no processor %d to pin to\n", *(const i32 *)cpu + id);
}

/* Parses one option; returns the number of arguments used, 0 = unknown. */
static int option(struct options *o, const char *name, const char *value) {
    char pair[96];
    const bool dashes = !strncmp(name, "--", 2);
    const char *key = dashes ? name + 2 : name;
    if (dashes && !strcmp(key, "serve")) return o->serve = true, 1;
    if (dashes && !strcmp(key, "ladder")) return o->ladder = true, 1;
    if (dashes && !strcmp(key, "count")) return o->count = true, 1;
    if (dashes && !strcmp(key, "phases")) return o->spec.phases = true, 1;
    if (dashes && !strcmp(key, "dx")) return o->spec.dx = true, 1;
    if (!dashes) return spec_parse(name, &o->spec) ? 0 : 1;
    if (!strcmp(key, "threads")) return o->spec.threads = imax(1, imin(RIG_THREADS, (i32)strtol(value, NULL, 10))), 2;
    if (!strcmp(key, "shape")) return o->shape = (i32)strtol(value, NULL, 10), o->shape >= 1 && o->shape <= SHAPES ? 2 : 0;
    if (!strcmp(key, "cpu")) return o->cpu = (i32)strtol(value, NULL, 10), 2;
    if (!strcmp(key, "seconds")) return o->seconds = (f64)strtof(value, NULL), 2;
    snprintf(pair, sizeof pair, "%s=%s", !strcmp(key, "precision") ? "prec" : key, value);
    return spec_parse(pair, &o->spec) ? 0 : 2;
}

static err run(struct options *o) {
    struct pool *pool;
    TRY(pool_new(o->spec.threads, &pool));
    if (o->cpu >= 0) pool_run(pool, pin, &o->cpu);
    err e = calib_init(o->spec.kern);
    calib.tiles = o->spec.prec == PREC_BF16;
    if (o->serve) {
        e = serve(pool, &o->spec);
    } else if (o->spec.T) {
        e = measure(o, pool, 0);
    } else {
        for (i32 n = 1; n <= SHAPES && e >= 0; n++)
            if (!o->shape || o->shape == n) e = measure(o, pool, n);
    }
    pool_free(pool);
    return e;
}

int main(int argc, char **argv) {
    struct options o = {.spec = {.kern = kern_best(), .layers = 1, .dirs = 1, .threads = 1}, .cpu = -1, .seconds = 2};
    for (int a = 1, took; a < argc; a += took)
        if (!(took = option(&o, argv[a], a + 1 < argc ? argv[a + 1] : ""))) {
            fprintf(stderr,
                    "bench_kern: \"%s\" is not understood, or this machine lacks it; see the head of bench/kern/bench_kern.c\n",
                    argv[a]);
            return 2;
        }
    err e = kern_init();
    if (e >= 0) e = o.ladder ? ladder_time() : o.count ? ladder_count() : run(&o);
    if (e < 0) fprintf(stderr, "bench_kern: E%d %s: %s\n", (int)err_last()->code, err_last()->where, err_last()->text);
    return e < 0;
}
