/* trace.c - spans as Chrome Trace Event JSON. */
#include "report/trace.h"

#include <string.h>

#include "base/mem.h"
#include "report/text.h"

struct lane {
    const char *name;
    i32 rank;
};

/* Index of the lane of s among the n known ones; n if it is new. */
static i32 lane_of(const struct lane *lane, i32 n, const struct span *s) {
    for (i32 i = 0; i < n; i++)
        if (lane[i].rank == s->rank && strcmp(lane[i].name, s->lane) == 0) return i;
    return n;
}

/* Names of the lanes: {"name":"thread_name","ph":"M",...} */
static void name_lane(struct str *b, const struct lane *l, i32 tid) {
    str_addf(b, "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"args\":{\"name\":", l->rank, tid);
    text_json(b, l->name);
    str_addf(b, "}},\n{\"name\":\"thread_sort_index\",\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"args\":{\"sort_index\":%d}},\n",
             l->rank, tid, tid);
}

static void add_span(struct str *b, const struct span *s, i32 tid) {
    size_t kind = strcspn(s->name, " ");
    str_add(b, "{\"name\":");
    text_json(b, s->name);
    str_add(b, ",\"cat\":");
    struct str cat = {0};
    str_addn(&cat, s->name, kind);
    text_json(b, str_text(&cat));
    b->failed = b->failed || cat.failed;
    str_free(&cat);
    str_add(b, ",\"ph\":\"X\",\"ts\":");
    text_fixed(b, s->t0 * 1e6, 3);
    str_add(b, ",\"dur\":");
    text_fixed(b, dmax(0, s->t1 - s->t0) * 1e6, 3);
    str_addf(b, ",\"pid\":%d,\"tid\":%d}", s->rank, tid);
}

void trace_json(struct str *b, const struct span *span, i64 n) {
    enum { LANES = 1024 };
    struct lane lane[LANES];
    i32 lanes = 0;
    str_add(b, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
    for (i64 i = 0; i < n; i++) {
        i32 l = imin(lane_of(lane, lanes, &span[i]), LANES - 1);
        if (l == lanes) {
            lane[lanes++] = (struct lane){span[i].lane, span[i].rank};
            name_lane(b, &lane[l], l);
        }
        add_span(b, &span[i], l);
        str_add(b, i + 1 < n ? ",\n" : "\n");
    }
    str_add(b, "]}\n");
}
