/* cache.h - a parsed table as a file that is mapped, not read; table_write_cache of table.h makes one.
 *
 *     "STRTABL1" | u64 bytes of the header | JSON header | 64-byte aligned columns ... | end
 *
 * The header holds names, types, words and, for each column, place and size; and a hash of everything behind it. */
#ifndef STRETTO_DATA_CACHE_H
#define STRETTO_DATA_CACHE_H

#include "data/table.h"

bool cache_is(const char *path); /* does it begin with the magic? false also when it cannot be read */
err cache_read(const char *path, struct table **out);

#endif
