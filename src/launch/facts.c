/* facts.c - collects the facts of this host for `stretto doctor`. It creates and deletes one file in each folder, otherwise
 * only reads. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/file.h"
#include "launch/doctor.h"
#include "launch/gpuload.h"
#include "launch/launch.h"
#include "topo/machine.h"

/* Tests a folder; one that does not exist is tested in its parent. */
static void look_at(const char *path, bool *writes, i64 *room) {
    char at[512], probe[560];
    struct statvfs v;
    snprintf(at, sizeof at, "%.500s", *path ? path : ".");
    while (access(at, F_OK) != 0 && strcmp(at, ".") != 0) {
        char *slash = strrchr(at, '/');
        if (slash == at) slash[1] = 0;
        else if (slash) *slash = 0;
        else snprintf(at, sizeof at, ".");
    }
    *room = statvfs(at, &v) == 0 ? (i64)v.f_bavail * (i64)v.f_frsize : 0;
    snprintf(probe, sizeof probe, "%s/.stretto-doctor-XXXXXX", at);
    int fd = mkstemp(probe);
    *writes = fd >= 0;
    if (fd < 0) return;
    close(fd);
    unlink(probe);
}

static void look_for_launchers(struct facts *out) {
    static const struct mpi_facts known[DOCTOR_MPIS] = {{.name = "Open MPI", .flavour = "openmpi", .launcher = "mpirun.openmpi"},
                                                        {.name = "MPICH", .flavour = "mpich", .launcher = "mpiexec.mpich"}};
    for (i32 i = 0; i < DOCTOR_MPIS; i++) {
        out->mpi[i] = known[i];
        out->mpi[i].launches = launch_on_path(known[i].launcher);
    }
    for (i32 i = 0; launcher_at(i); i++) {
        const char *program = launcher_at(i)->program;
        const size_t n = strlen(out->schedulers);
        if (program && launch_on_path(program))
            snprintf(out->schedulers + n, sizeof out->schedulers - n, "%s%s", n ? ", " : "", program);
    }
    out->root = geteuid() == 0;
    out->root_allowed = getenv("OMPI_ALLOW_RUN_AS_ROOT") && getenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM");
}

static void look_at_gpus(struct facts *out) {
    struct gpu_load load[GPU_MOST];
    struct gpus *g;
    if (gpus_open(&g) >= 0) {
        if (gpus_look(g, load) >= 0) out->gpus = gpus_count(g);
        gpus_close(g);
    }
    for (i32 i = 0; i < out->gpus; i++) {
        if (gpuload_occupancy(&load[i]) <= out->gpu_taken) continue;
        out->gpu_taken = gpuload_occupancy(&load[i]);
        out->busiest = i;
    }
    err_clear(); /* having none is not an error here */
}

void facts_of_host(const char *run, struct facts *out) {
    struct rlimit limit;
    struct statvfs shm;
    cpu_set_t cores;
    const char *node = getenv("SLURMD_NODENAME");
    char scope[16];
    memset(out, 0, sizeof *out);
    if (node && *node) snprintf(out->host, sizeof out->host, "%.60s", node);
    else if (gethostname(out->host, sizeof out->host - 1) != 0) snprintf(out->host, sizeof out->host, "this host");
    look_for_launchers(out);
    look_at_gpus(out);
    out->cores = (i32)sysconf(_SC_NPROCESSORS_ONLN);
    CPU_ZERO(&cores);
    out->cores_allowed = sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : out->cores;
    out->quota = machine_quota();
    out->files = getrlimit(RLIMIT_NOFILE, &limit) == 0 ? (limit.rlim_cur == RLIM_INFINITY ? INT64_MAX : (i64)limit.rlim_cur) : 0;
    out->shm = statvfs("/dev/shm", &shm) == 0 ? (i64)shm.f_blocks * (i64)shm.f_frsize : -1;
    if (file_first_line("/proc/sys/kernel/yama/ptrace_scope", scope, sizeof scope)) out->ptrace = (i32)strtol(scope, NULL, 10);
    file_first_line("/sys/devices/system/clocksource/clocksource0/current_clocksource", out->clock, sizeof out->clock);
    look_at("/tmp", &out->tmp_writes, &out->tmp_free);
    snprintf(out->run, sizeof out->run, "%.120s", run && *run ? run : ".");
    look_at(out->run, &out->run_writes, &out->run_free);
}
