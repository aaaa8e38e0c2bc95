/* first_bytes.h - files that are no text, told by their first bytes: models, archives, tables of other programs, pictures. */
#ifndef STRETTO_DATA_FIRST_BYTES_H
#define STRETTO_DATA_FIRST_BYTES_H

#include "base/err.h"

enum { FIRST_BYTES = 16 }; /* as many tell all of them */

/* E202 where head [n], the first bytes of the file `name`, belong to such a file; want: what it should be ("a text table"); fix:
 * the remedy where it is no model ("write the data as CSV"). */
err first_bytes_check(const char *name, const char *head, i64 n, const char *want, const char *fix);

#endif
