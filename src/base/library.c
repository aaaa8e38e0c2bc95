/* library.c - see library.h. */
#include "base/library.h"

#include <dlfcn.h>
#include <string.h>

bool library_find(void *library, const char *symbol, void *call, size_t size) {
    void *at = dlsym(library, symbol);
    if (at) memcpy(call, &at, size); /* POSIX allows an address of dlsym in a function pointer, ISO C has no conversion for it */
    return at != NULL;
}
