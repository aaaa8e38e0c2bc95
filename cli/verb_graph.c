/* verb_graph.c - `graph`: the nodes of an edge list ranked or grouped. */
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "signals.h"

static stretto_err show(struct cli *c, const char *out, char *text) {
    if (c->silent) {
        stretto_text_free(text);
        return 0;
    }
    TRY(cli_print(text));
    if (c->o.json) fputc('\n', stdout);
    if (c->o.quiet) return 0;
    if (*out && strcmp(out, "-") != 0) fprintf(stderr, "table in %s\n", out);
    if (c->o.plot && *c->o.plot) fprintf(stderr, "plot in %s\n", c->o.plot);
    return 0;
}

static void on_stop(bool first) {
    static const char text[] = "\nstopping after this iteration; Ctrl-C again stops at once\n";
    if (first && isatty(STDERR_FILENO)) cli_say_stop(text);
    stretto_graph_stop();
}

/* The results are there, but the iteration was ended before its end. */
static stretto_err need_end(const struct cli *c, stretto_err reason, const char *out) {
    const char *what = *out ? "the table" : "the summary";
    if (reason == STRETTO_STOP_TIME)
        return FAIL_AT(E807, NULL, "--time-limit 0", "unfinished: --time-limit %s has passed; %s is what was reached",
                       stretto_config_get(c->config, "time-limit"), what);
    if (reason == STRETTO_STOP_SIGNAL)
        return FAIL_AT(E806, NULL, "the same command again, which starts anew", "stopped as asked; %s is what was reached", what);
    return 0;
}

/* Without --out the table goes to stdout; where a number of first lines is asked for, they do. */
stretto_err cmd_graph(struct cli *c) {
    const char *out = cli_out(c, c->o.meta[OPT_top].rank >= OPT_RANK_FLAG ? "" : "-");
    char *text = NULL;
    if (c->o.json && strcmp(out, "-") == 0)
        return FAIL_AT(E106, "--json", "--json -o FILE   or   --json --top 10",
                       "the summary needs --out or --top, or the table would stand in the same place");
    cli_catch_signals(c, on_stop);
    const stretto_err e = stretto_graph(c->config, c->args.arg[0], c->args.arg[1], out, cli_on_event, c, c->o.json, &text);
    console_close(&c->console);
    TRY(e);
    TRY(show(c, out, text));
    return need_end(c, e, out);
}
