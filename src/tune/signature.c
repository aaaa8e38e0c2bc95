/* signature.c - a stable identifier of the processor type; the model name alone may be generic ("Processor") on cloud machines.
 */
#include <stdio.h>
#include <string.h>

#include "tune/wisdom.h"

#if defined(__x86_64__)
#include <cpuid.h>

/* Family, model and stepping as packed by cpuid. */
static u32 revision(void) {
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid(1, &a, &b, &c, &d) ? a : 0;
}
#else
/* no revision on other architectures */
static u32 revision(void) { return 0; }
#endif

void cpu_signature(const char *name, char out[WISDOM_CPU]) {
    snprintf(out, WISDOM_CPU, "%.48s/%x", *name ? name : "cpu", revision());
    for (char *p = out; *p; p++)
        if (*p <= ' ' || *p > '~' || *p == '=') *p = '_';
}
