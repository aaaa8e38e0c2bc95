/* verb_help.c - `help`, `explain` and `version`. */
#include <string.h>

#include "api/lists.h"
#include "cli.h"
#include "gen.h"
#include "help.h"

stretto_err cmd_help(struct cli *c) {
    if (c->o.man) {
        gen_man(stdout, api_lists());
        return 0;
    }
    if (strcmp(c->o.completion, "none") != 0) return gen_completion(stdout, c->o.completion, api_lists());
    if (c->args.narg == 0) {
        help_overview(stdout);
        return 0;
    }
    return help_topic(stdout, c->args.arg[0], api_lists());
}

stretto_err cmd_explain(struct cli *c) { return help_explain(stdout, c->args.arg[0]); }

stretto_err cmd_version(struct cli *c) {
    char *text = NULL;
    if (!c->o.json) {
        printf("stretto %s\n", stretto_version());
        return 0;
    }
    TRY(stretto_build_info(&text));
    TRY(cli_print(text));
    fputc('\n', stdout);
    return 0;
}
