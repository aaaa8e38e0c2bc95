/* fuzz_options.c - any lines as a command line: an error, or values that are themselves accepted again and survive a copy. */
#include <stdlib.h>
#include <string.h>

#include "args.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { WORDS = 64, BYTES = 4096 };

static const struct opt_list lists[] = {{"cells", "lstm gru rnn"},
                                       {"heads", "direct parallel autoregressive"},
                                       {"losses", "mse"}, {0}};

static void values_are_stable(const struct options *o) {
    struct options copy;
    struct str json = {0};
    if (opt_copy(&copy, o) < 0) abort();
    for (i32 i = 0; i < OPT_COUNT; i++) {
        if (strcmp(copy.meta[i].text, o->meta[i].text) != 0) abort();
        if (opt_set_id(&copy, (enum opt_id)i, o->meta[i].text, &OPT_API) < 0) abort();
        if (strcmp(copy.meta[i].text, o->meta[i].text) != 0) abort();
    }
    opt_dump_json(&copy, ~0u, &json);
    str_free(&json);
    opt_free(&copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char text[BYTES];
    char *argv[WORDS] = {"stretto"};
    i32 argc = 1;
    size_t n = size < BYTES - 1 ? size : BYTES - 1;
    memcpy(text, data, n);
    text[n] = 0;
    for (char *s = text; *s && argc < WORDS;) { /* a word a line */
        argv[argc++] = s;
        s += strcspn(s, "\n");
        if (*s) *s++ = 0;
    }
    struct options o;
    struct args a;
    if (opt_defaults(&o, lists) < 0) abort();
    err e = args_parse(argc, argv, &o, &a);
    if (e < 0 && (err_last()->code != -e || !err_last()->text[0])) abort();
    if (e >= 0 && (a.narg < 0 || a.narg > ARGS_MAX)) abort();
    if (a.verb >= 0) values_are_stable(&o);
    opt_free(&o);
    return 0;
}
