/* trace.h - spans (name, lane, start, end) and their export as a Chrome trace (Perfetto, chrome://tracing). */
#ifndef STRETTO_REPORT_TRACE_H
#define STRETTO_REPORT_TRACE_H

#include "base/str.h"

struct span {
    const char *lane; /* "worker 0"; spans of one lane do not overlap */
    const char *name; /* "fwd lstm.0 b[0,32)"; the first word is its kind and colour */
    f64 t0, t1;       /* seconds since a common start */
    i32 rank;         /* process, 0 if there is only one */
};

/* The whole file: {"traceEvents":[...]}; times in microseconds, pid = rank, tid = lane in order of appearance. */
void trace_json(struct str *b, const struct span *span, i64 n);

#endif
