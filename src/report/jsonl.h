/* jsonl.h - metrics.jsonl: one JSON object per line for every measurement of a run.
 *
 *     {"step":50,"epoch":0.4,"seconds":1.02,"split":"valid","train":0.31,"valid":0.28,"lr":0.003,...,"member":0}
 *
 * Each line is one write to a file opened for appending, so a killed run loses at most an incomplete line.
 *
 * Lines are ordered by refit, member, rollbacks, step. A resumed run (EVENT_BEGIN) removes the lines after its starting point
 * and an incomplete one, so interrupted + resumed equals uninterrupted. The file is then replaced through a temporary name: a
 * reader sees the old or the new version. Not thread-safe. */
#ifndef STRETTO_REPORT_JSONL_H
#define STRETTO_REPORT_JSONL_H

#include "base/event.h"
#include "base/str.h"

enum { JSONL_PATH = 4300 };

struct jsonl {
    int fd;
    struct str line;
    char path[JSONL_PATH];
    struct err_record failed; /* the first failure; jsonl_close reports it */
};

err jsonl_open(struct jsonl *j, const char *path); /* opens for appending, or creates it. E702 */
struct sink jsonl_sink(struct jsonl *j); /* writes STEP and VALID events; j must outlive it */
err jsonl_close(struct jsonl *j);        /* the first write error, or 0; NULL is allowed, may be called twice */

#endif
