/* doctor.c - derives findings from the facts of a host; one function per check. */
#include "launch/doctor.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MIB = 1 << 20, SHM_RANK = 32 * MIB, FILES_LEAST = 256, FILES_RANK = 16, FILES_GOOD = 1024 };
enum { TMP_LEAST = 64 * MIB, RUN_LEAST = 256 * MIB };

PRINTF_LIKE(5, 6)
static struct finding *note(struct finding *f, const char *check, enum doctor_level level, const char *fix, const char *fmt,
                            ...) {
    va_list ap;
    *f = (struct finding){.level = level};
    snprintf(f->check, sizeof f->check, "%s", check);
    snprintf(f->fix, sizeof f->fix, "%s", fix ? fix : "");
    va_start(ap, fmt);
    vsnprintf(f->text, sizeof f->text, fmt, ap);
    va_end(ap);
    return f;
}

static long long mib(i64 bytes) { return (long long)(bytes / MIB); }
static const char *s_of(i32 n) { return n == 1 ? "" : "s"; }

/* Appends an item to a list "a, b". */
static void list_add(char *list, size_t size, const char *item) {
    const size_t n = strlen(list);
    snprintf(list + n, size - n, "%s%s", n ? ", " : "", item);
}

static const struct mpi_facts *mpi_of(const struct facts *f, const char *flavour) {
    for (i32 i = 0; i < DOCTOR_MPIS; i++)
        if (strcmp(f->mpi[i].flavour, flavour) == 0) return &f->mpi[i];
    return NULL;
}

static void check_launcher(const struct facts *f, struct finding *out) {
    static const char check[] = "launcher";
    char found[120] = "";
    if (*f->launcher && f->promised > 1 && !f->joined) {
        note(out, check, DOCTOR_STOP, f->fix, "%s", f->problem);
    } else if (*f->launcher && f->world != f->promised) {
        note(out, check, DOCTOR_STOP,
             "the launcher of that library; under Slurm: srun --mpi=pmix (Open MPI), srun --mpi=pmi2 (MPICH)",
             "%s promised %d ranks and the MPI library sees %d: each would train alone", f->launcher, f->promised, f->world);
    } else if (*f->launcher) {
        note(out, check, DOCTOR_OK, NULL, "%s, %d rank%s", f->launcher, f->world, s_of(f->world));
    } else {
        for (i32 i = 0; i < DOCTOR_MPIS; i++)
            if (f->mpi[i].launches) list_add(found, sizeof found, f->mpi[i].launcher);
        if (*f->schedulers) list_add(found, sizeof found, f->schedulers);
        note(out, check, DOCTOR_OK, NULL, "none started this process; on this host: %s", *found ? found : "none");
    }
}

/* The library that the run would use, or all of them if no launcher started this process. */
static void check_mpi(const struct facts *f, struct finding *out) {
    static const char check[] = "mpi", install[] = "install that MPI and its mpicc, and build again; or STRETTO_PLUGINS=FOLDER";
    const struct mpi_facts *use = mpi_of(f, f->flavour);
    char have[80] = "";
    if (*f->launcher && f->promised > 1 && *f->flavour) {
        if (!use) note(out, check, DOCTOR_STOP, "leave STRETTO_MPI unset", "there is no plug-in \"%s\"", f->flavour);
        else if (!use->plugin)
            note(out, check, DOCTOR_STOP, install, "%s wants %s, and this build has no plug-in for it", f->launcher, use->name);
        else if (!use->loads)
            note(out, check, DOCTOR_STOP, install, "the plug-in for %s cannot be loaded: %s", use->name, use->why);
        else note(out, check, DOCTOR_OK, NULL, "%s", use->name);
        return;
    }
    for (i32 i = 0; i < DOCTOR_MPIS; i++) {
        const struct mpi_facts *m = &f->mpi[i];
        if (m->plugin && !m->loads) {
            note(out, check, DOCTOR_WARN, install, "the plug-in for %s cannot be loaded: %s", m->name, m->why);
            return;
        }
        if (m->plugin) list_add(have, sizeof have, m->name);
    }
    if (*have) note(out, check, DOCTOR_OK, NULL, "plug-ins for %s", have);
    else note(out, check, DOCTOR_WARN, install, "no plug-in for MPI was built: ranks are threads of one process only");
}

static void check_root(const struct facts *f, struct finding *out) {
    const struct mpi_facts *open_mpi = mpi_of(f, "openmpi");
    if (f->root && !*f->launcher && open_mpi && open_mpi->launches && !f->root_allowed)
        note(out, "user", DOCTOR_WARN, "export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1   or another user",
             "mpirun of Open MPI refuses root");
    else note(out, "user", DOCTOR_OK, NULL, f->root ? "root" : "an ordinary user");
}

/* If the launcher binds ranks to cores, each rank counts its own cores only. */
static void check_cores(const struct facts *f, struct finding *out) {
    static const char check[] = "cores";
    const i32 here = imax(1, f->ranks_here);
    const bool bound = f->cores_allowed < f->cores && here > 1 && *f->launcher;
    const i32 sharing = bound ? 1 : here, threads = f->threads > 0 ? f->threads : imax(1, f->cores_allowed / sharing);
    char fix[80], need[80];
    snprintf(need, sizeof need, "%d rank%s of %d thread%s", sharing, s_of(sharing), threads, s_of(threads));
    if (f->quota > 0 && f->quota + 0.01 < threads * sharing) {
        snprintf(fix, sizeof fix, "--threads %d, or a larger quota", imax(1, (i32)(f->quota / sharing)));
        note(out, check, DOCTOR_WARN, fix, "control groups grant %.1f processors, and %s need %d", f->quota, need,
             threads * sharing);
    } else if (threads * sharing > f->cores_allowed) {
        snprintf(fix, sizeof fix, "--threads %d, or fewer ranks on this host", imax(1, f->cores_allowed / sharing));
        note(out, check, DOCTOR_WARN, fix, "%s on %d core%s%s", need, f->cores_allowed, s_of(f->cores_allowed),
             f->cores_allowed < f->cores ? " of those here (affinity)" : "");
    } else {
        note(out, check, DOCTOR_OK, NULL, "%s on %d core%s", need, f->cores_allowed, s_of(f->cores_allowed));
    }
}

static void check_shm(const struct facts *f, struct finding *out) {
    static const char check[] = "shared memory", fix[] = "docker run --shm-size=1g   or   mount -o remount,size=1g /dev/shm";
    const i64 want = (i64)imax(2, f->ranks_here) * SHM_RANK;
    const enum doctor_level level = *f->launcher && f->ranks_here > 1 ? DOCTOR_STOP : DOCTOR_WARN;
    if (f->shm < 0)
        note(out, check, level, fix, "there is no /dev/shm: ranks of one host cannot share memory");
    else if (f->shm < want)
        note(out, check, level, fix, "/dev/shm holds %lld MiB, and %d ranks of MPI need %lld", mib(f->shm),
             imax(2, f->ranks_here), mib(want));
    else note(out, check, DOCTOR_OK, NULL, "/dev/shm holds %lld MiB", mib(f->shm));
}

static void check_ptrace(const struct facts *f, struct finding *out) {
    if (f->ptrace > 0)
        note(out, "ptrace", DOCTOR_WARN, "sysctl kernel.yama.ptrace_scope=0   (or accept it)",
             "scope %d: ranks of one host copy large messages twice", f->ptrace);
    else note(out, "ptrace", DOCTOR_OK, NULL, "scope 0");
}

static void check_files(const struct facts *f, struct finding *out) {
    static const char fix[] = "ulimit -n 4096";
    const i64 least = FILES_LEAST + (i64)FILES_RANK * imax(1, f->ranks);
    if (f->files < least)
        note(out, "open files", DOCTOR_STOP, fix, "at most %lld, and %d rank%s need %lld", (long long)f->files, imax(1, f->ranks),
             s_of(imax(1, f->ranks)), (long long)least);
    else if (f->files < FILES_GOOD) note(out, "open files", DOCTOR_WARN, fix, "at most %lld", (long long)f->files);
    else note(out, "open files", DOCTOR_OK, NULL, "at most %lld", (long long)f->files);
}

static void check_folder(const char *check, const char *path, bool writes, i64 room, i64 least, struct finding *out) {
    if (!writes)
        note(out, check, DOCTOR_STOP, "another folder (--run-dir, TMPDIR), or the right to write there", "%s cannot be written",
             path);
    else if (room < least)
        note(out, check, DOCTOR_WARN, "make room, or another folder", "%s has %lld MiB left, and %lld are needed", path,
             mib(room), mib(least));
    else note(out, check, DOCTOR_OK, NULL, "%s has %lld MiB left", path, mib(room))->amount = true;
}

static void check_kernels(const struct facts *f, struct finding *out) {
    if (strcmp(f->isa, f->isa_best) != 0)
        note(out, "kernels", DOCTOR_WARN, "unset STRETTO_ISA", "%s, and this processor has %s", f->isa, f->isa_best);
    else note(out, "kernels", DOCTOR_OK, NULL, "%s", f->isa);
}

static void check_clock(const struct facts *f, struct finding *out) {
    static const char *const quick[] = {"", "tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter"};
    bool good = false;
    for (size_t i = 0; i < COUNT(quick); i++) good |= strncmp(f->clock, quick[i], sizeof f->clock - 1) == 0;
    if (good) note(out, "clock", DOCTOR_OK, NULL, "%s", *f->clock ? f->clock : "unknown");
    else
        note(out, "clock", DOCTOR_WARN,
             "echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource, where it is stable",
             "%s: reading the time is a call of the kernel", f->clock);
}

static void check_devices(const struct facts *f, struct finding *out) {
    note(out, "devices", DOCTOR_OK, NULL, "%s", *f->devices ? f->devices : "cpu alone");
}

/* Never a warning: a busy GPU is slow, not wrong. */
static void check_gpus(const struct facts *f, struct finding *out) {
    if (f->gpus == 0) note(out, "gpu load", DOCTOR_OK, NULL, "NVML reports no GPU");
    else
        note(out, "gpu load", DOCTOR_OK, NULL, "%d GPU%s, of which number %d is busiest: %.0f%% taken", f->gpus, s_of(f->gpus),
             f->busiest, f->gpu_taken * 100)
            ->amount = true;
}

i32 doctor_examine(const struct facts *f, struct finding out[DOCTOR_FINDINGS]) {
    i32 n = 0;
    check_launcher(f, &out[n++]);
    check_mpi(f, &out[n++]);
    check_root(f, &out[n++]);
    check_cores(f, &out[n++]);
    check_shm(f, &out[n++]);
    check_ptrace(f, &out[n++]);
    check_files(f, &out[n++]);
    check_folder("temporary files", "/tmp", f->tmp_writes, f->tmp_free, TMP_LEAST, &out[n++]);
    check_folder("run folder", f->run, f->run_writes, f->run_free, RUN_LEAST, &out[n++]);
    check_kernels(f, &out[n++]);
    check_clock(f, &out[n++]);
    check_devices(f, &out[n++]);
    check_gpus(f, &out[n++]);
    return n;
}

enum doctor_level doctor_worst(const struct finding *f, i32 n) {
    enum doctor_level worst = DOCTOR_OK;
    for (i32 i = 0; i < n; i++)
        if (f[i].level > worst) worst = f[i].level;
    return worst;
}

const char *doctor_word(enum doctor_level level) {
    static const char *const words[] = {"ok", "warn", "stop"};
    return words[level];
}

void doctor_print(const struct finding *f, i32 n, const char *host, const struct finding *than, struct str *out) {
    for (i32 i = 0; i < n; i++) {
        const bool same = than && f[i].level == than[i].level;
        if (same && ((f[i].amount && than[i].amount) || strcmp(f[i].text, than[i].text) == 0)) continue;
        if (host) str_addf(out, "%s: ", host);
        str_addf(out, "%-5s %-16s %s\n", doctor_word(f[i].level), f[i].check, f[i].text);
        if (*f[i].fix) str_addf(out, "      fix: %s\n", f[i].fix);
    }
}
