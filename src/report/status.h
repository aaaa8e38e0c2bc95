/* status.h - status records: one small file per rank that says what the rank is doing, for readers outside of the run.
 *
 *     rank (events) --status_sink-->  RUN/status/rank-3.json  --status_read-->  `stretto top`, the supervisor, messages of E801
 *
 *     {"rank":3,"world":4,"host":"b","pid":77,"member":0,"members":2,"step":812,"steps":3000,"phase":"train",
 *      "windows_per_s":1.2e+03,"share":0.69,"period":1,"time":1763800000.25,"exit":-1}
 *
 * A record is replaced by rename, at most once a second during steps; a change of phase is written at once unless the last
 * record is younger than 0.1 s. Write errors are ignored: nothing depends on a record. Records outlive their ranks, so that the
 * last activity of a hung or dead rank is known. */
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
    f64 share;  /* fraction of the batch on this rank; 0 = unknown */
    f64 period; /* usual interval between records in seconds */
    f64 time;   /* seconds since 1970 */
    i32 exit;   /* exit status, -1 = still running */
};

/* The writer of one rank; {0} writes nothing. */
struct status {
    struct status_record now;
    char path[STATUS_PATH], tmp[STATUS_PATH + 8];
    f64 wrote; /* time of the last record, and of the last phase change */
    char told[STATUS_PHASE];
    bool open;
};

/* Creates RUN/status and the first record, phase "data". Rank 0 removes records of ranks that this run does not have. */
void status_open(struct status *s, const char *run_dir, i32 rank, i32 world);
struct sink status_sink(struct status *s);
/* Writes the last record: "done", "stopped", "unfinished" (at a time limit), "failed", or "differs" (E804: a restart would fail
 * the same way), with the exit status. Only the first call counts. status_failed: derives both from an error. */
void status_end(struct status *s, const char *phase, i32 exit_status);
void status_failed(struct status *s, err e);

/* Reads the record of one rank; false if there is none. */
bool status_read(const char *run_dir, i32 rank, struct status_record *out);
/* Reads all records in order of rank; *n <= STATUS_MOST. */
void status_read_all(const char *run_dir, struct status_record *out, i32 *n);

/* True if a rank has not reported for 10 s or three times its usual interval, whichever is longer; false for ranks that ended. */
bool status_is_silent(const struct status_record *r, f64 now);

/* For `stretto top`: a plain table, or one JSON object without newline. */
void status_table(const struct status_record *r, i32 n, f64 now, struct str *out);
void status_json(const struct status_record *r, i32 n, f64 now, bool finished, struct str *out);

#endif
