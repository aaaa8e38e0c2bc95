/* crc32c.h - CRC-32C (Castagnoli), the checksum of checkpoints. */
#ifndef STRETTO_CKPT_CRC32C_H
#define STRETTO_CKPT_CRC32C_H

#include "base/file.h"

/* Checksum of n more bytes after those with checksum `before`; 0 to start. */
u32 crc32c(u32 before, const void *p, i64 n);
/* Checksum of an open file, from its start to the size at open time. */
err crc32c_file(const struct file_in *f, u32 *crc);

#endif
