/* verb_node.c - `doctor` and `gpuload`: the state of this node, or of all nodes of a launcher. */
#include "cli.h"

stretto_err cmd_doctor(struct cli *c) {
    char *text = NULL;
    stretto_err e = stretto_doctor(c->config, c->o.json, &text);
    if (!text) return e;
    c->shown = e < 0; /* the printed text contains the error */
    stretto_err printed = cli_print(text);
    return e < 0 ? e : printed;
}

stretto_err cmd_gpuload(struct cli *c) {
    char *text = NULL;
    TRY(stretto_gpuload(c->config, c->o.json, &text));
    return cli_print(text);
}
