/* jsonl.h - metrics.jsonl: one JSON object a line for every measurement of a run.
 *
 *     {"step":50,"epoch":0.4,"seconds":1.02,"split":"valid","train":0.31,"valid":0.28,"lr":0.003,...,"member":0}
 *
 * Each line is one write to a file opened for appending: a killed run loses at most a line that was being written, and the next
 * open removes such a torn line.  One caller. */
#ifndef STRETTO_REPORT_JSONL_H
#define STRETTO_REPORT_JSONL_H

#include "base/event.h"
#include "base/str.h"

struct jsonl {
    int fd;
    struct str line;
    char path[512];
    struct err_record failed; /* the first failure; jsonl_close reports it */
};

/* Where a resumed run goes on: later lines of the broken run are dropped, so that broken + resumed = unbroken. */
struct jsonl_at {
    i32 member;
    i64 step;
};

/* Opens or creates path.  at NULL = append to what is there.  E701/E702. */
err jsonl_open(struct jsonl *j, const char *path, const struct jsonl_at *at);
struct sink jsonl_sink(struct jsonl *j); /* writes STEP and VALID events; j must outlive it */
err jsonl_close(struct jsonl *j);        /* the first failure of any write, or 0; NULL-safe, twice is fine */

#endif
