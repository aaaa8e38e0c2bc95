/* signals.h - signals that ask a command to stop: SIGINT, SIGTERM, SIGUSR1, SIGHUP, SIGXCPU. */
#ifndef STRETTO_CLI_SIGNALS_H
#define STRETTO_CLI_SIGNALS_H

#include "cli.h"

/* Without cli_catch_signals: a signal removes the temporary files that the process has open, then ends it as usual. */
void cli_end_cleanly(void);
/* Calls on_stop in the signal handler, at each signal; a second Ctrl-C ends the process with status 130. */
void cli_catch_signals(const struct cli *c, void (*on_stop)(bool first));
bool cli_stop_requested(void);
/* For on_stop: writes a text to stderr unless this rank is silent. */
void cli_say_stop(const char *text);

#endif
