/* kern.c - selects the kernels of this machine: every table starts with the reference implementations, then an instruction set
 * overwrites its slots.
 *
 *     ref < base < neon < avx2 < avx512 < avx512_bf16 < amx
 *
 * kern_best returns the last set that the CPU has, or the one that STRETTO_ISA names. */
#define _GNU_SOURCE
#include "kern/fill.h"

#include <pthread.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[KERN_NARCH] = {"ref", "base", "neon", "avx2", "avx512", "avx512_bf16", "amx"};

static struct kern table[KERN_NARCH];
static bool have[KERN_NARCH];
static enum kern_arch best;
static bool demand_failed;
static pthread_once_t once = PTHREAD_ONCE_INIT;

#if defined(__x86_64__)
/* Tests one bit of cpuid leaf 7; reg: 0 = eax .. 3 = edx. */
static bool leaf7_has(u32 subleaf, i32 reg, i32 bit) {
    u32 r[4] = {0};
    return __get_cpuid_count(7, subleaf, &r[0], &r[1], &r[2], &r[3]) && (r[reg] >> bit & 1);
}

static bool avx512_bf16(void) {
#if defined(KERN_HAVE_avx512_bf16)
    return leaf7_has(1, 0, 5);
#else
    return false; /* the compiler lacks the instructions */
#endif
}

/* Linux grants AMX tile data per process on request, since it enlarges the saved state of every thread. */
static bool amx(void) {
#if defined(KERN_HAVE_amx) && defined(__linux__)
    enum { REQ_XCOMP_PERM = 0x1023, TILE_DATA = 18, EDX = 3 };
    return leaf7_has(0, EDX, 22) && leaf7_has(0, EDX, 24) && syscall(SYS_arch_prctl, REQ_XCOMP_PERM, TILE_DATA) == 0;
#else
    return false;
#endif
}
#endif

static bool cpu_has(enum kern_arch arch) {
    switch (arch) {
        case KERN_REF:
        case KERN_BASE:
            return true;
#if defined(__x86_64__)
        case KERN_AVX2:
            return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
        case KERN_AVX512:
            return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                   __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx2") &&
                   __builtin_cpu_supports("fma");
        case KERN_AVX512_BF16:
            return cpu_has(KERN_AVX512) && avx512_bf16();
        case KERN_AMX:
            return cpu_has(KERN_AVX512_BF16) && amx();
#endif
#if defined(__aarch64__)
        case KERN_NEON:
            return true; /* always present on aarch64 */
#endif
        default:
            return false;
    }
}

#define FILL(isa) \
    kern_fill_lstm_##isa(k), kern_fill_gru_##isa(k), kern_fill_rnn_##isa(k), kern_fill_gemm_##isa(k), kern_fill_narrow_##isa(k), \
        kern_fill_vec_##isa(k)
#define FILL_BF16(isa) kern_fill_bf16_lstm_##isa(k), kern_fill_bf16_gru_##isa(k), kern_fill_bf16_rnn_##isa(k)

static void fill(enum kern_arch arch, struct kern *k) {
    kern_fill_cell_ref(k);
    kern_fill_gemm_ref(k);
    kern_fill_vec_ref(k);
    if (arch == KERN_REF) kern_fill_bf16_ref(k);
    if (arch == KERN_BASE) FILL(base);
#if defined(__aarch64__)
    if (arch == KERN_NEON) FILL(neon);
#endif
#if defined(__x86_64__)
    if (arch == KERN_AVX2) FILL(avx2);
    if (arch == KERN_AVX512 || arch == KERN_AVX512_BF16 || arch == KERN_AMX) FILL(avx512);
#if defined(KERN_HAVE_avx512_bf16)
    if (arch == KERN_AVX512_BF16) FILL_BF16(avx512_bf16);
#endif
#if defined(KERN_HAVE_amx)
    if (arch == KERN_AMX) FILL_BF16(amx);
#endif
#endif
}

static void make_tables(void) {
#if defined(__x86_64__)
    __builtin_cpu_init();
#endif
    for (enum kern_arch a = 0; a < KERN_NARCH; a++) {
        have[a] = cpu_has(a);
        if (have[a]) best = a;
        if (have[a]) fill(a, &table[a]); /* the fill functions themselves are compiled for the set */
        table[a].arch = a;
        table[a].name = names[a];
    }
    const char *demand = getenv("STRETTO_ISA");
    if (!demand || !*demand) return;
    demand_failed = true;
    for (enum kern_arch a = 0; a < KERN_NARCH; a++) {
        if (!have[a] || strcmp(names[a], demand) != 0) continue;
        best = a;
        demand_failed = false;
    }
}

err kern_init(void) {
    pthread_once(&once, make_tables);
    if (!demand_failed) return 0;
    char list[64] = "";
    for (enum kern_arch a = 0; a < KERN_NARCH; a++) {
        const size_t len = strlen(list);
        if (have[a]) snprintf(list + len, sizeof list - len, "%s%s", len ? ", " : "", names[a]);
    }
    char fix[128];
    snprintf(fix, sizeof fix, "unset STRETTO_ISA, or set it to one of: %s", list);
    const char *demand = getenv("STRETTO_ISA");
    return FAIL_AT(E103, "STRETTO_ISA", fix, "\"%.40s\" is not an instruction set that this machine and build have (%s)",
                   demand ? demand : "", list);
}

const struct kern *kern_best(void) {
    pthread_once(&once, make_tables);
    return &table[best];
}

const struct kern *kern_get(enum kern_arch arch) {
    pthread_once(&once, make_tables);
    return arch < KERN_NARCH && have[arch] ? &table[arch] : NULL;
}

const char *kern_arch_name(enum kern_arch arch) { return arch < KERN_NARCH ? names[arch] : "?"; }
