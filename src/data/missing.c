/* missing.c - see missing.h. */
#include "data/missing.h"

#include <string.h>

#include "base/str.h"

err missing_add(struct missing *m, struct arena *a, const char *list) {
    char word[256];
    f64 v;
    while (list && *list && str_list_next(&list, word, sizeof word)) {
        const i64 n = (i64)strlen(word);
        if (n == 0) continue;
        if (m->nword == MISSING_WORDS) return FAIL(E103, "--na: at most %d words can mean missing", MISSING_WORDS);
        m->first[(u8)word[0]] = true;
        m->word[m->nword].n = n;
        TRY(arena_keep(a, &m->word[m->nword++].s, word));
        if (m->nnumber < MISSING_NUMBERS && str_to_f64(word, (size_t)n, '.', &v) && v == v) m->number[m->nnumber++] = v;
    }
    return 0;
}

bool missing_word(const struct missing *m, const char *s, i64 n) {
    if (n == 0) return true;
    if (!m->first[(u8)s[0]]) return false;
    for (i32 i = 0; i < m->nword; i++)
        if (m->word[i].n == n && !memcmp(m->word[i].s, s, (size_t)n)) return true;
    return false;
}
