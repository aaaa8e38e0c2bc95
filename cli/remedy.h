/* remedy.h - fits the remedies of an error to the verb that failed. */
#ifndef STRETTO_CLI_REMEDY_H
#define STRETTO_CLI_REMEDY_H

#include "base/str.h"
#include "opt/opt.h"

/* Adds the remedies without those that name an option that resume, predict, eval, decode or export do not take; "a new run
 * with ..", "a model trained with .." if none is left. Those of other verbs stay as they are. */
void cli_fit_remedy(enum verb verb, const char *fix, struct str *out);

#endif
