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

/* The file of all arrays, one behind the other; it is closed when the process ends. */
static struct {
    pthread_mutex_t lock;
    int fd;
    i64 end;
} file = {.lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1};

/* Extends the file by bytes that hold their place; false with errno. */
static bool reserve(i64 bytes) {
    enum fault fault = FAULT_NONE;
    if (fault_at("spill", 0, 0, &fault) < 0) return false;
    if (fault == FAULT_ENOSPC) errno = ENOSPC;
    if (fault != FAULT_NONE) return false;
    if (file.fd < 0) file.fd = nameless();
    if (file.fd < 0) return false;
    if (fallocate(file.fd, 0, file.end, bytes) == 0) return true;
    const bool cannot = errno == EOPNOTSUPP || errno == ENOSYS; /* such a file system takes pages as they are written */
    return cannot && ftruncate(file.fd, file.end + bytes) == 0;
}

static err map_more(i64 bytes, void **out) {
    *out = MAP_FAILED;
    if (reserve(bytes)) *out = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.fd, file.end);
    if (*out == MAP_FAILED) return refused(bytes);
    if (!pager_watch((char *)*out + PAGE, (size_t)(bytes - PAGE), PROT_READ | PROT_WRITE, file.fd, file.end + PAGE)) {
        munmap(*out, (size_t)bytes);
        return FAIL_AT(E601, NULL, "a larger --memory", "the system refuses to watch %.1f MiB more of data beyond --memory",
                       (f64)bytes / MIB);
    }
    file.end += bytes;
    return 0;
}

err spill_new(void **out, i64 n, size_t size) {
    void *at;
    TRY(mem_check(n, size));
    const i64 used = n * (i64)size, bytes = round_up64(used, PAGE) + PAGE; /* the page in front: the header of the heap */
    if (mem_limit() == 0 || used < SPILL_FROM) return mem_new(out, n, size);
    pthread_mutex_lock(&file.lock);
    const err e = map_more(bytes, &at);
    pthread_mutex_unlock(&file.lock);
    if (e >= 0) *out = mem_wrap(at, (size_t)bytes, (size_t)used);
    return e;
}
