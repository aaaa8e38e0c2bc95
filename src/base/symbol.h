/* symbol.h - name of the function at an address of this process, for stack traces. Reads the symbol tables of the loaded files,
 * so static functions have names too. Slow; for a stripped file returns its name and the offset. */
#ifndef STRETTO_BASE_SYMBOL_H
#define STRETTO_BASE_SYMBOL_H

#include "base/bits.h"

enum { SYMBOL = 128 };
void symbol_name(const void *address, char out[SYMBOL]); /* "walk_lane+0x1c2 stretto" */

#endif
