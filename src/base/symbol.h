/* symbol.h - the name of the function at an address of this process, for people: from the symbol tables of the files it was
 * loaded from, so static functions have names too.  Slow (reads the file); a stripped file gives its name and the place in it. */
#ifndef STRETTO_BASE_SYMBOL_H
#define STRETTO_BASE_SYMBOL_H

#include "base/bits.h"

enum { SYMBOL = 128 };
void symbol_name(const void *address, char out[SYMBOL]); /* "walk_lane+0x1c2 stretto" */

#endif
