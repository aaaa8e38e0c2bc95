/* jsonl.h - metrics.jsonl: one JSON object a line for every measurement of a run.
 *
 *     {"step":50,"epoch":0.4,"seconds":1.02,"split":"valid","train":0.31,"valid":0.28,"lr":0.003,...,"member":0}
 *
 * Each line is one write to a file opened for appending: a killed run loses at most a line that was being written.
 *
 *     lines of a run, rising:   refit, member, rollbacks, step        a run goes on behind one of them (EVENT_BEGIN): those after
 *                                                                     it go, and a torn one, so that broken + resumed = unbroken
 *
 * The file is replaced then, by way of a temporary name: whoever reads it sees the old one or the new one.  One caller. */
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

err jsonl_open(struct jsonl *j, const char *path); /* opens it, to append, or creates it.  E702 */
struct sink jsonl_sink(struct jsonl *j); /* writes STEP and VALID events; j must outlive it */
err jsonl_close(struct jsonl *j);        /* the first failure of any write, or 0; NULL-safe, twice is fine */

#endif
