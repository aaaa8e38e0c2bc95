/* unfinished.c - see unfinished.h. A slot holds the name of a file that is being written, or NULL. */
#include "base/unfinished.h"

#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

enum { MOST = 32 };

static const char *_Atomic slot[MOST];

void unfinished_add(const char *tmp) {
    for (int i = 0; i < MOST; i++) {
        const char *empty = NULL;
        if (atomic_compare_exchange_strong(&slot[i], &empty, tmp)) return;
    }
}

void unfinished_done(const char *tmp) {
    for (int i = 0; tmp && i < MOST; i++) {
        const char *mine = tmp;
        if (atomic_compare_exchange_strong(&slot[i], &mine, NULL)) return;
    }
}

void unfinished_remove(void) {
    for (int i = 0; i < MOST; i++) {
        const char *tmp = atomic_load(&slot[i]);
        if (tmp) unlink(tmp);
    }
}
