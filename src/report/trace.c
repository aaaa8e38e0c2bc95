/* trace.c - spans as Chrome Trace Event JSON. */
#include "report/trace.h"

#include <stdio.h>
#include <string.h>

#include "report/text.h"

/* Index of the lane of s among the n known ones, each given by its first span; n if it is new. */
static i32 lane_of(const struct span *const *lane, i32 n, const struct span *s) {
    for (i32 i = 0; i < n; i++)
        if (lane[i]->rank == s->rank && strcmp(lane[i]->lane, s->lane) == 0) return i;
    return n;
}

/* Names of the lanes: {"name":"thread_name","ph":"M",...} */
static void name_lane(struct str *b, const struct span *l, i32 tid) {
    str_addf(b, "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"args\":{\"name\":", l->rank, tid);
    text_json(b, l->lane);
    str_addf(b, "}},\n{\"name\":\"thread_sort_index\",\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"args\":{\"sort_index\":%d}},\n",
             l->rank, tid, tid);
}

static void add_span(struct str *b, const struct span *s, i32 tid) {
    char kind[64];
    snprintf(kind, sizeof kind, "%.*s", (int)strcspn(s->name, " "), s->name);
    str_add(b, "{\"name\":");
    text_json(b, s->name);
    str_add(b, ",\"cat\":");
    text_json(b, kind);
    str_addf(b, ",\"ph\":\"X\",\"ts\":%s,\"dur\":%s,\"pid\":%d,\"tid\":%d}", text_fixed(s->t0 * 1e6, 3).s,
             text_fixed(dmax(0, s->t1 - s->t0) * 1e6, 3).s, s->rank, tid);
}

void trace_json(struct str *b, const struct span *span, i64 n) {
    enum { LANES = 1024 };
    const struct span *lane[LANES];
    i32 lanes = 0;
    str_add(b, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
    for (i64 i = 0; i < n; i++) {
        i32 l = imin(lane_of(lane, lanes, &span[i]), LANES - 1);
        if (l == lanes) {
            lane[lanes++] = &span[i];
            name_lane(b, &span[i], l);
        }
        add_span(b, &span[i], l);
        str_add(b, i + 1 < n ? ",\n" : "\n");
    }
    str_add(b, "]}\n");
}
