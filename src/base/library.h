/* library.h - functions of a library that was opened with dlopen. */
#ifndef STRETTO_BASE_LIBRARY_H
#define STRETTO_BASE_LIBRARY_H

#include "base/bits.h"

/* Stores the function of this name in the function pointer at `call`, of `size` bytes; false = the library has none. */
bool library_find(void *library, const char *symbol, void *call, size_t size);

#endif
