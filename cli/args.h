/* args.h - the command line: verb, arguments, options.
 *
 *     stretto train load.csv --target ot --horizon=96 -o m --no-guard
 *             verb  arg[0]   ------------- options --------------------> struct options, rank flag
 *
 * Everything after "--" is an argument.  Options are written out in full; the nearest name is shown for one that is unknown. */
#ifndef STRETTO_CLI_ARGS_H
#define STRETTO_CLI_ARGS_H

#include "opt/opt.h"

enum { ARGS_MAX = 4 };

struct args {
    i32 verb;                  /* enum verb, or -1: no verb, show the overview */
    const char *arg[ARGS_MAX]; /* positional arguments, borrowed from argv */
    i32 narg;
    char *const *rest;         /* the arguments after "--", for verbs that pass them on; NULL = no "--" */
    i32 nrest;
    bool help;    /* --help, or a verb without arguments that needs some */
    bool missing; /* .. which is an error: args_missing after the help */
    bool version; /* --version instead of a verb */
};

/* Sets options of o (from opt_defaults) with the rank of flags.  Errors: E101, E103, E105, with a fix. */
err args_parse(i32 argc, char *const *argv, struct options *o, struct args *out);

/* E105: the verb lacks an argument, with the line that has it. */
err args_missing(const struct args *a);

#endif
