/* calib.c - the calibration loops; see calib.h. */
#define _GNU_SOURCE
#include "calib.h"

#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#if defined(BENCH_AMX)
#include <immintrin.h>
#include <sys/syscall.h>
#endif

enum { BURSTS = 7, BURST_NS = 18000 };

static const struct kern *yardstick;
static i64 rounds = 1000, tile_rounds, load_rounds = 10;

static f64 median(f64 v[BURSTS]) {
    for (i32 i = 1; i < BURSTS; i++)
        for (i32 j = i; j > 0 && v[j] < v[j - 1]; j--) {
            const f64 t = v[j];
            v[j] = v[j - 1], v[j - 1] = t;
        }
    return v[BURSTS / 2];
}

f64 calib_fma(void) {
    f64 rate[BURSTS];
    yardstick->fma_rate(2 * rounds);
    for (i32 i = 0; i < BURSTS; i++) rate[i] = yardstick->fma_rate(rounds);
    return median(rate);
}

#if defined(BENCH_AMX)
struct config { /* Intel SDM: palette, start row, then bytes per row and rows of each tile */
    u8 palette, start, reserved[14];
    u16 bytes[16];
    u8 rows[16];
} __attribute__((aligned(64)));

static bool granted(void) {
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XTILEDATA = 18 };
    __builtin_cpu_init();
    unsigned a, b, c, d;
    __asm__("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "a"(7), "c"(0));
    if (!(d >> 24 & 1) || !(d >> 22 & 1)) return false; /* amx-tile, amx-bf16 */
    return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XTILEDATA) == 0;
}

/* n rounds of 2x2 products with their four loads from 8 KB. */
static f64 tile_run(i64 n) {
    static _Alignas(64) const u8 operand[8][1024];
    const f64 t = clock_now();
    for (i64 i = 0; i < n; i++) {
        const u8 *at = operand[i & 4];
        _tile_loadd(4, at, 64);
        _tile_loadd(6, at + 1024, 64);
        _tile_dpbf16ps(0, 4, 6);
        _tile_loadd(7, at + 2048, 64);
        _tile_dpbf16ps(1, 4, 7);
        _tile_loadd(5, at + 3072, 64);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
    return 4e-9 * 2 * 16 * 16 * 32 * (f64)n / (clock_now() - t);
}

static f64 amx_rate(void) {
    struct config mine, before;
    memset(&mine, 0, sizeof mine);
    mine.palette = 1;
    for (i32 i = 0; i < 8; i++) mine.bytes[i] = 64, mine.rows[i] = 16;
    __asm__ volatile("sttilecfg %0" : "=m"(before));
    __asm__ volatile("ldtilecfg %0" ::"m"(mine));
    f64 rate[BURSTS];
    tile_run(tile_rounds);
    for (i32 i = 0; i < BURSTS; i++) rate[i] = tile_run(tile_rounds);
    if (before.palette)
        __asm__ volatile("ldtilecfg %0" ::"m"(before));
    else
        __asm__ volatile("tilerelease");
    return median(rate);
}
#else
static bool granted(void) { return false; }
static f64 amx_rate(void) { return 0; }
#endif

enum { LOAD_M = 24, LOAD_N = 64, LOAD_K = 32 }; /* 3 KB + 8 KB + 6 KB: half of the smallest L1 */

/* n products of the measured kernels whose operands stay in L1. */
static f64 load_run(i64 n) {
    static _Thread_local _Alignas(64) f32 a[LOAD_M * LOAD_K], b[LOAD_K * LOAD_N], c[LOAD_M * LOAD_N];
    const f64 t = clock_now();
    for (i64 i = 0; i < n; i++) yardstick->gemm_nn(LOAD_M, LOAD_N, LOAD_K, a, LOAD_K, b, LOAD_N, c, LOAD_N, false);
    return 2e-9 * LOAD_M * LOAD_N * LOAD_K * (f64)n / (clock_now() - t);
}

static f64 load_rate(void) {
    f64 rate[BURSTS];
    load_run(load_rounds);
    for (i32 i = 0; i < BURSTS; i++) rate[i] = load_run(load_rounds);
    return median(rate);
}

f64 calib_tile(void) { return tile_rounds ? amx_rate() : load_rate(); }

err calib_init(const struct kern *k) {
    yardstick = k;
    f64 seconds = 0;
    for (i32 i = 0; i < 3; i++) {
        const f64 t = clock_now();
        k->fma_rate(20000);
        seconds = clock_now() - t;
    }
    rounds = (i64)(20000 * (BURST_NS * 1e-9) / seconds) + 1;
    tile_rounds = 0;
    load_rounds = (i64)(load_rate() * 1e9 / (2 * LOAD_M * LOAD_N * LOAD_K) * (BURST_NS * 1e-9)) + 1;
    if (!granted()) return 0;
    tile_rounds = 500;
    const f64 rate = amx_rate();
    tile_rounds = (i64)(rate * 1e9 / (4 * 2 * 16 * 16 * 32) * (BURST_NS * 1e-9)) + 1;
    return 0;
}

void calib_burst(void *calib) {
    struct calib *c = calib;
    const i32 slot = atomic_fetch_add(&c->next, 1) % CALIB_THREADS;
    c->fma[slot] = calib_fma();
    c->tile[slot] = c->tiles || !tile_rounds ? calib_tile() : 0;
}

f64 calib_take(struct calib *c, f64 *tile) {
    const i32 n = imin(CALIB_THREADS, atomic_exchange(&c->next, 0));
    f64 least = n ? c->fma[0] : 0;
    *tile = n ? c->tile[0] : 0;
    for (i32 i = 1; i < n; i++) least = fmin(least, c->fma[i]), *tile = fmin(*tile, c->tile[i]);
    return least;
}

/* /proc/self/task/N/schedstat on Linux: ns on a processor, ns in the run queue, number of time slices. */
f64 calib_waited(void) {
    f64 ns = 0;
    char path[64], text[96];
    DIR *d = opendir("/proc/self/task");
    for (struct dirent *e; d && (e = readdir(d));) {
        snprintf(path, sizeof path, "/proc/self/task/%.16s/schedstat", e->d_name);
        const int f = open(path, O_RDONLY | O_CLOEXEC);
        if (f < 0) continue;
        const ssize_t n = read(f, text, sizeof text - 1);
        close(f);
        char *second = text;
        text[n > 0 ? n : 0] = 0;
        strtoull(text, &second, 10);
        ns += (f64)strtoull(second, NULL, 10);
    }
    if (d) closedir(d);
    return ns * 1e-9;
}

/* Interface for PyTorch's process (peer.py); arch NULL = the best of this machine. */
#define EXPORT __attribute__((visibility("default")))
EXPORT i32 bench_calib_init(const char *arch);
EXPORT void bench_calib_tiles(void *calib, i32 on);
EXPORT void bench_calib_burst(void *calib);
EXPORT f64 bench_calib_take(void *calib, f64 *tile);
EXPORT f64 bench_calib_waited(void);
EXPORT i32 bench_calib_size(void);

EXPORT i32 bench_calib_init(const char *arch) {
    const struct kern *k = kern_best();
    for (enum kern_arch a = 0; arch && a < KERN_NARCH; a++)
        if (!strcmp(arch, kern_arch_name(a)) && kern_get(a)) k = kern_get(a);
    return calib_init(k);
}
EXPORT void bench_calib_tiles(void *calib, i32 on) { ((struct calib *)calib)->tiles = on; }
EXPORT void bench_calib_burst(void *calib) { calib_burst(calib); }
EXPORT f64 bench_calib_take(void *calib, f64 *tile) { return calib_take(calib, tile); }
EXPORT f64 bench_calib_waited(void) { return calib_waited(); }
EXPORT i32 bench_calib_size(void) { return (i32)sizeof(struct calib); }
