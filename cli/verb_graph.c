/* verb_graph.c - `graph`: the nodes of an edge list ranked or grouped. */
#include <string.h>

#include "base/file.h"
#include "cli.h"

static stretto_err show(struct cli *c, const char *out, char *text) {
    if (c->silent) {
        stretto_text_free(text);
        return 0;
    }
    TRY(cli_print(text));
    if (c->o.json) fputc('\n', stdout);
    if (strcmp(out, "-") != 0 && !c->o.quiet) fprintf(stderr, "table in %s\n", out);
    return 0;
}

stretto_err cmd_graph(struct cli *c) {
    const char *out = cli_out(c, "-");
    char *text = NULL;
    if (c->o.json && strcmp(out, "-") == 0)
        return FAIL_AT(E106, "--json", "--json -o FILE", "the summary needs --out, or the table would stand in the same place");
    const stretto_err e = stretto_graph(c->config, c->args.arg[0], c->args.arg[1], out, cli_on_event, c, c->o.json, &text);
    console_close(&c->console);
    TRY(e);
    TRY(show(c, out, text));
    if (e == STRETTO_STOP_TIME)
        return FAIL_AT(E807, NULL, "--time-limit 0", "unfinished: --time-limit %s has passed; the table is what was reached",
                       stretto_config_get(c->config, "time-limit"));
    return 0;
}
