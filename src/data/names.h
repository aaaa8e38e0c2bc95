/* names.h - names of columns: in a file, and in comma-separated lists on the command line. */
#ifndef STRETTO_DATA_NAMES_H
#define STRETTO_DATA_NAMES_H

#include "base/arena.h"
#include "data/vocab.h"

/* Next name of a comma-separated list (may be NULL), trimmed; advances *list; false at the end. */
bool name_next(const char **list, char name[256]);

/* True if the list (may be NULL) has this name. */
bool name_listed(const char *list, const char *wanted);

/* Index of a column by name, else by its number from 1 or "last", else by its name in another case if only one has it; or -1. */
i32 name_find(const char *const *names, i32 n, const char *wanted);
err name_need(const char *file, const char *const *names, i32 n, const char *wanted, const char *flag, i32 *out); /* E102 */
/* The name of column `at` of a file: text, with a number behind it if an earlier column has it.  index: the names so far. */
err name_new(struct vocab *index, struct arena *a, i32 at, const char *text, const char **out);
void name_list(const char *const *names, i32 n, char *to, size_t size); /* "a, b, c" cut with "... (n in all)" */

#endif
