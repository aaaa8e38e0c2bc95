/* print.c - placements as a table for people. */
#include "place/place.h"

static i32 devices_used(const struct placement *p) {
    i32 n = 0;
    for (i32 d = 0; d < p->ndevice; d++) n += p->first[d + 1] > p->first[d];
    return n;
}

/* Seconds with a unit that keeps four digits in front of the eye. */
static void duration(char out[24], f64 seconds) {
    if (seconds >= 1)
        str_print(out, 24, "%.4g s", seconds);
    else
        str_print(out, 24, "%.4g %s", seconds * (seconds >= 1e-3 ? 1e3 : 1e6), seconds >= 1e-3 ? "ms" : "us");
}

void place_print(const struct placement *const *p, i32 n, struct str *out) {
    str_addf(out, "%-36s %12s %8s %10s %8s %7s %10s\n", "method", "makespan", "saving", "above bound", "devices", "copies",
             "planned in");
    for (i32 i = 0; i < n; i++) {
        char makespan[24], planned[24], saving[16];
        duration(makespan, p[i]->makespan);
        duration(planned, p[i]->seconds);
        str_print(saving, sizeof saving, "%.1f %%", 100 * (1 - p[i]->makespan / p[0]->makespan));
        str_addf(out, "%-36s %12s %8s %9.1f %% %8d %7d %10s%s\n", p[i]->method, makespan, i > 0 ? saving : "-",
                 100 * (p[i]->makespan / p[i]->bound - 1), devices_used(p[i]), p[i]->copies, planned,
                 p[i]->fits ? "" : "  does not fit");
    }
    if (n > 0) {
        char bound[24];
        duration(bound, p[0]->bound);
        str_addf(out, "lower bound %s (%s)\n", bound, p[0]->bound_name);
    }
}
