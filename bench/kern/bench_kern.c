/* bench_kern.c - the time of one recurrent layer, forward + backward + dW (and the packing of the transposed weights), at the
 * five shapes of kernels.md.
 *
 *     bench_kern [--cell lstm|gru|rnn] [--threads N] [--shape 1..5] [--seconds S] [--dx] [--isa NAME] [--phases]
 *
 * Threads split the batch; each has its own dW, merged at the end (a batch of one row stays on one thread).  A sample is
 * bracketed by a register-only FMA loop on every thread; it counts as quiet when both stay above 90 % of this process's usual
 * rate (its third quarter).  Prints one line a shape:  quiet median, first quarter and raw median in ms, GF/s of true work and
 * its share of the FMA rate. */
#define _GNU_SOURCE
#include "base/mem.h"
#include "kern/kern.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { THREADS_MAX = 64, SAMPLES_MAX = 4000, SLICE_ROWS = 256, FMA_ROUNDS = 6000 };

static const i32 shapes[5][4] = {{100, 32, 8, 64}, {100, 64, 16, 128}, {168, 64, 32, 256}, {512, 1, 8, 128}, {50, 256, 64, 512}};

struct job {
    const struct kern *kern;
    const struct cell_kern *cell;
    struct cell_box box;
    f32 *dw[THREADS_MAX], *dbias[THREADS_MAX];
    i64 dw_n, db_n;
    i32 threads;
    f64 phase[4]; /* processor time of thread 0: prep, forward, backward, dW */
};

static f64 cpu(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (f64)t.tv_sec + 1e-9 * (f64)t.tv_nsec;
}

static f64 now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (f64)t.tv_sec + 1e-9 * (f64)t.tv_nsec;
}

/* ------------------------------------------------------------------ threads that spin ----------------------------------------
 */

static struct {
    i32 n;
    void (*run)(i32 id, void *arg);
    void *arg;
    _Atomic i32 round, done;
    _Atomic i32 gate[2];
} crew;

static void *crew_main(void *id) {
    for (i32 seen = 0;;) {
        for (i32 spin = 0; atomic_load_explicit(&crew.round, memory_order_acquire) == seen;)
            if (++spin > 200000) sched_yield();
        seen++;
        crew.run((i32)(intptr_t)id, crew.arg);
        atomic_fetch_add(&crew.done, 1);
    }
    return NULL;
}

static void crew_run(void (*run)(i32, void *), void *arg) {
    crew.run = run, crew.arg = arg;
    atomic_store(&crew.done, 0);
    atomic_fetch_add(&crew.round, 1);
    run(0, arg);
    while (atomic_load(&crew.done) < crew.n - 1) {
    }
}

static void crew_start(i32 n) {
    crew.n = n;
    for (i32 id = 1; id < n; id++) {
        pthread_t t;
        if (pthread_create(&t, NULL, crew_main, (void *)(intptr_t)id) != 0) exit(1);
    }
}

static f64 rate_[THREADS_MAX];
static void calibrate(i32 id, void *arg) { rate_[id] = ((const struct kern *)arg)->fma_rate(FMA_ROUNDS); }

static f64 fma_now(const struct kern *k) {
    crew_run(calibrate, (void *)(uintptr_t)k);
    f64 least = rate_[0];
    for (i32 id = 1; id < crew.n; id++) least = fmin(least, rate_[id]);
    return least;
}

/* ------------------------------------------------------------------ one step -------------------------------------------------
 */

static void rows_of(const struct job *j, i32 id, i32 *b0, i32 *b1) {
    *b0 = (i32)((i64)j->box.B * id / j->threads);
    *b1 = (i32)((i64)j->box.B * (id + 1) / j->threads);
}

static void prep(i32 id, void *arg) {
    struct job *j = arg;
    if (id == 0) j->cell->prep(j->box.I, j->box.H, j->box.w, (f32 *)(uintptr_t)j->box.wt);
}

/* Backward and dW in slices of time, so that dW finds dz warm. */
static void work(i32 id, void *arg) {
    struct job *j = arg;
    if (id >= j->threads) return;
    i32 b0, b1;
    rows_of(j, id, &b0, &b1);
    f64 t = cpu(), *phase = j->phase;
    j->cell->fwd(&j->box, b0, b1, 0, j->box.T);
    f64 spent[3] = {cpu() - t, 0, 0};
    memset(j->dw[id], 0, (size_t)j->dw_n * sizeof(f32));
    memset(j->dbias[id], 0, (size_t)j->db_n * sizeof(f32));
    const i32 slice = imax(1, SLICE_ROWS / (b1 - b0));
    for (i32 end = j->box.T; end > 0; end -= slice) {
        const i32 begin = imax(0, end - slice);
        t = cpu();
        j->cell->bwd(&j->box, b0, b1, begin, end);
        const f64 mid = cpu();
        j->cell->dw(&j->box, b0, b1, begin, end, j->dw[id], j->dbias[id]);
        spent[1] += mid - t, spent[2] += cpu() - mid;
    }
    for (i32 p = 0; p < 3 && id == 0; p++) phase[p + 1] = spent[p];
}

static void merge(i32 id, void *arg) {
    struct job *j = arg;
    const i64 a = j->dw_n * id / crew.n / 16 * 16, b = id == crew.n - 1 ? j->dw_n : j->dw_n * (id + 1) / crew.n / 16 * 16;
    for (i32 k = 1; k < j->threads; k++) j->kern->add(b - a, j->dw[0] + a, j->dw[k] + a);
    for (i32 k = 1; k < j->threads && id == 0; k++) j->kern->add(j->db_n, j->dbias[0], j->dbias[k]);
}

static f64 step(struct job *j) {
    const f64 t = now(), c = cpu();
    crew_run(prep, j);
    j->phase[0] = cpu() - c;
    crew_run(work, j);
    if (j->threads > 1) crew_run(merge, j);
    return now() - t;
}

/* ------------------------------------------------------------------ measuring ------------------------------------------------
 */

static f32 *drawn(i64 n, f32 scale) {
    static u32 seed = 1;
    f32 *p = mem_alloc((size_t)n * sizeof *p);
    if (!p) exit(1);
    for (i64 i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        p[i] = scale * ((f32)(seed >> 8) / 16777216.0f - 0.5f);
    }
    return p;
}

static int by_value(const void *a, const void *b) {
    return (*(const f64 *)a > *(const f64 *)b) - (*(const f64 *)a < *(const f64 *)b);
}

static void measure(const struct kern *k, enum cell_kind kind, i32 threads, i32 which, f64 seconds, bool dx, bool phases) {
    const i32 T = shapes[which][0], B = shapes[which][1], I = shapes[which][2], H = shapes[which][3], Hp = round_up(H, LANES);
    const i64 TB = (i64)T * B;
    struct job j = {.kern = k,
                    .cell = &k->cell[kind],
                    .threads = imin(threads, B),
                    .dw_n = cell_w_floats(kind, I, H),
                    .db_n = cell_bias_floats(kind, H)};
    const f32 scale = 2 / sqrtf((f32)H);
    f32 *own[] = {drawn(TB * I, 2),     drawn(TB * Hp, 0),         drawn(j.cell->act_floats(T, B, I, H), 0),
                  drawn(j.dw_n, scale), drawn(j.db_n, scale),      drawn(j.cell->wt_floats(I, H), 0),
                  drawn(TB * Hp, 2),    drawn(dx ? TB * I : 0, 0), drawn(2 * (i64)B * Hp, 0)};
    j.box = (struct cell_box){.T = T,
                              .B = B,
                              .I = I,
                              .H = H,
                              .x = own[0],
                              .x_ld = I,
                              .y = own[1],
                              .act = own[2],
                              .w = own[3],
                              .bias = own[4],
                              .wt = own[5],
                              .dy = own[6],
                              .dx = dx ? own[7] : NULL,
                              .dx_ld = I,
                              .carry = own[8]};
    for (i32 id = 0; id < j.threads; id++) j.dw[id] = drawn(j.dw_n, 0), j.dbias[id] = drawn(j.db_n, 0);

    static f64 all[SAMPLES_MAX], rate[SAMPLES_MAX], quiet[SAMPLES_MAX], phase[4][SAMPLES_MAX];
    i32 n = 0, nq = 0;
    f64 before = fma_now(k);
    step(&j);
    for (const f64 start = now(); n < SAMPLES_MAX && (n < 9 || now() - start < seconds); n++) {
        all[n] = step(&j);
        for (i32 p = 0; p < 4; p++) phase[p][n] = j.phase[p];
        const f64 after = fma_now(k);
        rate[n] = fmin(before, after);
        before = after;
    }
    memcpy(quiet, rate, (size_t)n * sizeof *rate);
    qsort(quiet, (size_t)n, sizeof *quiet, by_value);
    const f64 usual = quiet[n * 3 / 4];
    f64 fma = 0;
    for (i32 s = 0; s < n; s++)
        if (rate[s] >= 0.9 * usual) quiet[nq++] = all[s], fma += rate[s];
    qsort(quiet, (size_t)nq, sizeof *quiet, by_value);
    qsort(all, (size_t)n, sizeof *all, by_value);
    const i32 G = cell_gates(kind);
    const f64 flop = 2.0 * (f64)TB * G * H * (2.0 * (I + H) + H + (dx ? I : 0)), ms = quiet[nq / 2] * 1e3;
    printf("S%d T%d B%d I%d H%d threads %d: quiet %.3f ms  p25 %.3f  raw %.3f  (%d of %d)  %.0f GF/s = %.0f %% of %.0f",
           which + 1, T, B, I, H, j.threads, ms, quiet[nq / 4] * 1e3, all[n / 2] * 1e3, nq, n, flop / ms * 1e-6,
           100 * flop / ms * 1e-6 / (fma / nq * j.threads), fma / nq * j.threads);
    for (i32 p = 0; p < 4 && phases; p++) {
        static const char *const name[] = {"prep", "fwd", "bwd", "dw"};
        qsort(phase[p], (size_t)n, sizeof *phase[p], by_value);
        printf("  %s %.3f", name[p], phase[p][n / 4] * 1e3);
    }
    printf("\n");
    fflush(stdout);
    for (size_t q = 0; q < COUNT(own); q++) mem_free(own[q]);
    for (i32 id = 0; id < j.threads; id++) mem_free(j.dw[id]), mem_free(j.dbias[id]);
}

int main(int argc, char **argv) {
    enum cell_kind kind = CELL_LSTM;
    i32 threads = 1, only = 0;
    f64 seconds = 2;
    bool dx = false, phases = false;
    const struct kern *k = kern_best();
    for (int a = 1; a < argc; a++) {
        const char *v = a + 1 < argc ? argv[a + 1] : "";
        if (!strcmp(argv[a], "--dx"))
            dx = true;
        else if (!strcmp(argv[a], "--phases"))
            phases = true;
        else if (!strcmp(argv[a], "--cell"))
            kind = !strcmp(v, "gru") ? CELL_GRU : !strcmp(v, "rnn") ? CELL_RNN : CELL_LSTM, a++;
        else if (!strcmp(argv[a], "--threads"))
            threads = imin(THREADS_MAX, imax(1, (i32)strtol(v, NULL, 10))), a++;
        else if (!strcmp(argv[a], "--shape"))
            only = (i32)strtol(v, NULL, 10), a++;
        else if (!strcmp(argv[a], "--seconds"))
            seconds = strtod(v, NULL), a++;
        else if (!strcmp(argv[a], "--isa")) {
            for (enum kern_arch i = 0; i < KERN_NARCH; i++)
                if (!strcmp(v, kern_arch_name(i)) && kern_get(i)) k = kern_get(i);
            a++;
        } else {
            fprintf(stderr, "bench_kern: unknown option %s\n", argv[a]);
            return 2;
        }
    }
    crew_start(threads);
    for (i32 s = 0; s < 5; s++)
        if (!only || only == s + 1) measure(k, kind, threads, s, seconds, dx, phases);
    return 0;
}
