/* verb_doctor.c - `doctor`: what stops or slows a run on this host, or on every host of a launcher. */
#include "cli.h"

stretto_err cmd_doctor(struct cli *c) {
    char *text = NULL;
    stretto_err e = stretto_doctor(c->config, c->o.json, &text);
    if (!text) return e;
    c->told = e < 0; /* by its lines */
    stretto_err printed = cli_print(text);
    return e < 0 ? e : printed;
}
