/* uneven.c - partitions of uneven size dealt to several devices, and the number of lanes of one device, as two markdown tables.
 *
 *     STRETTO_OPENCL=.../libfaulty_opencl.so bench_uneven partitions|lanes [TURNS [ROWS]]      5 turns, 400000 rows
 *
 * The devices are those of PoCL, whose threads serve every device: four for four devices, which thus compute beside each other,
 * and one for the device of the lanes, which thus computes one piece at a time.  A piece copies its rows to a device, multiplies
 * them there by a matrix of 64 x 64 and copies the product back: about 1 ms for 1000 rows.
 *
 *     shared     the devices compute as fast as the cores of the host let them
 *     their own  a device also sleeps behind each kernel, for a time in proportion to its rows, a copy sleeps before it begins
 *                (FAULTY_PACE of tests/gpu/faulty_opencl.c): speeds do not depend on what else the cores do
 *
 *     held       seconds in which a piece holds the device, on the clock of the host, of all its pieces
 *     busy       seconds between marks around the work of the piece, on the device's clock
 *     waited     seconds in which a thread of the process could have run and had no processor (Linux: schedstat)
 *     ideal      sum over the devices of the same run / devices: what a schedule without waiting would take
 *
 * Rates are unknown at the start of every run. */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/rng.h"
#include "deal/run.h"
#include "gpu/gpu.h"

enum { PARTS = 64, WIDE = 64, DEVICES = 4, LANES_MOST = 4, GRAIN = 32, TURNS_MOST = 50 };
/* Of the lanes: partitions longer than the pieces of a search, which else does not end. */
enum { TASK = 20000, SHORT_TASK = 1000, LANE_PARTS = 80, HELD = 64, PIECES = 4000, PARTS_MOST = 80 };
#define PACE 50e-6        /* seconds of a row on a device with a speed of its own, of which computing is a fiftieth */
enum { PACED_PART = 10 }; /* of the rows are then enough */
enum { ROW = WIDE * (i32)sizeof(f32), ROW_ITEMS = 4 }; /* work items of a product for each row */

struct rig {
    i32 devices, parts;
    struct gpu *gpu[DEVICES];
    struct deal_part part[PARTS_MOST];
    i64 first[PARTS_MOST + 1];   /* rows before the partition */
    i64 rows, lane_bytes, stock; /* stock: rows of the buffers; row i of the work is row i % stock there */
    f32 *a, *b, *want, *got;
    u8 *times; /* a row was accepted */
    f64 busy[DEVICES][LANES_MOST], held[DEVICES][LANES_MOST], waited[DEVICES][LANES_MOST];
    bool paced; /* devices have speeds of their own */
    struct {
        f64 at;   /* when a piece was accepted */
        i64 rows; /* up to and with it */
    } piece[PIECES];
    i64 accepted, done;
};

/* ------------------------------------------------------------------ processors ---------------------------------------------- */

/* Seconds in which a thread could have run and had no processor. */
static f64 waited_of(const char *thread) {
    char path[400];
    unsigned long long ran, waited = 0;
    snprintf(path, sizeof path, "/proc/%s/schedstat", thread);
    FILE *f = fopen(path, "r");
    if (f && fscanf(f, "%llu %llu", &ran, &waited) != 2) waited = 0;
    if (f) fclose(f);
    return 1e-9 * (f64)waited;
}

/* The same of all threads that live: outside of a run, those of the devices and the caller. */
static f64 waited_of_all(void) {
    f64 sum = 0;
    char name[300];
    DIR *d = opendir("/proc/self/task");
    for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
        if (e->d_name[0] == '.') continue;
        snprintf(name, sizeof name, "self/task/%s", e->d_name);
        sum += waited_of(name);
    }
    if (d) closedir(d);
    return sum;
}

/* ------------------------------------------------------------------ a piece ------------------------------------------------- */

/* Sleeps of a row from now on: its kernel on the device, its copies to and from it; 0, 0: none. */
static void set_pace(struct rig *r, f64 kernel_s, f64 copy_s) {
    char text[64];
    snprintf(text, sizeof text, "%.0f,%.0f", 1e9 * kernel_s / ROW_ITEMS, 1e9 * copy_s * 1024 / (2 * ROW));
    r->paced = kernel_s > 0;
    setenv("FAULTY_PACE", text, 1);
}

/* Writes its rows of `got`: no other piece has them, because no device is left behind here. */
static err piece(void *self, i32 device, i32 lane, const struct deal_piece *p) {
    struct rig *r = self;
    const i64 n = p->hi - p->lo, from = (r->first[p->part] + p->lo) % r->stock;
    const f64 begin = clock_now(), waited = waited_of("thread-self");
    gpu_enter(r->gpu[device], lane);
    char *heap = gpu_heap(r->gpu[device]);
    f32 *b = (f32 *)heap, *a = (f32 *)(heap + WIDE * ROW + lane * r->lane_bytes), *c = a + n * WIDE;
    const i32 m0 = gpu_mark();
    gpu_put(a, ROW, r->a + from * WIDE, ROW, ROW, n);
    gpu_kern()->gemm_nn((i32)n, WIDE, WIDE, a, WIDE, b, WIDE, c, WIDE, false);
    gpu_get(r->got + from * WIDE, ROW, c, ROW, ROW, n);
    const i32 m1 = gpu_mark();
    const err e = gpu_sync();
    const f64 busy = gpu_between(m0, m1), held = clock_now() - begin;
    r->busy[device][lane] += busy >= 0 ? busy : held;
    r->held[device][lane] += held;
    r->waited[device][lane] += waited_of("thread-self") - waited;
    gpu_enter(NULL, 0);
    return e;
}

static err accept(void *self, i32 device, i32 lane, const struct deal_piece *p) {
    struct rig *r = self;
    (void)device, (void)lane;
    r->done += p->hi - p->lo;
    if (r->accepted < PIECES) r->piece[r->accepted].at = clock_now(), r->piece[r->accepted].rows = r->done;
    r->accepted++;
    for (i64 i = p->lo; i < p->hi; i++) r->times[r->first[p->part] + i]++;
    return 0;
}

/* ------------------------------------------------------------------ work and devices ---------------------------------------- */

static void set_parts(struct rig *r, i32 n, const i64 *rows) {
    r->parts = n;
    for (i32 i = 0; i < n; i++) {
        r->part[i] = (struct deal_part){.rows = rows[i], .cost = 1};
        r->first[i + 1] = r->first[i] + rows[i];
    }
    r->rows = r->first[n];
}

/* Sizes i^-power, shuffled, `total` rows together. */
static void uneven(struct rig *r, i64 total, f64 power) {
    f64 sum = 0;
    i64 rows[PARTS];
    for (i32 i = 1; i <= PARTS; i++) sum += pow(i, -power);
    for (i32 i = 0; i < PARTS; i++) rows[i] = lmax(1, (i64)((f64)total * pow(i + 1, -power) / sum));
    for (i32 i = PARTS - 1; i > 0; i--) {
        const i32 k = (i32)((f64)rng_uniform(11, RNG_TEST, 1, (u64)i) * (i + 1));
        const i64 keep = rows[i];
        rows[i] = rows[k], rows[k] = keep;
    }
    set_parts(r, PARTS, rows);
}

static err fill(struct rig *r, i64 rows) {
    NEW(r->a, (size_t)rows * WIDE);
    NEW(r->b, (size_t)WIDE * WIDE);
    NEW(r->want, (size_t)rows * WIDE);
    NEW(r->got, (size_t)rows * WIDE);
    NEW(r->times, (size_t)lmax(rows, LANE_PARTS * TASK));
    r->stock = rows;
    for (i64 i = 0; i < rows * WIDE; i++) r->a[i] = rng_uniform(3, RNG_TEST, 4, (u64)i) - 0.5f;
    for (i64 i = 0; i < WIDE * WIDE; i++) r->b[i] = rng_uniform(3, RNG_TEST, 5, (u64)i) - 0.5f;
    kern_get(KERN_REF)->gemm_nn((i32)rows, WIDE, WIDE, r->a, WIDE, r->b, WIDE, r->want, WIDE, false);
    return 0;
}

/* 77: there is no device. */
static int open_devices(struct rig *r, i64 rows, bool one, struct gpu_card *card) {
    const struct gpu_driver *d = gpu_driver_find("opencl");
    char why[GPU_WHY] = "";
    const i32 there = d->cards(card, GPU_CARDS, why);
    if (there < 2 - one) {
        fprintf(stderr, "skipped: PoCL's devices are needed, there are %d. %s\n", there, why);
        return 77;
    }
    r->lane_bytes = rows * ROW; /* half of the rows in and out: the largest partition has 42 % */
    for (i32 i = 0; i < imin(there, DEVICES); i++, r->devices++) {
        if (gpu_open(d, i, LANES_MOST, WIDE * ROW + r->lane_bytes, &r->gpu[i]) < 0) return 1;
        gpu_enter(r->gpu[i], 0);
        gpu_put(gpu_heap(r->gpu[i]), ROW, r->b, ROW, ROW, WIDE);
        if (gpu_sync() < 0) return 1;
        gpu_enter(NULL, 0);
    }
    return 0;
}

/* ------------------------------------------------------------------ a run --------------------------------------------------- */

struct outcome {
    f64 seconds, held[DEVICES], busy_sum, held_sum, waited;
    i64 pieces, wrong;        /* rows that were not computed once, or differ from the plain result */
    struct deal_report first; /* of device 0 */
};

static i64 wrong_rows(const struct rig *r) {
    i64 n = 0;
    for (i64 i = 0; i < r->rows; i++) {
        const i64 at = i % r->stock * WIDE;
        f64 apart = 0;
        for (i64 k = at; k < at + WIDE; k++) {
            const f64 d = fabs((f64)r->got[k] - (f64)r->want[k]);
            if (!(d <= apart)) apart = isnan(d) ? 1 : d;
        }
        n += r->times[i] != 1 || apart > 1e-5;
    }
    return n;
}

static err run(struct rig *r, i32 devices, const char *policy, const struct deal_device *is, struct outcome *out) {
    struct deal_device device[DEVICES];
    const struct deal_work work = {.nparts = r->parts, .part = r->part, .row_bytes = 0, .grain = GRAIN};
    const struct deal_job job = {.self = r, .piece = piece, .accept = accept, .patience_s = 60};
    struct dealer *d;
    struct deal_ran ran;
    for (i32 i = 0; i < devices; i++) device[i] = *is;
    memset(r->got, 0xff, (size_t)(lmin(r->rows, r->stock) * ROW));
    memset(r->times, 0, (size_t)r->rows);
    memset(r->busy, 0, sizeof r->busy);
    memset(r->held, 0, sizeof r->held);
    memset(r->waited, 0, sizeof r->waited);
    r->accepted = r->done = 0;
    *out = (struct outcome){0};
    TRY(deal_new(device, devices, &work, policy, &d));
    const f64 before = waited_of_all();
    const err e = deal_run(d, &job, &ran);
    out->waited = waited_of_all() - before;
    deal_report(d, 0, &out->first);
    deal_free(d);
    out->seconds = ran.seconds, out->pieces = ran.pieces, out->wrong = wrong_rows(r);
    for (i32 i = 0; i < devices; i++) {
        for (i32 k = 0; k < LANES_MOST; k++)
            out->held[i] += r->held[i][k], out->busy_sum += r->busy[i][k], out->waited += r->waited[i][k];
        out->held_sum += out->held[i];
    }
    return e;
}

static int by_size(const void *a, const void *b) {
    const f64 x = *(const f64 *)a, y = *(const f64 *)b;
    return x < y ? -1 : x > y;
}

static f64 median(f64 *v, i32 n) {
    qsort(v, (size_t)n, sizeof *v, by_size);
    return v[n / 2];
}

/* ------------------------------------------------------------------ policies ------------------------------------------------ */

struct row {
    f64 ratio[TURNS_MOST], by_device[TURNS_MOST], waited[TURNS_MOST]; /* waited: of the time of all devices */
    struct outcome last;
    i64 wrong;
};

static void print_row(const struct rig *r, f64 power, i32 devices, const char *policy, struct row *w, i32 turns) {
    const f64 ratio = median(w->ratio, turns), by_device = median(w->by_device, turns);
    const char *bar = strcmp(policy, "auto") == 0 ? "**" : "";
    printf("| %.1f | %s | %d | %s | %s%.2f%s | %.2f | %s%.2f%s | %.2f | %.0f %% | %lld | %.0f |", power,
           r->paced ? "their own" : "shared", devices, policy, bar, ratio, bar, w->ratio[turns - 1], bar, by_device, bar,
           w->by_device[turns - 1], 100 * median(w->waited, turns), (long long)w->last.pieces, 1e3 * w->last.seconds);
    for (i32 i = 0; i < devices; i++) printf(" %.0f", 1e3 * w->last.held[i]);
    printf(" | %s |\n", w->wrong ? "NO" : "yes");
    fflush(stdout);
}

/* Policies take turns, so trouble of the machine meets all of them. */
static err policies(struct rig *r, i32 devices, f64 power, i32 turns, i64 *wrong) {
    static struct row row[16];
    struct outcome o;
    const struct deal_device is = {.lanes_most = 1};
    memset(row, 0, sizeof row);
    TRY(run(r, devices, "whole", &is, &o)); /* to warm up: PoCL compiles for new sizes */
    TRY(run(r, devices, "auto", &is, &o));
    for (i32 turn = 0; turn < turns; turn++)
        for (i32 k = 0; deal_policy_name(k); k++) {
            TRY(run(r, devices, deal_policy_name(k), &is, &o));
            row[k].ratio[turn] = o.seconds * devices / o.held_sum;
            row[k].by_device[turn] = o.seconds * devices / o.busy_sum;
            row[k].waited[turn] = o.waited / (o.seconds * devices);
            row[k].last = o;
            row[k].wrong += o.wrong;
            *wrong += o.wrong;
        }
    for (i32 k = 0; deal_policy_name(k); k++) print_row(r, power, devices, deal_policy_name(k), &row[k], turns);
    return 0;
}

static err policies_part(struct rig *r, i64 rows, i32 turns, i64 *wrong) {
    static const f64 power[] = {1.0, 1.5};
    printf(
        "%d partitions of i^-a rows, shuffled; each row times a matrix of %d x %d, with the copies to the device and back. "
        "Policies take turns; median and worst of %d turns. *Whole*, *pull*, *finish* and *lpt* give a device whole "
        "partitions: one task for each. *Ideal* is the sum of the times in which pieces held devices, over the number of "
        "devices; *by device clock*: of the seconds between marks on the queues of the devices. The bar is 1.10 for `auto`, "
        "the policy that Stretto uses.\n\n*Their own*: %lld rows, and behind each kernel the device sleeps %.0f us a row. So "
        "the processors of the host are idle most of the time, and a piece takes the same time on any device, as on devices "
        "with processors of their own. *Shared*: %lld rows without that; devices and the threads that drive them share the "
        "processors of the host. Where others are idle a device is faster, so whole partitions look better than they would "
        "on devices of their own. A device is also idle while the host thread that would start its next piece waits for a core: "
        "its clock does not count that, the makespan does. *Waited*: the time that threads of the process waited for a "
        "processor, over the time of all devices.\n\n",
        PARTS, WIDE, WIDE, turns, (long long)rows / PACED_PART, 1e6 * PACE, (long long)rows);
    printf(
        "| a | speed | devices | policy | makespan / ideal | worst | by device clock | worst | waited | pieces | "
        "last makespan, ms | devices held, ms | each row once and right |\n");
    printf("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
    for (size_t p = 0; p < COUNT(power); p++)
        for (i32 n = 2; n <= r->devices; n += 2)
            for (i32 paced = 0; paced < 2; paced++) {
                uneven(r, paced ? rows / PACED_PART : rows, power[p]);
                set_pace(r, paced ? PACE : 0, 0);
                TRY(policies(r, n, power[p], turns, wrong));
            }
    return 0;
}

/* ------------------------------------------------------------------ lanes --------------------------------------------------- */

/* Rows per second from accepted piece `from` to piece `to`. */
static f64 rate(const struct rig *r, i64 from, i64 to) {
    to = lmin(to, lmin(r->accepted, PIECES) - 1 - 2 * LANES_MOST); /* at the end lanes have nothing to do */
    return to > from ? (f64)(r->piece[to].rows - r->piece[from].rows) / (r->piece[to].at - r->piece[from].at) : 0;
}

struct lanes_row {
    f64 fixed[LANES_MOST][TURNS_MOST], free[TURNS_MOST], pieces[TURNS_MOST], chosen[TURNS_MOST];
};

static void equal_parts(struct rig *r) {
    i64 rows[LANE_PARTS];
    for (i32 i = 0; i < LANE_PARTS; i++) rows[i] = r->paced ? SHORT_TASK : TASK;
    set_parts(r, LANE_PARTS, rows);
}

/* All runs have the same work: the size of a piece is a share of it. */
static err lanes_turn(struct rig *r, struct lanes_row *w, i32 turn, i64 *wrong) {
    struct outcome o;
    equal_parts(r);
    for (i32 k = 0; k < LANES_MOST; k++) {
        const struct deal_device is = {.lanes_most = LANES_MOST, .lanes = k + 1, .lanes_fixed = true};
        TRY(run(r, 1, "auto", &is, &o));
        *wrong += o.wrong;
        w->fixed[k][turn] = rate(r, LANES_MOST, o.pieces);
    }
    const struct deal_device is = {.lanes_most = LANES_MOST};
    TRY(run(r, 1, "auto", &is, &o));
    *wrong += o.wrong;
    const i64 from = o.first.lanes_pieces; /* 0: it never settled */
    w->free[turn] = from > 0 ? rate(r, from, from + HELD) : 0;
    w->pieces[turn] = (f64)from;
    w->chosen[turn] = o.first.lanes;
    return 0;
}

static err lanes_part(struct rig *r, f64 kernel_s, f64 copy_s, i32 turns, i64 *wrong) {
    static struct lanes_row w;
    f64 best = 0;
    i32 at = 0;
    set_pace(r, kernel_s, copy_s);
    for (i32 turn = 0; turn < turns; turn++) TRY(lanes_turn(r, &w, turn, wrong));
    printf("| %s | %.0f |", r->paced ? "its own" : "shared", 1e6 * copy_s);
    for (i32 k = 0; k < LANES_MOST; k++) {
        const f64 v = median(w.fixed[k], turns);
        printf(" %.1f |", v / 1e3);
        if (v > best) best = v, at = k + 1;
    }
    const f64 got = median(w.free, turns), pieces = median(w.pieces, turns);
    printf(" %.1f | %.0f | **%.2f** (%d lanes) | %.0f |\n", got / 1e3, median(w.chosen, turns), got / best, at, pieces);
    fflush(stdout);
    return 0;
}

static err lanes(struct rig *r, i32 turns, i64 *wrong) {
    static const struct { f64 copy_s, kernel_s; } row[] = {{1e-6, 0}, {PACE / 2, PACE}, {PACE, PACE}, {2 * PACE, PACE}};
    r->lane_bytes = 2 * TASK * ROW;
    printf(
        "\nLanes of one device. A copy to it or from it sleeps before it begins: the copies of a row take the time of the second "
        "column longer, and the device computes meanwhile what other lanes have given it. *Its own*: partitions of %d rows, and "
        "the device sleeps %.0f us a row behind each kernel; so the best number of lanes is known: 2, 2 and 3. *Shared*: "
        "partitions of %d rows without that; the kernels of all lanes share the processors of the host with the threads that "
        "drive them. Thousand rows a second with a fixed number of lanes, and over at most %d pieces after feedback had chosen "
        "a number; median of %d turns. The bar is 0.97 of the best fixed number within 64 pieces.\n\n",
        SHORT_TASK, 1e6 * PACE, TASK, HELD, turns);
    printf(
        "| speed | copies, us a row | 1 lane | 2 | 3 | 4 | by feedback | lanes at the end | feedback / best fixed | pieces "
        "until chosen |\n");
    printf("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
    for (size_t k = 0; k < COUNT(row); k++) {
        TRY(lanes_part(r, row[k].kernel_s, row[k].copy_s, turns, wrong));
    }
    return 0;
}

/* ------------------------------------------------------------------ the program --------------------------------------------- */

static void drop(struct rig *r) {
    for (i32 i = 0; i < DEVICES; i++) gpu_close(r->gpu[i]);
    mem_free(r->a), mem_free(r->b), mem_free(r->want), mem_free(r->got), mem_free(r->times);
}

/* PoCL reads these when it starts. */
static void set_devices(bool lanes_only) {
    setenv("POCL_DEVICES", lanes_only ? "pthread" : "pthread pthread pthread pthread", 1);
    setenv("POCL_MAX_PTHREAD_COUNT", lanes_only ? "1" : "4", 1);
    setenv("POCL_CPU_MAX_CU_COUNT", "1", 1);
}

int main(int argc, char **argv) {
    static struct rig r;
    static struct gpu_card card[GPU_CARDS];
    const bool lanes_only = argc > 1 && strcmp(argv[1], "lanes") == 0;
    const i32 turns = imin(TURNS_MOST, imax(1, argc > 2 ? atoi(argv[2]) : 5));
    const i64 rows = argc > 3 ? atoll(argv[3]) : 400000;
    i64 wrong = 0;
    set_devices(lanes_only);
    int rc = kern_init() < 0 || fill(&r, round_up64(rows + PARTS, TASK)) < 0;
    if (rc == 0) rc = open_devices(&r, rows + PARTS, lanes_only, card);
    if (rc == 0 && !lanes_only)
        printf("%d devices, each %s; the host has %ld processors.\n\n", r.devices, card[0].name, sysconf(_SC_NPROCESSORS_ONLN));
    if (rc == 0) rc = (lanes_only ? lanes(&r, turns, &wrong) : policies_part(&r, rows, turns, &wrong)) < 0 || wrong > 0;
    if (rc == 0 || wrong > 0)
        printf("\nEvery row was computed once and equals the plain product: %s.\n", wrong ? "NO" : "yes, in every run");
    if (rc == 1 && wrong == 0) fprintf(stderr, "%s: %s\n", err_last()->where, err_last()->text);
    drop(&r);
    return rc;
}
