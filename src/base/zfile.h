/* zfile.h - loads files compressed with gzip or zstd, recognized by their magic bytes, whole into memory; zstd in memory. */
#ifndef STRETTO_BASE_ZFILE_H
#define STRETTO_BASE_ZFILE_H

#include "base/err.h"

enum zkind { Z_PLAIN, Z_GZIP, Z_ZSTD };

enum zkind zfile_kind(const void *head, i64 n); /* from the first 4 bytes */

/* Returns the decompressed bytes plus a NUL that *size does not count; loads a plain file as it is. The caller frees *data with
 * mem_free. E202 if the data are damaged or truncated, E701, E601. */
err zfile_load(const char *path, char **data, i64 *size);

/* The first bytes of a file, decompressed where it is compressed: up to n; *got = their number, fewer where the file ends or is
 * damaged.  E7xx as file_open. */
err zfile_head(const char *path, void *to, i64 n, i64 *got);

/* Decompresses zstd frames that hold exactly `size` bytes; false if they are damaged or hold another number. */
bool zfile_unpack(const void *from, i64 n, void *to, i64 size);
bool zfile_unpack_gzip(const void *from, i64 n, void *to, i64 size); /* the same for gzip members */

#endif
