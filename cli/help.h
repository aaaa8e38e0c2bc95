/* help.h - overview, options, topics and error texts, from the tables. Everything prints to the FILE it is given. */
#ifndef STRETTO_CLI_HELP_H
#define STRETTO_CLI_HELP_H

#include <stdio.h>

#include "opt/opt.h"

void help_overview(FILE *f);                                               /* stretto: the verbs */
void help_verb(FILE *f, enum verb verb, const struct opt_list *lists);     /* usage and options in groups */
err help_topic(FILE *f, const char *topic, const struct opt_list *lists);  /* a topic or a verb; E101 with the nearest */
err help_explain(FILE *f, const char *code);                               /* "E204", "204", "W034"; E101 if unknown */

/* Shared with gen.c: the topics in order, NULL after the last; and the parts of an option's line. */
const char *help_topic_name(i32 index);
void help_flag(struct str *out, enum opt_id id, const struct opt_list *lists); /* "-o, --out FILE" */
void help_note(struct str *out, enum opt_id id, const struct opt_list *lists); /* "rows looked back on (1 to 9) [auto]" */

#endif
