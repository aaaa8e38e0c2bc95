/* verb_plan.c - `plan` and `bench`: what a training step does in parallel, and how fast it is. */
#include <string.h>

#include "base/file.h"
#include "cli.h"

static stretto_err show(struct cli *c, const stretto_plan *p) {
    char *text = NULL;
    const bool draws = strcmp(c->o.draw, "none") != 0, placed = c->o.place && *c->o.place;
    const bool table = placed && (strcmp(c->o.place, "all") == 0 || (!draws && !c->o.print && !c->o.json));
    if (c->o.compare) TRY(stretto_plan_compare(p, &text));
    else if (table) TRY(stretto_plan_place(p, c->o.place, &text));
    else if (draws) TRY(stretto_plan_draw(p, strcmp(c->o.draw, "svg") == 0, &text));
    else TRY(c->o.print ? stretto_plan_print(p, &text) : stretto_plan_summary(p, c->o.json, &text));
    return cli_print_out(c, text);
}

stretto_err cmd_plan(struct cli *c) {
    stretto_data *d = NULL;
    stretto_plan *p = NULL;
    char *text = NULL;
    if (c->o.deal) {
        TRY(stretto_plan_deal(c->config, &text));
        return cli_print_out(c, text);
    }
    stretto_err e = c->args.narg ? stretto_data_open(c->config, c->args.arg[0], &d) : 0;
    if (e >= 0) e = stretto_plan_new(c->config, d, &p);
    if (e >= 0) e = show(c, p);
    if (e >= 0 && c->o.save && *c->o.save) e = file_option(stretto_plan_save(p, c->o.save), "--save");
    stretto_plan_free(p);
    stretto_data_free(d);
    return e;
}

stretto_err cmd_bench(struct cli *c) {
    char *text = NULL;
    TRY(stretto_bench(c->config, c->o.json, &text));
    return cli_print(text);
}
