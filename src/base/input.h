/* input.h - names that stand for a file to read: "-" is standard input, "memory:1:data frame" a table in memory (data/frame.h).
 *
 *     cat load.csv | stretto check -         pipe --copied once--> memory of the process --opened any number of times-->
 *     stretto check - < load.csv             the file itself, opened again
 *
 * Readers look at the first bytes of standard input, then read it, and `check` reads it several times; so a pipe is kept. */
#ifndef STRETTO_BASE_INPUT_H
#define STRETTO_BASE_INPUT_H

#include "base/err.h"

#define INPUT_MEMORY "memory"
bool input_is(const char *path);           /* true for "-" */
bool input_is_memory(const char *path);    /* true for "memory" and "memory:NUMBER:LABEL" */
const char *input_label(const char *path); /* the path in messages: "standard input" for "-", the label of a table in memory */
/* A descriptor of standard input from its first byte, with a position of its own; the caller closes it.  Threads may call it.
 * E701 if it is closed or a terminal, E601 if there is no memory for it. */
err input_open(int *fd);

#endif
