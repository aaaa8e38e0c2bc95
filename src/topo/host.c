/* host.c - describes this host: hwloc for cores and caches, /proc and /sys for container limits.
 *
 * hwloc loads only cores and caches (no I/O devices, distances or memory kinds): about 3 ms, mostly for its plug-ins, and once
 * for the process, so that a forecast of a long-lived process does not wait for it.  The number of cores is the minimum of the
 * allowed cores (affinity, cpuset), which are read each time, and the CPU quota of the control groups, once a second. */
#define _GNU_SOURCE
#include <dirent.h>
#include <hwloc.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "topo/machine.h"

static void cpu_name(char *out, size_t size) {
    char line[512];
    snprintf(out, size, "unknown CPU");
    FILE *f = fopen("/proc/cpuinfo", "re");
    if (!f) return;
    while (fgets(line, sizeof line, f)) {
        if (strncmp(line, "model name", 10) != 0) continue;
        const char *v = strchr(line, ':');
        if (!v) continue;
        v += 1 + strspn(v + 1, " \t");
        line[strcspn(line, "\n")] = 0;
        snprintf(out, size, "%s", v);
        break;
    }
    fclose(f);
}

/* Path of this process in the control-group tree: of version 2 ("0::/x") or of a version 1 controller ("3:cpu,cpuacct:/x"). */
static bool cgroup_path(const char *controller, char *out, size_t size) {
    char line[512];
    bool found = false;
    FILE *f = fopen("/proc/self/cgroup", "re");
    if (!f) return false;
    while (!found && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = 0;
        char *names = strchr(line, ':');
        char *path = names ? strchr(names + 1, ':') : NULL;
        if (!path) continue;
        *path++ = 0;
        names++;
        const char *hit = controller[0] ? strstr(names, controller) : NULL;
        size_t n = strlen(controller);
        bool whole = hit && (hit == names || hit[-1] == ',') && (hit[n] == 0 || hit[n] == ',');
        found = controller[0] ? whole : names[0] == 0;
        if (found) snprintf(out, size, "%s", path);
    }
    fclose(f);
    return found;
}

/* Visits a control file of the group and of all its ancestors. root: mount point of the hierarchy. */
static void cgroup_walk(const char *root, const char *controller, const char *file, void (*visit)(const char *text, void *to),
                        void *to) {
    char path[512], name[1200], text[128];
    if (!cgroup_path(controller, path, sizeof path)) return;
    for (;;) {
        snprintf(name, sizeof name, "%s%s/%s", root, strcmp(path, "/") == 0 ? "" : path, file);
        if (file_first_line(name, text, sizeof text)) visit(text, to);
        char *cut = strrchr(path, '/');
        if (!cut || path[0] == 0) return;
        *cut = 0;
    }
}

static void read_cpu_max(const char *text, void *to) { /* "200000 100000" or "max 100000" */
    long long quota, period;
    f64 *cpus = to;
    if (sscanf(text, "%lld %lld", &quota, &period) == 2 && quota > 0 && period > 0) *cpus = dmin(*cpus, (f64)quota / (f64)period);
}

static void read_least(const char *text, void *to) {
    i64 v, *least = to;
    if (str_to_i64(text, strlen(text), &v) && v > 0) *least = lmin(*least, v);
}

#define NO_QUOTA 1e9

static f64 quota_cpus(void) {
    f64 cpus = NO_QUOTA;
    cgroup_walk("/sys/fs/cgroup", "", "cpu.max", read_cpu_max, &cpus);
    i64 quota = INT64_MAX, period = INT64_MAX;
    cgroup_walk("/sys/fs/cgroup/cpu", "cpu", "cpu.cfs_quota_us", read_least, &quota);
    cgroup_walk("/sys/fs/cgroup/cpu", "cpu", "cpu.cfs_period_us", read_least, &period);
    if (quota < INT64_MAX && period < INT64_MAX) cpus = dmin(cpus, (f64)quota / (f64)period);
    return cpus;
}

f64 machine_quota(void) {
    const f64 cpus = quota_cpus();
    return cpus < NO_QUOTA ? cpus : 0;
}

static i64 memory_allowed(void) {
    i64 bytes = (i64)sysconf(_SC_PHYS_PAGES) * (i64)sysconf(_SC_PAGESIZE);
    cgroup_walk("/sys/fs/cgroup", "", "memory.max", read_least, &bytes);
    cgroup_walk("/sys/fs/cgroup/memory", "memory", "memory.limit_in_bytes", read_least, &bytes);
    return bytes;
}

/* What the control groups allow, as read within the last second: each look at /proc/self/cgroup takes a lock of the whole system,
 * which is held for tenths of a second where processes move between groups. */
#define LIMITS_S 1.0
static struct {
    pthread_mutex_t lock;
    f64 until; /* clock at which they are read again; 0 = not yet read */
    f64 cpus;
    i64 memory;
} limits = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void limits_now(f64 *cpus, i64 *memory) {
    pthread_mutex_lock(&limits.lock);
    if (clock_now() >= limits.until) {
        limits.cpus = quota_cpus();
        limits.memory = memory_allowed();
        limits.until = clock_now() + LIMITS_S;
    }
    *cpus = limits.cpus;
    *memory = limits.memory;
    pthread_mutex_unlock(&limits.lock);
}

static i64 cache_size(hwloc_topology_t t, hwloc_obj_type_t type) {
    hwloc_obj_t o = hwloc_get_obj_by_type(t, type, 0);
    return o ? (i64)o->attr->cache.size : 0;
}

static err load(hwloc_topology_t t) {
    unsigned long flags = 0;
#if HWLOC_API_VERSION >= 0x00020500
    flags |= HWLOC_TOPOLOGY_FLAG_DONT_CHANGE_BINDING;
#endif
#if HWLOC_API_VERSION >= 0x00020800
    flags |= HWLOC_TOPOLOGY_FLAG_NO_DISTANCES | HWLOC_TOPOLOGY_FLAG_NO_MEMATTRS | HWLOC_TOPOLOGY_FLAG_NO_CPUKINDS;
#endif
    hwloc_topology_set_all_types_filter(t, HWLOC_TYPE_FILTER_KEEP_NONE);
    hwloc_topology_set_type_filter(t, HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL);
    hwloc_topology_set_cache_types_filter(t, HWLOC_TYPE_FILTER_KEEP_ALL);
    hwloc_topology_set_flags(t, flags);
    return hwloc_topology_load(t) == 0 ? 0 : FAIL(E1, "hwloc could not read the processors of this host");
}

static void from_bitmap(hwloc_const_bitmap_t b, struct cores *c) {
    for (unsigned k = 0; k < CORES_WORDS; k++) c->word[k] = hwloc_bitmap_to_ith_ulong(b, k);
}

/* What does not change while the process lives.  The topology itself goes: it holds the libraries of hwloc's plug-ins. */
static struct {
    pthread_mutex_t lock;
    bool known;
    i32 ncore; /* 0 = hwloc sees processors, but no cores */
    struct cores core[MACHINE_THREADS], allowed;
    i64 cache_l2, cache_l3;
    char cpu[sizeof((struct machine *)0)->cpu];
} host = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void keep_host(hwloc_topology_t t) {
    host.ncore = imin(hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_CORE), MACHINE_THREADS);
    for (i32 i = 0; i < host.ncore; i++)
        from_bitmap(hwloc_get_obj_by_type(t, HWLOC_OBJ_CORE, (unsigned)i)->cpuset, &host.core[i]);
    from_bitmap(hwloc_topology_get_allowed_cpuset(t), &host.allowed);
    host.cache_l2 = cache_size(t, HWLOC_OBJ_L2CACHE);
    host.cache_l3 = cache_size(t, HWLOC_OBJ_L3CACHE);
    cpu_name(host.cpu, sizeof host.cpu);
    host.known = true;
}

static err know_host(void) {
    hwloc_topology_t t;
    err e = 0;
    pthread_mutex_lock(&host.lock);
    if (!host.known) {
        if (hwloc_topology_init(&t) != 0) {
            e = FAIL(E1, "hwloc could not be started");
        } else {
            e = load(t);
            if (e >= 0) keep_host(t);
            hwloc_topology_destroy(t);
        }
    }
    pthread_mutex_unlock(&host.lock);
    return e;
}

/* The processors of all threads: one that runs on a part of them may ask. */
static void processors_of_process(struct cores *out) {
    struct dirent *entry;
    DIR *d = opendir("/proc/self/task");
    *out = (struct cores){0};
    while (d && (entry = readdir(d))) {
        cpu_set_t set;
        struct cores one;
        i64 thread;
        CPU_ZERO(&set);
        if (!str_to_i64(entry->d_name, strlen(entry->d_name), &thread) || sched_getaffinity((pid_t)thread, sizeof set, &set) != 0)
            continue;
        memcpy(&one, &set, sizeof one);
        for (i32 k = 0; k < CORES_WORDS; k++) out->word[k] |= one.word[k];
    }
    if (d) closedir(d);
}

static err discover(struct machine *m) {
    struct cores mine;
    i32 n = 0;
    TRY(know_host());
    processors_of_process(&mine);
    if (cores_count(&mine) == 0) mine = host.allowed;
    for (i32 i = 0; i < host.ncore; i++) n += cores_meet(&mine, &host.core[i]);
    if (host.ncore == 0) n = cores_count(&mine);
    m->ncore = imax(n, 1);
    m->cache_l2 = host.cache_l2;
    m->cache_l3 = host.cache_l3;
    return 0;
}

err machine_host(i32 threads, struct machine *out) {
    memset(out, 0, sizeof *out);
    TRY(discover(out));
    f64 quota;
    i64 memory;
    limits_now(&quota, &memory);
    if (quota < out->ncore) out->ncore = imax((i32)(quota + 0.999), 1);
    if (threads < 0 || threads > MACHINE_THREADS)
        return FAIL_AT(E103, "--threads", "--threads 0   (all cores allowed)", "%d threads (0..%d)", threads, MACHINE_THREADS);
    i32 n = threads > 0 ? threads : imin(out->ncore, MACHINE_THREADS);
    i32 ncore = out->ncore;
    i64 l2 = out->cache_l2, l3 = out->cache_l3;
    char text[32];
    snprintf(text, sizeof text, "cpu*%d", n);
    TRY(machine_parse(text, out));
    out->ncore = ncore;
    out->cache_l2 = l2;
    out->cache_l3 = l3;
    out->memory = memory;
    for (i32 i = 0; i < out->ndevice; i++) out->device[i].memory = out->memory;
    snprintf(out->name, sizeof out->name, "host");
    snprintf(out->cpu, sizeof out->cpu, "%s", host.cpu);
    return 0;
}

/* ------------------------------------------------------------------ who runs where ------------------------------------------ */

_Static_assert(sizeof(struct cores) <= sizeof(cpu_set_t), "cores fit in what the kernel is told");
_Static_assert(sizeof(unsigned long) == sizeof(u64), "hwloc's words are those of struct cores");

bool cores_allowed(struct cores *out) {
    cpu_set_t set;
    CPU_ZERO(&set);
    *out = (struct cores){0};
    if (sched_getaffinity(0, sizeof set, &set) != 0) return false;
    memcpy(out, &set, sizeof *out);
    return true;
}

i32 cores_count(const struct cores *c) {
    i32 n = 0;
    for (i32 k = 0; k < CORES_WORDS; k++) n += __builtin_popcountll(c->word[k]);
    return n;
}

bool cores_meet(const struct cores *a, const struct cores *b) {
    for (i32 k = 0; k < CORES_WORDS; k++)
        if (a->word[k] & b->word[k]) return true;
    return false;
}

void cores_stay(const struct cores *c) {
    cpu_set_t set;
    CPU_ZERO(&set);
    memcpy(&set, c, sizeof *c);
    sched_setaffinity(0, sizeof set, &set); /* affects speed only */
}

static void to_bitmap(const struct cores *c, hwloc_bitmap_t b) {
    hwloc_bitmap_zero(b);
    for (unsigned k = 0; k < CORES_WORDS; k++) hwloc_bitmap_set_ith_ulong(b, k, c->word[k]);
}

static void deal_out(hwloc_topology_t t, hwloc_bitmap_t all, i32 parts, i32 part, struct cores *out, bool *enough) {
    static _Thread_local hwloc_cpuset_t set[MACHINE_THREADS];
    hwloc_obj_t root = hwloc_get_root_obj(t);
    *enough = hwloc_topology_restrict(t, all, 0) == 0 && hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_CORE) >= parts;
    if (*enough) *enough = hwloc_distrib(t, &root, 1, set, (unsigned)parts, INT_MAX, 0) == 0;
    if (!*enough) return;
    from_bitmap(set[part], out);
    for (i32 k = 0; k < parts; k++) hwloc_bitmap_free(set[k]);
}

err cores_cut(const struct cores *all, i32 parts, i32 part, struct cores *out, bool *enough) {
    hwloc_topology_t t;
    *enough = false;
    if (parts < 1 || parts > MACHINE_THREADS) return 0;
    if (hwloc_topology_init(&t) != 0) return FAIL(E1, "hwloc could not be started");
    hwloc_bitmap_t b = hwloc_bitmap_alloc();
    err e = b ? load(t) : FAIL(E601, "memory for the list of processors was refused");
    if (e >= 0) {
        to_bitmap(all, b);
        deal_out(t, b, parts, part, out, enough);
    }
    hwloc_bitmap_free(b);
    hwloc_topology_destroy(t);
    return e;
}
