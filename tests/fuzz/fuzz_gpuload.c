/* fuzz_gpuload.c - any text as recorded GPU loads and as gpuload's state between calls: it is refused with its code, restarted,
 * or all numbers are in the range the program expects. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "launch/gpuload.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

static void in_range(bool good) {
    if (!good) abort();
}

static void record(const char *text, i64 n) {
    static const struct gpuload_rule rule = {.smooth = 60, .band = 0.05, .refresh = 600, .weight = 1, .span = 100};
    struct gpuload_record r;
    struct gpuload_state s = {0};
    struct str note = {0};
    err e = gpuload_record_parse("fuzz.csv", text, n, &r);
    in_range(e == 0 || e == -E822);
    for (i32 i = 0; e == 0 && i < r.n; i++) {
        in_range(r.sample[i].n >= 1 && r.sample[i].n == r.sample[0].n && (i == 0 || r.sample[i].time > r.sample[i - 1].time));
        gpuload_smooth(&s, &rule, &r.sample[i], r.source, &note);
        in_range(gpuload_level(&s) >= 0 && gpuload_level(&s) <= 1);
        if (gpuload_decide(&s, &rule) != GPULOAD_STAYS) gpuload_sent(&s, gpuload_weight(&rule, gpuload_level(&s)));
        in_range(s.weight >= 1 && s.weight <= 101);
    }
    in_range(*str_text(&note) == 0);
    str_free(&note);
    gpuload_record_free(&r);
}

static void state(const char *text, i64 n) {
    struct gpuload_state s;
    struct str note = {0};
    err e = gpuload_parse("fuzz.state", "node1", text, n, &s, &note);
    in_range(e == 0 || e == -E821);
    in_range(s.n >= 0 && s.n <= GPU_MOST && (s.n > 0 || !s.sent));
    for (i32 i = 0; i < s.n; i++) in_range(s.level[i] >= 0 && s.level[i] <= 1);
    str_free(&note);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size) {
    char *text = mem_alloc(size + 1);
    if (!text) return 0;
    memcpy(text, data, size);
    record(text, (i64)size);
    state(text, (i64)size);
    mem_free(text);
    return 0;
}
