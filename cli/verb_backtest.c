/* verb_backtest.c - `backtest`: a recipe scored by rolling origin. */
#include "cli.h"

stretto_err cmd_backtest(struct cli *c) {
    stretto_data *d = NULL;
    char *text = NULL;
    stretto_err e = stretto_config_check(c->config);
    if (e >= 0) e = stretto_data_open(c->config, c->args.arg[0], &d);
    if (e >= 0 && !c->o.quiet) fprintf(stderr, "%s\n", stretto_data_summary(d));
    if (e >= 0) e = stretto_backtest(c->config, d, cli_on_event, c, c->o.json, &text);
    console_close(&c->console);
    if (e >= 0) e = cli_print(text);
    stretto_data_free(d);
    return e;
}
