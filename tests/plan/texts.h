/* texts.h - plans as text, for their tests: recorded ones, and ones with a word changed.
 *
 * STRETTO_UPDATE=1 writes the recorded ones anew: look at the difference before it is committed. */
#ifndef STRETTO_TESTS_PLAN_TEXTS_H
#define STRETTO_TESTS_PLAN_TEXTS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "t.h"

#ifndef GOLDEN_DIR
#define GOLDEN_DIR "tests/plan/golden"
#endif

static inline void golden(const char *name, const struct str *got) {
    char path[256];
    static char want[64 << 10];
    T_OK(str_ok(got));
    snprintf(path, sizeof path, "%s/%s", GOLDEN_DIR, name);
    FILE *f = fopen(path, getenv("STRETTO_UPDATE") ? "wb" : "rb");
    if (!f) fail_msg("%s is missing (STRETTO_UPDATE=1 writes it)", path);
    if (getenv("STRETTO_UPDATE")) {
        assert_int_equal(fwrite(got->s, 1, got->len, f), got->len);
    } else {
        want[fread(want, 1, sizeof want - 1, f)] = 0;
        assert_string_equal(str_text(got), want);
    }
    fclose(f);
}

/* The first `old` of a text becomes `now`. */
static inline void replace(struct str *s, const char *old, const char *now) {
    struct str r = {0};
    const char *at = strstr(str_text(s), old);
    if (!at) fail_msg("the plan has no \"%s\"", old);
    str_addn(&r, s->s, (size_t)(at - s->s));
    str_add(&r, now);
    str_add(&r, at + strlen(old));
    str_free(s);
    *s = r;
}

#endif
