/* kind.c - see kind.h. */
#include "base/kind.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

enum { HEAD = 64 };

err kind_replaces(const char *path, const char *option, const char *head, const char *what) {
    char found[HEAD] = "", fix[HEAD];
    struct stat st;
    FILE *f = stat(path, &st) == 0 && S_ISREG(st.st_mode) ? fopen(path, "re") : NULL;
    if (!f) return 0; /* nothing to lose, or what cannot be read cannot be judged: writing says why */
    const size_t n = fread(found, 1, strlen(head), f);
    fclose(f);
    if (n == 0 || (n == strlen(head) && strncasecmp(found, head, n) == 0)) return 0;
    snprintf(fix, sizeof fix, "%s OTHER", option);
    return FAIL_AT(E702, path, fix, "this file is there and is not %s: it would be lost", what);
}
