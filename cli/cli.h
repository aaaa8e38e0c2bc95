/* cli.h - shared by the verbs: command line, output, one function cmd_VERB per verb of verbs.def. The command line is a
 * client of stretto.h; of the library's internals it uses only the option table (for help) and the progress line. */
#ifndef STRETTO_CLI_CLI_H
#define STRETTO_CLI_CLI_H

#include <stdio.h>

#include "args.h"
#include "report/console.h"
#include "stretto/stretto.h"

struct cli {
    struct args args;
    struct options o;          /* flags, and options of the config file without a flag */
    stretto_config *config;    /* the same flags, and the config file */
    struct console console;
    i32 status;                /* exit status of the job that submit waited for, if the verb itself succeeded */
    bool among;                /* one of several processes of a launcher that train together */
    bool silent;               /* rank > 0: prints nothing, until its first event (rank 0 has died) */
    bool quiet;                /* --quiet was given */
    bool shown;                 /* the error has been shown: main does not print it again */
};

typedef stretto_err verb_fn(struct cli *c);
#define VERB(name, least, most, args, help) verb_fn cmd_##name;
#include "opt/verbs.def"
#undef VERB

/* The library's config for the command line: the config file first, then every flag. */
stretto_err cli_config(struct cli *c);

/* Copies an option of the config into c->o, which the verbs read, unless a flag sets it. */
stretto_err cli_take(struct cli *c, enum opt_id id);

/* Shows the error now; main then does not show it again. */
void cli_show_error(struct cli *c);

/* The progress line, as --progress, --color and --quiet ask for it. */
void cli_open_console(struct cli *c);

/* Events of the library go to the progress line. */
void cli_on_event(void *cli, const stretto_event *e);

/* E702 if an output of the command line is a folder or an input file of the command. */
stretto_err cli_outputs(const struct cli *c);

/* Prints a text to stdout and frees it; returns 0, or E703 if stdout fails. */
stretto_err cli_print(char *text);

/* The same into the file of --out, if it is given. */
stretto_err cli_print_out(const struct cli *c, char *text);

/* The file of --out, or `otherwise`. */
const char *cli_out(const struct cli *c, const char *otherwise);

/* The model and the run folder that `train` writes: without -o the model is DATA without folder and extension, plus
 * ".model". */
enum { CLI_PATH = 4352 };
void cli_train_files(const struct args *a, const struct options *o, char model[CLI_PATH], char run_dir[CLI_PATH]);

/* `warning: ...` on stderr. */
void cli_warn(const struct cli *c, const char *fmt, ...) PRINTF_LIKE(2, 3);

#endif
