/* status.h - what each rank of a run is doing, one small file a rank, for whoever looks from outside.
 *
 *     rank (events) --status_sink-->  RUN/status/rank-3.json  --status_read-->  `stretto top`, the supervisor, messages of E801
 *
 *     {"rank":3,"world":4,"host":"b","pid":77,"member":0,"members":2,"step":812,"steps":3000,"phase":"train",
 *      "windows_per_s":1.2e+03,"share":0.69,"period":1,"time":1763800000.25,"exit":-1}
 *
 * A record is replaced by rename, while steps are done at most once a second; a change of phase is written at once unless the
 * last record is younger than a tenth of a second.  Nothing waits for it, nothing depends on it: what cannot be written is left
 * out.  Records outlive their ranks, so that a rank that hangs, or died, can still be asked what it did last. */
#ifndef STRETTO_REPORT_STATUS_H
#define STRETTO_REPORT_STATUS_H

#include "base/event.h"
#include "base/str.h"

enum { STATUS_PATH = 4200, STATUS_HOST = 64, STATUS_PHASE = 16, STATUS_MOST = 1024 };

/* A record, as written and as read. */
struct status_record {
    i32 rank, world, pid;
    char host[STATUS_HOST], phase[STATUS_PHASE];
    i32 member, members;
    i64 step, steps;
    f64 windows_per_s;
    f64 share;  /* of the rows of a batch that are its own; 0 = not told */
    f64 period; /* usual seconds from record to record */
    f64 time;   /* seconds since 1970 */
    i32 exit;   /* status with which it ended, -1 = it has not */
};

/* The writer of one rank; {0} writes nothing. */
struct status {
    struct status_record now;
    char path[STATUS_PATH], tmp[STATUS_PATH + 8];
    f64 wrote; /* clock of the last record, and its phase */
    char told[STATUS_PHASE];
    bool open;
};

/* Makes RUN/status, and the first record, of phase "data".  Rank 0 removes the records of ranks that this run does not have. */
void status_open(struct status *s, const char *run_dir, i32 rank, i32 world);
struct sink status_sink(struct status *s);
/* The last record: "done", "stopped", "failed", or "differs" (E804: to start again would end the same way), and the exit status.
 * The first call counts.  status_failed: by the error that it ended with. */
void status_end(struct status *s, const char *phase, i32 exit_status);
void status_failed(struct status *s, err e);

/* The record of one rank; false when there is none. */
bool status_read(const char *run_dir, i32 rank, struct status_record *out);
/* All of them in order of rank; *n of at most STATUS_MOST. */
void status_read_all(const char *run_dir, struct status_record *out, i32 *n);

/* Late: no word for 10 s, or three times its usual period, whichever is longer; ranks that ended are never late. */
bool status_is_silent(const struct status_record *r, f64 now);
f64 status_clock(void); /* seconds since 1970 */

/* For `stretto top`: a plain table, or one JSON object without newline. */
void status_table(const struct status_record *r, i32 n, f64 now, struct str *out);
void status_json(const struct status_record *r, i32 n, f64 now, bool finished, struct str *out);

#endif
