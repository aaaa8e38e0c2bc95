/* yarn.h - YARN through its REST interfaces: the ResourceManager's, and that of YARN services.
 *
 *     yarn.c       struct launch_job --render--> service (JSON) --POST--> application; waits, submits again
 *     yarn_service.c  that JSON
 *     yarn_log.c      why a container cannot start the program
 *     yarn_rest.c  the ResourceManager that is active, its answers, its refusals */
#ifndef STRETTO_LAUNCH_YARN_H
#define STRETTO_LAUNCH_YARN_H

#include "base/json.h"
#include "launch/launch.h"

struct yarn;

#define YARN_VARIABLE "STRETTO_YARN" /* addresses of ResourceManagers, separated by commas */
enum { YARN_NAME = 64 };

/* wish: the addresses; NULL or "" = $STRETTO_YARN, else yarn-site.xml in $YARN_CONF_DIR or $HADOOP_CONF_DIR.  E805 when no
 * address is known, E811 when none of them answers. */
err yarn_open(const char *wish, struct yarn **out);
void yarn_close(struct yarn *y); /* NULL is allowed */
const char *yarn_addresses(const struct yarn *y); /* separated by commas */
/* One request, of the ResourceManager that is active now.  body: JSON, or NULL.  *answer: NULL where the answer is no JSON.
 * *status: of HTTP.  A ResourceManager that is gone is tried again for `patience` seconds. */
err yarn_ask(struct yarn *y, const char *method, const char *path, const char *body, f64 patience, struct js **answer,
             i32 *status);
/* E805 with YARN's own reason. */
err yarn_refused(const char *what, const struct js *answer, i32 status);
/* The text at a URL of the cluster, such as a node's; false = there is none. */
bool yarn_fetch(struct yarn *y, const char *url, struct str *out);
/* The file system that the cluster works on (fs.defaultFS), as the ResourceManager tells it; false and "": it does not. */
bool yarn_file_system(struct yarn *y, char out[256]);
/* The addresses in a yarn-site.xml, or nothing. */
void yarn_site(const char *text, struct str *out);

/* --- yarn_service.c: the job as a service --- */
#define YARN_STEP (64ll << 20)       /* container memory is a multiple of it */
#define YARN_PROCESS (64ll << 20)    /* of a rank besides plan and data: program, MPI, messages */
#define YARN_CONTAINER (128ll << 20) /* of a container besides its ranks: member, supervisor, mpiexec */
#define YARN_DATA_TIMES 4            /* memory of a data file read, in times of its size */
#define YARN_PROGRAM "$PWD/stretto" /* the unpacked archive, in the words of the container's shell */
enum { YARN_STAY_S = 20 };           /* seconds that a container stays whose program cannot start */
i32 yarn_cores(const struct launch_job *j);  /* vcores of a container */
i64 yarn_memory(const struct launch_job *j); /* bytes of a container */
/* The text that is sent.  addresses: of the ResourceManagers, for the containers.  E601. */
err yarn_describe(const struct launch_job *j, const char *session, const char *addresses, struct str *out);

/* --- yarn_log.c --- */
/* E805 where a container cannot start the program, with what its shell or loader said and the remedy; 0 = nothing of that kind is
 * known. */
err yarn_check_start(struct yarn *y, const struct launch_job *job, const char *session);
/* The line of a container's output that says so. */
bool yarn_start_failure(const char *text, char *out, size_t size);

/* How an application stands. */
struct yarn_state {
    char name[24], end[24];  /* "RUNNING", "FINISHED", ..; "SUCCEEDED", .. */
    char service[YARN_NAME]; /* its name */
    char why[400];           /* diagnostics */
    bool over, known;
};
void yarn_state_read(const struct js *answer, struct yarn_state *out);

/* What the nodes have, and how many of them report each level of GPU load. */
enum { YARN_LABELS = 200 };
struct yarn_nodes {
    char labels[YARN_LABELS]; /* of all that run, "fast, gpu"; "" = none has one */
    i32 running, busy, light, idle; /* by the attribute nm.yarn.io/gpuload */
    i64 most_memory;                /* bytes of the largest node */
    f64 memory;                     /* bytes of all */
    i32 most_cores;
};
/* label: only nodes with this one; NULL = all. */
void yarn_nodes_read(const struct js *answer, const char *label, struct yarn_nodes *out);
/* The part of the cluster that a queue may take at most, in percent; queue NULL = "default".  100 = no limit is known. */
f64 yarn_queue_most(const struct js *answer, const char *queue);
/* False if the queue may not use nodes of this label; true if the answer does not have it. */
bool yarn_queue_reaches(const struct js *answer, const char *queue, const char *label);
bool yarn_has_queue(const struct js *answer, const char *queue); /* of /ws/v1/cluster/scheduler */

bool yarn_is_here(void); /* this process runs in a container of YARN */
/* In a container, first: output goes on to RUN/SESSION.out.MEMBER.  Without effect outside of YARN. */
err yarn_enter(const struct launch_job *job, const char *session, i32 member);
/* In a container, at its end: copies its output to where the members met; no effect where the run folder is shared. */
void yarn_keep_output(const struct launch_job *job, const char *session, i32 member);
/* In a container, as the last act of member 0: a job that failed marks its application as killed, since YARN starts containers
 * again that end with another status than 0.  Returns the status with which the container ends: 0 under YARN, else `status`. */
i32 yarn_leave(const struct launch_job *job, i32 status);

#endif
