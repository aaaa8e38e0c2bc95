/* spec.c - the spec of a forecaster from options that are resolved. */
#include <stdio.h>
#include <string.h>

#include "learn/forecast/resolve.h"

static err bands_of(const struct options *o, struct forecast_spec *spec) {
    char item[64];
    for (const char *p = o->quantiles; str_list_next(&p, item, sizeof item);) {
        f64 q;
        if (spec->nband == BANDS_MAX) return FAIL(E103, "--quantiles: at most %d quantiles", BANDS_MAX);
        if (!str_to_f64(item, strlen(item), '.', &q) || (spec->nband > 0 && q <= spec->band[spec->nband - 1]))
            return FAIL_AT(E103, "--quantiles", "--quantiles 0.1,0.5,0.9", "quantiles must rise, \"%s\" does not", item);
        spec->band[spec->nband++] = q;
    }
    return 0;
}

err spec_of(const struct options *o, struct forecast_spec *spec) {
    const bool rank_auto = opt_is_auto(o, OPT_slice_rank), all = strcmp(o->loss_steps, "all") == 0;
    const struct head *head = opt_is_auto(o, OPT_decoder) ? head_at(0) : head_find(o->decoder);
    if (all && !head->all_steps)
        return FAIL_AT(E106, NULL, "--loss-steps last", "--decoder %s does not go with --loss-steps all", head->name);
    *spec = (struct forecast_spec){
        .head = all ? head->all_steps : head,
        .output = head_output_find(o->head),
        .cut = {.slices = 1, .least = 1, .rank_most = rank_auto ? SLICE_RANKS : (i32)o->slice_rank,
                .course = {.tol = (f32)o->slice_tol, .stale = (i32)o->slice_rounds, .stale_back = (i32)o->slice_rounds}}};
    opt_give_learner(o, &spec->for_learner);
    opt_give_net(o, &spec->for_net);
    opt_give_optim(o, &spec->for_optim);
    opt_give_loop(o, &spec->for_loop);
    if (spec->precision == PREC_N) spec->precision = PREC_F32; /* auto, not measured yet */
    TRY(bands_of(o, spec));
    if (spec->output->quantiles) spec->nquantile = spec->nband;
    return 0;
}
