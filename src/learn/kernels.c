/* kernels.c - finds the kernels of an option, and measures a multiply-add rate. */
#include "learn/kernels.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/str.h"

enum { CALIBRATION_ROUNDS = 50000, CALIBRATIONS = 6 }; /* takes 1 to 2 ms; the planner's cost model uses the result */

/* E103 for --kernel: the name is unknown, or this machine cannot run it. Lists the kernels that can run. */
static err no_kernel(const char *demand, const char *name, bool known) {
    const char *have[KERN_NARCH + 1] = {"auto"};
    char list[96] = "auto", fix[48];
    i32 n = 1;
    for (i32 a = 0; a < KERN_NARCH; a++) {
        if (!kern_get((enum kern_arch)a)) continue;
        have[n++] = kern_arch_name((enum kern_arch)a);
        size_t len = strlen(list);
        snprintf(list + len, sizeof list - len, ", %s", have[n - 1]);
    }
    i32 near = known ? 0 : str_nearest(name, have, n);
    snprintf(fix, sizeof fix, "--kernel %s", have[imax(0, near)]);
    return FAIL_AT(E103, "--kernel", fix,
                   "\"%.40s\" %s (this machine and build have %s; :fold, :ahead, :newton or :scan may follow)", demand,
                   known ? "names kernels that cannot run here" : "is not the name of kernels", list);
}

err pick_kernel(const struct options *o, const struct kern **out, u32 *how) {
    static const char *const walks[] = {"", ":fold", ":ahead", ":newton", ":scan"}; /* enum cell_how */
    const char *wish = o->kernel ? o->kernel : ""; /* an empty word is no word */
    char name[24];
    size_t len = strcspn(wish, ":");
    const char *walk = wish + len;
    bool known = false;
    TRY(kern_init());
    *out = kern_best();
    *how = 0;
    for (u32 k = 0; k < COUNT(walks); k++)
        if (strcmp(walk, walks[k]) == 0) *how = k;
    snprintf(name, sizeof name, "%.*s", (int)(len < sizeof name ? len : sizeof name - 1), wish);
    if (*walk && *how == 0) return no_kernel(wish, name, false);
    if (strcmp(name, "auto") == 0) return 0;
    for (i32 a = 0; a < KERN_NARCH && !known; a++) {
        known = strcmp(name, kern_arch_name((enum kern_arch)a)) == 0;
        if (!known || !kern_get((enum kern_arch)a)) continue;
        *out = kern_get((enum kern_arch)a);
        return 0;
    }
    return no_kernel(wish, name, known);
}

/* Takes the best of several measurements: one that another process interrupted would be far too low.  Measured once for the
 * process, so that forecasts of a long-lived one do not wait for it. */
void machine_measure(const struct kern *k, struct machine *m) {
    static _Atomic f64 known[KERN_NARCH]; /* 0 = not measured; two threads may both measure */
    f64 best = atomic_load(&known[k->arch]);
    for (i32 i = 0; best <= 0 && i < CALIBRATIONS; i++) best = dmax(best, k->fma_rate(CALIBRATION_ROUNDS));
    atomic_store(&known[k->arch], best);
    machine_set_rate(m, "cpu", best);
}
