/* fuzz_trials.c - RUN/trials.jsonl of a search: any bytes are read or refused; what is read can be scheduled on. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/mem.h"
#include "search/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool all_vary(const void *self, enum opt_id id) {
    (void)self;
    (void)id;
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char about[] = "{\"data\":\"9f\",\"seed\":1}";
    struct options o;
    struct search s = {.most = 6};
    struct record r = {.fd = -1};
    struct search_job job[SEARCH_JOBS];
    i32 n;
    if (opt_defaults(&o, NULL) < 0) return 0;
    space_make(&o, all_vary, NULL, 9, &s.space);
    ladder_make(4, 2, true, &s.ladder);
    if (record_read((const char *)data, size, "trials.jsonl", about, &s, &r) >= 0 && search_next(&s, 8, job, &n) >= 0) {
        for (i32 i = 0; i < r.n && s.n > 0; i++) {
            const struct record_line *l = &r.line[i];
            struct trial *t = &s.trial[l->trial % s.n];
            t->at = l->at;
            t->failed = l->failed;
            memcpy(t->error[l->fit], l->error, sizeof l->error);
            t->done = l->fit + 1;
        }
        struct search_choice c;
        f64 share[SPACE_MOST];
        search_choose(&s, &c);
        search_importance(&s, share);
        if (search_next(&s, 8, job, &n) < 0) n = 0;
    }
    search_free(&s);
    record_close(&r);
    opt_free(&o);
    return 0;
}
