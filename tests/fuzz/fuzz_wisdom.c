/* fuzz_wisdom.c - any text as a wisdom file: damaged lines are skipped, and the accepted part prints to a text that reads
 * without damage and prints to itself. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "tune/wisdom.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

#define MUST(condition)            \
    do {                           \
        if (!(condition)) abort(); \
    } while (0)

/* Prints w and reads that into `again`. */
static void again_from(const struct wisdom *w, struct wisdom *again, struct str *text) {
    wisdom_print(w, text);
    MUST(str_ok(text) == 0);
    MUST(wisdom_read(again, text->s, text->len) == 0);
    MUST(again->n == w->n && again->damage[0] == 0);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size) {
    struct wisdom a = {0}, b = {0}, c = {0};
    struct str ta = {0}, tb = {0}, tc = {0};
    MUST(wisdom_read(&a, (const char *)data, size) == 0);
    again_from(&a, &b, &ta);
    again_from(&b, &c, &tb); /* 999.96us is printed as 1000us, then read and printed as 1ms: stable after one more round */
    wisdom_print(&c, &tc);
    MUST(strcmp(str_text(&tb), str_text(&tc)) == 0);
    for (i32 i = 0; i < a.n; i++) MUST(wisdom_find(&b, &a.entry[i].key) == &b.entry[i]);
    str_free(&ta);
    str_free(&tb);
    str_free(&tc);
    wisdom_close(&a);
    wisdom_close(&b);
    wisdom_close(&c);
    return 0;
}
