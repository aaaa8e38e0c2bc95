/* verb_gpuload.c - `gpuload`: how busy this node's GPUs are, told to Slurm as the weight of the node. */
#include "cli.h"

stretto_err cmd_gpuload(struct cli *c) {
    char *text = NULL;
    TRY(stretto_gpuload(c->config, c->o.json, &text));
    return cli_print(text);
}
