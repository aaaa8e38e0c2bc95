/* spill.c - see spill.h: one file for all arrays; an array reserves its place, is mapped, and handed to the pager. */
#define _GNU_SOURCE
#include "base/spill.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/file.h"
#include "base/pager.h"

enum { PAGE = 4096, MIB = 1 << 20 };

/* /var/tmp: /tmp may lie in memory. */
static const char *folder(void) {
    const char *named = getenv("TMPDIR");
    return named && *named ? named : "/var/tmp";
}

/* The error of errno for an array of so many bytes. */
static err refused(i64 bytes) {
    const int cause = errno;
    const bool full = cause == ENOSPC || cause == EDQUOT || cause == EFBIG;
    struct file_room room = {0};
    char free_room[64] = "";
    if (full && file_room(folder(), &room)) snprintf(free_room, sizeof free_room, ", %.1f MiB are free", room.bytes / MIB);
    return FAIL_AT(full ? E703 : E702, folder(), "TMPDIR=FOLDER   (on a disk with room)   or   a larger --memory",
                   "%.1f MiB of data beyond --memory need a file here: %s%s", (f64)bytes / MIB,
                   cause == EFBIG ? "the limit on file sizes (ulimit -f) is reached" : strerror(cause), free_room);
}

/* A file without a name. */
static int nameless(void) {
    char path[4096];
    int fd = open(folder(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT)) return fd;
    snprintf(path, sizeof path, "%.4000s/stretto-XXXXXX", folder());
    fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0) unlink(path);
    return fd;
}

/* The files of all arrays, one behind the other: on the disk, and in memory.  They are closed when the process ends. */
struct store {
    int fd;
    i64 end;
};
static struct {
    pthread_mutex_t lock;
    struct store disk, memory;
    i32 peer_pid, peer_fd; /* the file of another process that this one has open as `peer`, -1 = none */
    int peer;
} files = {.lock = PTHREAD_MUTEX_INITIALIZER, .disk = {.fd = -1}, .memory = {.fd = -1}, .peer = -1};

static _Atomic bool sharing;

void spill_share(bool on) { sharing = on; }

/* Extends the file on the disk by bytes that hold their place; false with errno. */
static bool reserve(struct store *file, i64 bytes) {
    enum fault fault = FAULT_NONE;
    if (fault_at("spill", 0, 0, &fault) < 0) return false;
    if (fault == FAULT_ENOSPC) errno = ENOSPC;
    if (fault != FAULT_NONE) return false;
    if (file->fd < 0) file->fd = nameless();
    if (file->fd < 0) return false;
    if (fallocate(file->fd, 0, file->end, bytes) == 0) return true;
    const bool cannot = errno == EOPNOTSUPP || errno == ENOSYS; /* such a file system takes pages as they are written */
    return cannot && ftruncate(file->fd, file->end + bytes) == 0;
}

/* The same in memory, which takes pages as they are touched. */
static bool extend(struct store *file, i64 bytes) {
    if (file->fd < 0) file->fd = memfd_create("stretto data", MFD_CLOEXEC);
    return file->fd >= 0 && ftruncate(file->fd, file->end + bytes) == 0;
}

/* Hands all pages but the first to the pager; takes the mapping back if it refuses. */
static err watch(char *at, i64 bytes, int rights, int fd, i64 offset) {
    if (pager_watch(at + PAGE, (size_t)(bytes - PAGE), rights, fd, offset + PAGE)) return 0;
    munmap(at, (size_t)bytes);
    return FAIL_AT(E601, NULL, "a larger --memory", "the system refuses to watch %.1f MiB more of data beyond --memory",
                   (f64)bytes / MIB);
}

/* The first page of a mapping: where it lies; mem_wrap writes behind it. */
static void note_place(void *at, const struct store *file, i64 bytes) {
    struct spill_place *place = at;
    *place = (struct spill_place){.pid = (i32)getpid(), .fd = file->fd, .offset = file->end, .bytes = bytes};
}

/* MAP_FAILED without an error: the system gives no file in memory. */
static err map_more(i64 bytes, void **out) {
    const bool limited = mem_limit() > 0;
    struct store *file = limited ? &files.disk : &files.memory;
    *out = MAP_FAILED;
    if (limited ? reserve(file, bytes) : extend(file, bytes))
        *out = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file->fd, file->end);
    if (*out == MAP_FAILED) return limited ? refused(bytes) : 0;
    if (limited) TRY(watch(*out, bytes, PROT_READ | PROT_WRITE, file->fd, file->end));
    else madvise(*out, (size_t)bytes, MADV_HUGEPAGE);
    note_place(*out, file, bytes);
    file->end += bytes;
    return 0;
}

err spill_new(void **out, i64 n, size_t size) {
    void *at;
    TRY(mem_check(n, size));
    const i64 used = n * (i64)size, bytes = round_up64(used, PAGE) + PAGE; /* the page in front: the header of the heap */
    if (used < SPILL_FROM || (mem_limit() == 0 && !sharing)) return mem_new(out, n, size);
    pthread_mutex_lock(&files.lock);
    const err e = map_more(bytes, &at);
    pthread_mutex_unlock(&files.lock);
    TRY(e);
    if (at == MAP_FAILED) return mem_new(out, n, size);
    *out = mem_wrap(at, (size_t)bytes, (size_t)used);
    return 0;
}

/* ------------------------------------------------------------------ arrays of other processes ------------------------------- */

bool spill_place_of(void *array, struct spill_place *out) {
    if (!array || mem_share(array) == 0) return false;
    *out = *(const struct spill_place *)(const void *)((const char *)array - PAGE);
    return true;
}

int spill_open(i32 pid, i32 fd) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, fd);
    return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

/* The descriptor stays open within a limit, where pager_peek reads it: there is one file for all arrays of a process. */
static int peer_file(const struct spill_place *at) {
    if (files.peer >= 0 && files.peer_pid == at->pid && files.peer_fd == at->fd) return files.peer;
    files.peer = spill_open(at->pid, at->fd);
    files.peer_pid = at->pid;
    files.peer_fd = at->fd;
    return files.peer;
}

static err map_peer(const struct spill_place *at, void **out) {
    const bool limited = mem_limit() > 0;
    const int fd = limited ? peer_file(at) : spill_open(at->pid, at->fd);
    void *p = MAP_FAILED;
    if (fd >= 0) p = mmap(NULL, (size_t)at->bytes, PROT_READ, MAP_SHARED, fd, at->offset);
    const int cause = errno;
    if (fd >= 0 && !limited) close(fd);
    if (p == MAP_FAILED)
        return FAIL(E701, "the data that process %d has read cannot be mapped: %s", at->pid, strerror(cause));
    if (limited) TRY(watch(p, at->bytes, PROT_READ, fd, at->offset));
    *out = (char *)p + PAGE;
    return 0;
}

err spill_map(const struct spill_place *at, void **out) {
    pthread_mutex_lock(&files.lock);
    const err e = map_peer(at, out);
    pthread_mutex_unlock(&files.lock);
    return e;
}
