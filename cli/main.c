/* main.c - the program `stretto`: reads the command line, runs a verb, shows errors, gives the exit status. */
#include <signal.h>
#include <stdio.h>

#include "api/lists.h"
#include "base/input.h"
#include "cli.h"
#include "help.h"
#include "launch/launch.h"
#include "signals.h"

static verb_fn *const verbs[] = {
#define VERB(name, least, most, args, help) cmd_##name,
#include "opt/verbs.def"
#undef VERB
};

/* A launcher gives standard input to one rank. */
static stretto_err check_input(const struct cli *c) {
    for (i32 i = 0; i < c->args.narg && c->among; i++)
        if (input_is(c->args.arg[i]))
            return FAIL_AT(E106, "-", "the name of a file that every rank can read",
                           "standard input reaches one rank, and each of the %d ranks reads the data", stretto_ranks());
    return 0;
}

static stretto_err run(struct cli *c, int argc, char **argv) {
    TRY(opt_defaults(&c->o, api_lists()));
    TRY(args_parse(argc, argv, &c->o, &c->args));
    if (c->args.version) return cmd_version(c);
    if (c->args.verb < 0) {
        help_overview(stdout);
        return 0;
    }
    if (c->args.help) {
        help_verb(stdout, (enum verb)c->args.verb, api_lists());
        fflush(stdout);
        return c->args.missing ? args_missing(&c->args) : 0;
    }
    TRY(cli_config(c));
    for (i32 i = 0; i < OPT_COUNT && c->o.config && *c->o.config; i++)
        if (i != OPT_config) TRY(cli_take(c, (enum opt_id)i));
    bool alone = c->o.ranks == 1 && c->o.meta[OPT_ranks].rank >= OPT_RANK_FLAG;
    c->among = stretto_ranks() > 1 && !alone;
    c->silent = c->among && stretto_rank() > 0; /* only rank 0 prints */
    c->quiet = c->o.quiet;
    if (c->silent) c->o.quiet = true;
    TRY(cli_outputs(c));
    TRY(check_input(c));
    cli_open_console(c);
    return verbs[c->args.verb](c);
}

int main(int argc, char **argv) {
    struct cli c = {.args.verb = -1};
    launch_join();
    cli_end_cleanly();
    signal(SIGXFSZ, SIG_IGN); /* a limit on file sizes is an error of that output, E703 */
    stretto_err e = run(&c, argc, argv);
    console_close(&c.console);
    if (e >= 0 && (fflush(stdout) != 0 || ferror(stdout))) e = FAIL(E703, "cannot write to standard output");
    if (e < 0) cli_show_error(&c);
    int status = e >= 0 && c.status ? c.status : stretto_exit_status(e);
    stretto_config_free(c.config);
    opt_free(&c.o);
    return status;
}
