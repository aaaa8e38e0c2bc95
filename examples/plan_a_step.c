/* plan_a_step.c - what a training step would cost on machines that are not here: planning needs shapes only and touches no
 * device.
 *
 *     ./plan_a_step                       tables for one and for two hosts
 *     ./plan_a_step 'host*4(cpu*16)'      for a machine of your own
 */
#include <stdio.h>

#include "stretto/stretto.h"

static stretto_err compare(stretto_config *config, const char *machine) {
    stretto_plan *p = NULL;
    char *table = NULL, *summary = NULL;
    stretto_err e = stretto_config_set(config, "machine", machine);
    if (e >= 0) e = stretto_plan_new(config, NULL, &p); /* no data: the shapes come from columns, horizon and context */
    if (e >= 0) e = stretto_plan_summary(p, 0, &summary);
    if (e >= 0) e = stretto_plan_compare(p, &table);
    if (e >= 0) printf("--- %s\n%s%s", machine, summary, table);
    stretto_text_free(summary);
    stretto_text_free(table);
    stretto_plan_free(p);
    return e;
}

int main(int argc, char **argv) {
    static const char *const shape[][2] = {
        {"columns", "7"}, {"horizon", "96"}, {"context", "336"}, {"hidden", "64"}, {"batch", "64"}};
    stretto_config *config = stretto_config_new();
    stretto_err e = config ? 0 : -601;
    for (size_t i = 0; e >= 0 && i < sizeof shape / sizeof *shape; i++) e = stretto_config_set(config, shape[i][0], shape[i][1]);
    if (argc > 1) {
        if (e >= 0) e = compare(config, argv[1]);
    } else {
        if (e >= 0) e = compare(config, "host(cpu*4)");
        if (e >= 0) e = compare(config, "host*2(cpu*8)");
    }
    if (e < 0) fprintf(stderr, "error[E%03d] %s\n  fix: %s\n", stretto_errcode(), stretto_errmsg(), stretto_errfix());
    stretto_config_free(config);
    return stretto_exit_status(e < 0 ? e : 0);
}
