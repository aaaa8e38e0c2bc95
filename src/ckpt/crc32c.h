/* crc32c.h - the sum (Castagnoli) by which a reader of a checkpoint knows that it has the bytes that were written. */
#ifndef STRETTO_CKPT_CRC32C_H
#define STRETTO_CKPT_CRC32C_H

#include "base/file.h"

/* Of n more bytes after those whose sum is `before`; 0 to begin with. */
u32 crc32c(u32 before, const void *p, i64 n);
/* Of an open file, from its begin to the size it had. */
err crc32c_file(const struct file_in *f, u32 *crc);

#endif
