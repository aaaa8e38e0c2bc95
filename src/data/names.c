/* names.c - see names.h. */
#include "data/names.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"

bool name_next(const char **list, char name[256]) {
    while (*list && str_list_next(list, name, 256))
        if (name[0]) return true;
    return false;
}

bool name_listed(const char *list, const char *wanted) {
    char name[256];
    while (name_next(&list, name))
        if (!strcmp(name, wanted)) return true;
    return false;
}

i32 name_find(const char *const *names, i32 n, const char *wanted) {
    for (i32 i = 0; i < n; i++)
        if (!strcmp(names[i], wanted)) return i;
    i64 number;
    if (!strcmp(wanted, "last")) return n - 1;
    if (str_to_i64(wanted, strlen(wanted), &number) && number >= 1 && number <= n) return (i32)number - 1;
    i32 found = -1, alike = 0;
    for (i32 i = 0; i < n; i++)
        if (!strcasecmp(names[i], wanted)) found = i, alike++;
    return alike == 1 ? found : -1;
}

err name_new(struct vocab *index, struct arena *a, i32 at, const char *text, const char **out) {
    char again[320];
    i32 code;
    TRY(vocab_code(index, text, (i64)strlen(text), &code));
    const bool twice = code < at;
    for (i32 k = at + 1; code < at; k++) {
        snprintf(again, sizeof again, "%.250s.%d", text, k);
        TRY(vocab_code(index, again, (i64)strlen(again), &code));
    }
    return arena_keep(a, out, twice ? again : text);
}

void name_list(const char *const *names, i32 n, char *to, size_t size) {
    size_t fill = 0;
    to[0] = 0;
    for (i32 i = 0; i < n; i++) {
        size_t need = strlen(names[i]) + 2;
        if (fill + need + 24 > size) {
            snprintf(to + fill, size - fill, ", ... (%d in all)", n);
            return;
        }
        fill += (size_t)snprintf(to + fill, size - fill, "%s%s", i ? ", " : "", names[i]);
    }
}

err name_need(const char *file, const char *const *names, i32 n, const char *wanted, const char *flag, i32 *out) {
    *out = name_find(names, n, wanted);
    if (*out >= 0) return 0;
    char list[600], mean[300] = "";
    name_list(names, n, list, sizeof list);
    i32 near = str_nearest(wanted, names, n);
    if (near >= 0) snprintf(mean, sizeof mean, "   did you mean \"%.200s\"?", names[near]);
    return FAIL(E102, "%s has no column \"%s\" (given by %s)\ncolumns: %s%s", file, wanted, flag, list, mean);
}
