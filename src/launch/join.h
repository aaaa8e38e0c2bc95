/* join.h - the ranks of one job in several containers of a scheduler, started by the launch lines of MPICH's mpiexec.
 *
 *     container 0                                container 1
 *     member ---fork---> supervise (again after a loss)          member
 *       |                  | start: round 3, waits for all         |
 *       |                  | mpiexec -launcher manual: a line each |
 *     line 0 -> proxy -> ranks 0..k-1                            line 1 -> proxy -> ranks k..2k-1
 *
 * The members meet in a folder that all of them see, RUN/join/SESSION, or MODEL.run/join/SESSION in HDFS, whose files are
 * replaced whole:
 *
 *     hello-I     which process is member I: a container that the scheduler started again takes its place
 *     round       number of the attempt; R/node-I  member I is there, R/line-I  its launch line, R/exit-I  how its ranks ended
 *     R/stop      the ranks shall write a checkpoint and end
 *     end         exit status of the job: every member leaves
 *     why         the reason, where no rank was started
 *
 * No port is opened and no shell on another host is needed; a rank dies with its container.  A member that is lost ends the
 * round (E802 or a signal in the ranks), and the supervisor begins the next one as soon as all members are there again. */
#ifndef STRETTO_LAUNCH_JOIN_H
#define STRETTO_LAUNCH_JOIN_H

#include "launch/launch.h"

/* Exit statuses: of a job whose members never came together, worth another submission; of a member that gave its container
 * back; of an attempt whose members run different programs. */
enum { JOIN_INCOMPLETE = 74, JOIN_GIVEN_BACK = 73, JOIN_DIFFERS = 72 };
#define JOIN_PROGRAM "STRETTO_PROGRAM" /* in the environment of a member's ranks: the program on this host */

struct join {
    const char *session;   /* a name for this submission */
    i32 member, members;   /* 0 .. members - 1 */
    i32 ranks_per_member;
    f64 patience;          /* seconds in which all members must have come */
    bool again;            /* the scheduler starts a container again that it has taken back: a signal does not end the job */
    /* called before the job is seen to have ended; NULL = nothing */
    void (*closing)(const struct launch_job *job, const struct join *j);
    int out;               /* descriptor to which an attempt passes what the ranks print */
};

/* Member `j->member` of the job, until the job has ended.  *exit_status: that of the job for member 0, else 0.  E702 where the
 * folder cannot be written.  With j->again a signal to the member gives JOIN_GIVEN_BACK, and the job is not over. */
err join_member(const struct launch_job *job, const struct join *j, i32 *exit_status);
/* One attempt, for the supervisor: brings the members together, runs mpiexec; words: program and arguments of a rank.
 * *exit_status: of mpiexec, or 8 where a member was lost. */
err join_start(const char *meeting, const struct join *j, struct launch_words words, i32 *exit_status);

/* The folder of a session, and one of its files. */
void join_path(char out[LAUNCH_PATH], const char *run_dir, const char *session, const char *name);
/* The exit status that the job left; -1 = none yet. */
i32 join_ended(const char *run_dir, const char *session);
/* Why it failed, where no rank could say so; "" = nothing was left. */
void join_why(const char *run_dir, const char *session, char *out, size_t size);
/* The number of members that have said hello; `submit --wait` reports it. */
i32 join_present(const char *run_dir, const char *session, i32 members);

#endif
