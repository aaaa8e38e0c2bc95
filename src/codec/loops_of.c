/* loops_of.c - chooses the inner loops for the instruction set of kern_best(). */
#include "codec/loops.h"

extern const struct wire_loops wire_loops_base;
#if defined(__x86_64__)
extern const struct wire_loops wire_loops_avx2, wire_loops_avx512;
#endif

const struct wire_loops *wire_loops(void) {
#if defined(__x86_64__)
    const enum kern_arch arch = kern_best()->arch;
    if (arch >= KERN_AVX512) return &wire_loops_avx512; /* the bf16 sets include avx512 */
    if (arch == KERN_AVX2) return &wire_loops_avx2;
#endif
    return &wire_loops_base;
}
