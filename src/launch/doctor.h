/* doctor.h - what stops or slows a run on a host: facts in, findings out.
 *
 *     facts_of_host --> struct facts --doctor_examine--> struct finding[]: "warn  cores: 2 ranks of 4 threads on 2 cores"
 *
 * Examining is pure, so that tests can plant any fault; facts are plain data, so that ranks can send them to rank 0. */
#ifndef STRETTO_LAUNCH_DOCTOR_H
#define STRETTO_LAUNCH_DOCTOR_H

#include "base/str.h"

enum doctor_level { DOCTOR_OK, DOCTOR_WARN, DOCTOR_STOP };
enum { DOCTOR_FINDINGS = 16, DOCTOR_TEXT = 320, DOCTOR_MPIS = 2 };

/* One MPI library: the plug-in that was built for it, and its launcher. */
struct mpi_facts {
    char name[16], flavour[12], launcher[24]; /* "Open MPI", "openmpi", "mpirun.openmpi" */
    bool plugin, loads, launches;
    char why[120]; /* why it cannot be loaded */
};

struct facts {
    char host[64];
    /* the launcher that started this process; "" = none, ranks are threads */
    char launcher[40], flavour[16];
    i32 promised, world;
    bool joined;              /* this process has joined the MPI job */
    char problem[300], fix[200]; /* they cannot */
    struct mpi_facts mpi[DOCTOR_MPIS];
    char schedulers[48];       /* programs of launchers.def on the path: "srun" */
    bool root, root_allowed;
    /* processors and memory */
    i32 ranks, ranks_here, threads, cores, cores_allowed; /* threads per rank, 0 = all cores available to it */
    f64 quota;                /* processors that control groups grant; 0 = no limit */
    char isa[24], isa_best[24], clock[24];
    i64 shm;                  /* size of /dev/shm, -1 = there is none */
    i32 ptrace;               /* ptrace_scope of the Yama security module; 0 = unrestricted */
    i64 files;                /* open-file limit */
    i32 gpus, busiest;        /* as NVML sees them; 0 = none */
    f64 gpu_taken;            /* occupancy of the busiest GPU now, 0..1 */
    char devices[240];        /* for --device: those that there are, and why others are not */
    /* folders */
    char run[128];            /* the folder where the run will write */
    bool tmp_writes, run_writes;
    i64 tmp_free, run_free;
};

struct finding {
    char check[20];
    enum doctor_level level;
    bool amount;              /* the text contains a measured amount, which differs from host to host */
    char text[DOCTOR_TEXT], fix[200];
};

/* Collects the facts that one process can see: all but launcher, ranks, plug-ins and kernels. run: a folder, which may be
 * missing. */
void facts_of_host(const char *run, struct facts *out);
i32 doctor_examine(const struct facts *f, struct finding out[DOCTOR_FINDINGS]);
enum doctor_level doctor_worst(const struct finding *f, i32 n);
const char *doctor_word(enum doctor_level level); /* "ok", "warn", "stop" */
/* Prints findings as lines; host: prefix of each line, NULL = none. than: print only what differs from these findings; NULL
 * = all. */
void doctor_print(const struct finding *f, i32 n, const char *host, const struct finding *than, struct str *out);

#endif
