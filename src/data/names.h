/* names.h - lists of column names as they are given on the command line: "a,b,c". */
#ifndef STRETTO_DATA_NAMES_H
#define STRETTO_DATA_NAMES_H

#include "base/err.h"

/* The next name of a comma-separated list (may be NULL), without spaces around it; false at the end.  *list moves on. */
bool name_next(const char **list, char name[256]);

/* A column by name; by its number from 1, or "last", where no column has that name. */
i32 name_find(const char *const *names, i32 n, const char *wanted);
err name_need(const char *file, const char *const *names, i32 n, const char *wanted, const char *flag, i32 *out); /* E102 */
void name_list(const char *const *names, i32 n, char *to, size_t size); /* "a, b, c" cut with "... (n in all)" */

#endif
