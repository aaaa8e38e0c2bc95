/* crc32c.h - CRC-32C (Castagnoli), the checksum of checkpoints. */
#ifndef STRETTO_CKPT_CRC32C_H
#define STRETTO_CKPT_CRC32C_H

#include "base/file.h"

/* Checksum of n more bytes after those with checksum `before`; 0 to start. */
u32 crc32c(u32 before, const void *p, i64 n);
/* Size and checksum of a file; E701 if it cannot be read. */
err crc32c_file(const char *path, i64 *bytes, u32 *crc);

#endif
