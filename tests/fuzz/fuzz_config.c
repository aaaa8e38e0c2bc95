/* fuzz_config.c - any bytes as a config file: an error with a place, or values whose dump loads as the same values. */
#include <stdlib.h>
#include <string.h>

#include "api/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Options that no path makes relative: what was loaded from a dump must equal what was dumped. */
static void same(const struct options *a, const struct options *b) {
    for (i32 i = 0; i < OPT_COUNT; i++)
        if (strcmp(a->meta[i].text, b->meta[i].text) != 0) abort();
}

static void reload(const struct options *o, void (*dump)(const struct options *, u32, struct str *)) {
    struct options again;
    struct str text = {0};
    dump(o, ~0u, &text);
    if (opt_defaults(&again, NULL) < 0) abort();
    if (config_parse(str_text(&text), text.len, "again", &again) < 0) abort();
    same(o, &again);
    opt_free(&again);
    str_free(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct options o;
    if (opt_defaults(&o, NULL) < 0) abort();
    err e = config_parse((const char *)data, size, "fuzz.yaml", &o);
    if (e < 0 && (err_last()->code != -e || !err_last()->text[0] || !err_last()->where[0])) abort();
    if (e >= 0) {
        reload(&o, opt_dump);
        reload(&o, opt_dump_json);
    }
    opt_free(&o);
    return 0;
}
