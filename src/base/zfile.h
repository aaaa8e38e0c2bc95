/* zfile.h - files packed with gzip or zstd, recognised by their first bytes, unpacked whole into memory. */
#ifndef STRETTO_BASE_ZFILE_H
#define STRETTO_BASE_ZFILE_H

#include "base/err.h"

enum zkind { Z_PLAIN, Z_GZIP, Z_ZSTD };

enum zkind zfile_kind(const void *head, i64 n); /* from the first bytes (4 are enough) */

/* The unpacked bytes plus a NUL that *size does not count; a plain file is loaded as it is.  The caller frees *data with
 * mem_free. E202 when the packed data are damaged or cut off, E701, E601. */
err zfile_load(const char *path, char **data, i64 *size);

#endif
