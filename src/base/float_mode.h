/* float_mode.h - flush-to-zero mode for denormal floats during a training step.
 *
 * Gradients that vanish over many steps become denormal, and processors take about a hundred times as long for them: a step
 * whose only gradient came from the end of 168 steps took 7 times as long. The mode is per thread. It is restored afterwards,
 * because the thread may belong to the caller of the library. It changes no result above 1.2e-38. */
#ifndef STRETTO_BASE_FLOAT_MODE_H
#define STRETTO_BASE_FLOAT_MODE_H

#include "base/err.h"

#if defined(__x86_64__)
enum { FLUSH_BITS = 0x8040 }; /* flush to zero, denormals are zero */
static inline u64 float_mode_fast(void) {
    const u32 before = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(before | FLUSH_BITS);
    return before;
}
static inline void float_mode_back(u64 before) { __builtin_ia32_ldmxcsr((u32)before); }
#elif defined(__aarch64__)
static inline u64 float_mode_fast(void) {
    u64 before;
    __asm__ volatile("mrs %0, fpcr" : "=r"(before));
    __asm__ volatile("msr fpcr, %0" : : "r"(before | (u64)1 << 24));
    return before;
}
static inline void float_mode_back(u64 before) { __asm__ volatile("msr fpcr, %0" : : "r"(before)); }
#else
static inline u64 float_mode_fast(void) { return 0; }
static inline void float_mode_back(u64 before) { (void)before; }
#endif

#endif
