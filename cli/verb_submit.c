/* verb_submit.c - `submit`: who runs the command line behind "--". */
#include <string.h>

#include "cli.h"

stretto_err cmd_submit(struct cli *c) { return strcmp(c->o.on, "slurm") == 0 ? submit_slurm(c) : submit_local(c); }
