/* signature.c - a name for this kind of processor that is the same in every run: machines in a cloud are called "Processor". */
#include <stdio.h>
#include <string.h>

#include "tune/wisdom.h"

#if defined(__x86_64__)
#include <cpuid.h>

/* Family, model and stepping as the processor packs them. */
static u32 revision(void) {
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid(1, &a, &b, &c, &d) ? a : 0;
}
#else
/* The name is all there is. */
static u32 revision(void) { return 0; }
#endif

void cpu_signature(const char *name, char out[WISDOM_CPU]) {
    snprintf(out, WISDOM_CPU, "%.48s/%x", *name ? name : "cpu", revision());
    for (char *p = out; *p; p++)
        if (*p <= ' ' || *p > '~' || *p == '=') *p = '_';
}
