/* names.h - comma-separated lists of column names, as given on the command line. */
#ifndef STRETTO_DATA_NAMES_H
#define STRETTO_DATA_NAMES_H

#include "base/err.h"

/* Next name of a comma-separated list (may be NULL), trimmed; advances *list; false at the end. */
bool name_next(const char **list, char name[256]);

/* Index of a column by name, else by its number from 1 or "last", else by its name in another case if only one has it; or -1. */
i32 name_find(const char *const *names, i32 n, const char *wanted);
err name_need(const char *file, const char *const *names, i32 n, const char *wanted, const char *flag, i32 *out); /* E102 */
void name_list(const char *const *names, i32 n, char *to, size_t size); /* "a, b, c" cut with "... (n in all)" */

#endif
