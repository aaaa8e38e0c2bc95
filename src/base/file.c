/* file.c - see file.h. The temporary file is locked while it is written, so two processes never share one. */
#define _GNU_SOURCE
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/hdfs.h"
#include "base/input.h"
#include "base/mem.h"
#include "base/pager.h"
#include "base/unfinished.h"

enum { OUT_BUFFER = 1 << 18, READ_STEP = 1 << 20 };

static err cannot_read(const char *path) {
    int cause = errno;
    const char *fix = cause == ENOENT   ? "check the name and the folder"
                      : cause == EACCES ? "chmod +r the file, or ask its owner"
                                        : NULL;
    return FAIL_AT(E701, path, fix, "cannot read the file: %s", strerror(cause));
}

err file_open(const char *path, struct file_in *f) {
    const bool is_input = input_is(path);
    *f = (struct file_in){.fd = -1, .path = path};
    if (hdfs_is(path)) return hdfs_open(path, &f->remote, &f->size);
    if (input_is_memory(path))
        return FAIL_AT(E701, input_label(path), "write it to a file", "a table in memory cannot be read as a file of text");
    f->path = path = input_label(path);
    int fd = -1;
    if (is_input) TRY(input_open(&fd));
    else fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return cannot_read(path);
    struct stat st;
    if (fstat(fd, &st) != 0) {
        close(fd);
        return cannot_read(path);
    }
    if (S_ISDIR(st.st_mode)) {
        close(fd);
        return FAIL_AT(E202, path, "name a file in it", "this is a directory, not a file");
    }
    f->fd = fd;
    f->size = S_ISREG(st.st_mode) ? (i64)st.st_size : -1;
    return 0;
}

err file_read_at(const struct file_in *f, i64 offset, void *to, i64 n) {
    char *p = to;
    if (f->remote) return hdfs_read_at(f->remote, offset, to, n);
    while (n > 0) {
        ssize_t got = pread(f->fd, p, (size_t)n, (off_t)offset);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return cannot_read(f->path);
        if (got == 0)
            return FAIL_AT(E213, f->path, "wait until it is written, then run again",
                           "the file had %lld bytes when it was opened and ends at byte %lld now", (long long)f->size,
                           (long long)offset);
        p += got;
        offset += got;
        n -= got;
    }
    return 0;
}

err file_read_some(const struct file_in *f, void *to, i64 n, i64 *got) {
    ssize_t k;
    if (f->remote) return hdfs_read_some(f->remote, to, n, got);
    do k = read(f->fd, to, (size_t)n);
    while (k < 0 && errno == EINTR);
    if (k < 0) return cannot_read(f->path);
    *got = (i64)k;
    return 0;
}

void file_close(struct file_in *f) {
    if (f->fd >= 0) close(f->fd);
    hdfs_close(f->remote);
    f->remote = NULL;
    f->fd = -1;
}

/* A pipe has no size: reads to the end into a buffer that doubles. */
static err load_pipe(const struct file_in *f, i64 max, char **data, i64 *size) {
    i64 cap = READ_STEP, n = 0, got = 1;
    void *p = mem_alloc((size_t)cap);
    if (!p) return -E601;
    err e = 0;
    while (e >= 0 && got > 0) {
        e = n > max ? FAIL_AT(E601, f->path, NULL, "more than %lld bytes came", (long long)max) : mem_grow(&p, n + 1, &cap, 1);
        if (e >= 0) e = file_read_some(f, (char *)p + n, cap - 1 - n, &got);
        if (e >= 0) n += got;
    }
    if (e < 0) {
        mem_free(p);
        return e;
    }
    *data = p;
    (*data)[n] = 0;
    *size = n;
    return 0;
}

err file_load(const char *path, i64 max, char **data, i64 *size) {
    *data = NULL;
    *size = 0;
    struct file_in f;
    TRY(file_open(path, &f));
    err e = 0;
    char *p = NULL;
    if (f.size < 0) {
        e = load_pipe(&f, max, data, size);
    } else if (f.size > max) {
        e = FAIL_AT(E601, path, NULL, "the file has %lld bytes, %lld are the most read at once", (long long)f.size,
                    (long long)max);
    } else if (!(p = mem_alloc((size_t)f.size + 1))) {
        e = -E601;
    } else {
        e = file_read_at(&f, 0, p, f.size);
        if (e < 0) mem_free(p);
        else *data = p, *size = f.size, p[f.size] = 0;
    }
    file_close(&f);
    return e;
}

/* The folder of a file. */
static void folder_of(const char *path, char dir[4096]) {
    snprintf(dir, 4096, "%s", path);
    char *slash = strrchr(dir, '/');
    if (!slash) snprintf(dir, 4096, ".");
    else slash[slash == dir] = 0;
}

bool file_room(const char *path, struct file_room *out) {
    char dir[4096];
    struct statvfs fs;
    struct stat st;
    struct rlimit most;
    folder_of(path, dir);
    if (statvfs(dir, &fs) != 0 || stat(dir, &st) != 0) return false;
    *out = (struct file_room){.device = (u64)st.st_dev, .bytes = (f64)fs.f_bavail * (f64)fs.f_frsize, .most = INFINITY};
    if (getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur != RLIM_INFINITY) out->most = (f64)most.rlim_cur;
    return true;
}

static err cannot_write(const char *path, const char *kept, i64 needed) {
    const int cause = errno;
    char unchanged[320] = "";
    struct file_room room = {0};
    struct stat st;
    const bool device = stat(path, &st) == 0 && !S_ISREG(st.st_mode);
    if (!device && kept && file_exists(kept)) snprintf(unchanged, sizeof unchanged, "; %.250s from before is unchanged", kept);
    const char *why = cause == EFBIG    ? "the limit on file sizes (ulimit -f) is reached"
                      : cause == ENOSPC ? "no space left on device"
                                        : strerror(cause);
    if (cause != ENOSPC && cause != EDQUOT && cause != EFBIG) return FAIL(E702, "cannot write %s: %s%s", path, why, unchanged);
    const bool sized = cause == ENOSPC && !device && needed > 0 && file_room(path, &room);
    if (!sized) return FAIL(E703, "cannot write %s: %s%s", path, why, unchanged);
    return FAIL(E703, "cannot write %s: %s (at least %.1f MB needed, free %.1f MB)%s", path, why, (f64)needed / 1e6,
                room.bytes / 1e6, unchanged);
}

err file_failed(const char *path) { return cannot_write(path, NULL, 0); }

err file_option(err e, const char *option) {
    if ((e != -E702 && e != -E703) || err_last()->fix[0]) return e;
    struct err_record r = *err_last();
    snprintf(r.fix, sizeof r.fix, "%sanother place: %s OTHER/NAME", e == -E703 ? "make room, or " : "", option);
    err_put(&r);
    return e;
}

err file_reserve(const char *path, i64 bytes) {
    err e = 0;
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0) return file_failed(path);
    if (fallocate(fd, 0, 0, bytes) != 0 && errno != EOPNOTSUPP && errno != ENOSYS && errno != EINTR) {
        e = cannot_write(path, NULL, bytes);
        unlink(path);
    }
    close(fd);
    return e;
}

bool file_lock(int fd) {
    enum { LOOKS = 50, LOOK_NS = 10000000 };
    for (int k = 0; k < LOOKS; k++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0) return true;
        if (errno != EWOULDBLOCK && errno != EINTR) return false;
        nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
    }
    return false;
}

/* Opens and locks the temporary file. While this process waited for the lock, the file may have been renamed: check and retry. */
static int open_locked(const char *tmp) {
    for (int tries = 0; tries < 100; tries++) {
        int fd = open(tmp, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
        if (fd < 0) return -1;
        struct stat mine, there;
        if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
            close(fd);
            errno = EBUSY;
            return -1;
        }
        if (fstat(fd, &mine) == 0 && stat(tmp, &there) == 0 && mine.st_ino == there.st_ino) {
            if (ftruncate(fd, 0) == 0) return fd;
            close(fd);
            return -1;
        }
        close(fd);
    }
    errno = EBUSY;
    return -1;
}

static void out_free(struct file_out *f) {
    unfinished_done(f->tmp);
    if (f->fd >= 0) close(f->fd);
    mem_free(f->path);
    mem_free(f->tmp);
    mem_free(f->buf);
    *f = (struct file_out){.fd = -1};
}

/* The temporary file of a remote one: without a name, so that it ends with the process. */
static err create_remote(const char *path, struct file_out *f) {
    const char *folder = getenv("TMPDIR");
    char tmp[4096];
    snprintf(tmp, sizeof tmp, "%.4000s/stretto-XXXXXX", folder && *folder ? folder : "/tmp");
    f->fd = mkostemp(tmp, O_CLOEXEC);
    if (f->fd < 0) return cannot_write(tmp, NULL, 0);
    unlink(tmp);
    f->remote = true;
    f->path = mem_strdup(path);
    f->tmp = mem_strdup(tmp);
    f->buf = mem_alloc(OUT_BUFFER);
    if (f->path && f->tmp && f->buf) return 0;
    out_free(f);
    return -E601;
}

/* An open descriptor has no name of its own beside which a temporary file could stand. */
static bool is_descriptor(const char *path) { return !strncmp(path, "/proc/self/fd/", 14) || !strncmp(path, "/dev/fd/", 8); }

err file_create(const char *path, struct file_out *f) {
    *f = (struct file_out){.fd = -1};
    if (hdfs_is(path)) return create_remote(path, f);
    struct stat st;
    bool there = stat(path, &st) == 0;
    if (there && S_ISDIR(st.st_mode)) return FAIL_AT(E702, path, NULL, "cannot write: this is a directory");
    char *real = there ? realpath(path, NULL) : NULL; /* write to the target of a symbolic link */
    f->path = mem_strdup(real ? real : path);
    free(real);
    f->buf = mem_alloc(OUT_BUFFER);
    if (!f->path || !f->buf) {
        out_free(f);
        return -E601;
    }
    if (there && (!S_ISREG(st.st_mode) || is_descriptor(path))) {
        f->fd = open(path, O_WRONLY | O_CLOEXEC);
    } else {
        size_t n = strlen(f->path) + 5;
        f->tmp = mem_alloc(n);
        if (!f->tmp) {
            out_free(f);
            return -E601;
        }
        snprintf(f->tmp, n, "%s.tmp", f->path);
        f->fd = open_locked(f->tmp);
        if (f->fd >= 0) unfinished_add(f->tmp);
        if (f->fd >= 0 && there) (void)!fchmod(f->fd, st.st_mode & 0777);
    }
    if (f->fd >= 0) return 0;
    err e = cannot_write(f->tmp ? f->tmp : path, path, 0);
    out_free(f);
    return e;
}

static err put(struct file_out *f, const char *p, i64 n) {
    i64 total = f->written + n;
    while (n > 0) {
        ssize_t k = write(f->fd, p, (size_t)n);
        if (k < 0 && errno == EINTR) continue;
        if (k < 0) return cannot_write(f->tmp ? f->tmp : f->path, f->path, total);
        p += k;
        n -= k;
        f->written += k;
    }
    return 0;
}

err file_write(struct file_out *f, const void *p, i64 n) {
    if (f->fill + n > OUT_BUFFER) {
        i64 waiting = f->fill;
        f->fill = 0;
        TRY(put(f, f->buf, waiting));
    }
    for (; n >= OUT_BUFFER && pager_holds(p); p = (const char *)p + OUT_BUFFER, n -= OUT_BUFFER) {
        memcpy(f->buf, p, OUT_BUFFER);
        TRY(put(f, f->buf, OUT_BUFFER));
    }
    if (n >= OUT_BUFFER) return put(f, p, n);
    memcpy(f->buf + f->fill, p, (size_t)n);
    f->fill += n;
    return 0;
}

/* Syncs the folder, so that the rename is durable. */
static void sync_dir(const char *path) {
    char dir[4096];
    folder_of(path, dir);
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return;
    (void)fsync(fd);
    close(fd);
}

err file_sync(struct file_out *f) {
    i64 waiting = f->fill;
    f->fill = 0;
    TRY(put(f, f->buf, waiting));
    return f->tmp && !f->remote && fsync(f->fd) != 0 ? cannot_write(f->tmp, f->path, f->written) : 0;
}

/* Sends the temporary file. */
static err commit_remote(struct file_out *f) {
    void *p = f->written > 0 ? mmap(NULL, (size_t)f->written, PROT_READ, MAP_SHARED, f->fd, 0) : NULL;
    if (p == MAP_FAILED) return cannot_write(f->tmp, f->path, f->written);
    const err e = hdfs_put(f->path, p, f->written);
    if (p) munmap(p, (size_t)f->written);
    return e;
}

err file_commit(struct file_out *f) {
    err e = file_sync(f);
    if (e >= 0 && f->remote) {
        e = commit_remote(f);
        out_free(f);
        return e;
    }
    if (e >= 0 && f->tmp && rename(f->tmp, f->path) != 0) e = cannot_write(f->tmp, f->path, f->written);
    if (e < 0) {
        file_abort(f);
        return e;
    }
    if (f->tmp) sync_dir(f->path);
    out_free(f);
    return 0;
}

void file_abort(struct file_out *f) {
    if (f->fd >= 0 && f->tmp && !f->remote) unlink(f->tmp);
    out_free(f);
}

/* Injected faults other than kill9: a full disk, or a flipped bit in the middle. */
static err strike(struct file_out *f, const char *p, i64 n, const char *phase) {
    enum fault fault = FAULT_NONE;
    if (phase) TRY(fault_at(phase, 0, 0, &fault));
    if (fault == FAULT_NONE) return 0;
    TRY(file_sync(f));
    const char other = (char)(n ? p[n / 2] ^ 4 : 0);
    if (fault == FAULT_BITFLIP && pwrite(f->fd, &other, 1, n / 2) == 1) return 0;
    errno = ENOSPC;
    return cannot_write(f->tmp ? f->tmp : f->path, f->path, n);
}

err file_write_phase(const char *path, const void *p, i64 n, const char *phase) {
    struct file_out f;
    TRY(file_create(path, &f));
    err e = file_write(&f, p, n);
    if (e >= 0) e = strike(&f, p, n, phase);
    if (e >= 0) return file_commit(&f);
    file_abort(&f);
    return e;
}

err file_write_all(const char *path, const void *p, i64 n) { return file_write_phase(path, p, n, NULL); }

err file_write_text(const char *path, struct str *text) {
    err e = str_ok(text);
    if (e >= 0) e = file_write_all(path, str_text(text), (i64)text->len);
    str_free(text);
    return e;
}

err file_map(const char *path, struct file_map *m) {
    *m = (struct file_map){0};
    struct file_in f;
    TRY(file_open(path, &f));
    if (f.size <= 0) {
        file_close(&f);
        return f.size == 0 ? 0 : FAIL_AT(E701, path, NULL, "this is no regular file, it cannot be mapped");
    }
    void *p = f.remote ? mmap(NULL, (size_t)f.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                       : mmap(NULL, (size_t)f.size, PROT_READ, MAP_SHARED, f.fd, 0);
    err e = p == MAP_FAILED ? cannot_read(path) : 0;
    if (e >= 0 && f.remote && (e = file_read_at(&f, 0, p, f.size)) < 0) munmap(p, (size_t)f.size);
    file_close(&f);
    if (e < 0) return e;
    *m = (struct file_map){.p = p, .size = f.size};
    return 0;
}

void file_unmap(struct file_map *m) {
    if (m->p) munmap((void *)(uintptr_t)m->p, (size_t)m->size);
    *m = (struct file_map){0};
}

err file_make_dir(const char *path) {
    char part[4096];
    size_t n = strlen(path);
    if (hdfs_is(path)) return hdfs_make_dir(path);
    if (n == 0 || n >= sizeof part) return FAIL(E702, "a folder name of %zu characters cannot be used", n);
    memcpy(part, path, n + 1);
    for (size_t i = 1; i <= n; i++) {
        if (part[i] != '/' && part[i] != 0) continue;
        char c = part[i];
        part[i] = 0;
        struct stat st;
        if (mkdir(part, 0777) != 0 && (errno != EEXIST || stat(part, &st) != 0 || !S_ISDIR(st.st_mode)))
            return FAIL_AT(E702, part, NULL, "cannot make the folder: %s",
                           errno == EEXIST ? "a file is in the way" : strerror(errno));
        part[i] = c;
    }
    return 0;
}

err file_make_parent(const char *path) {
    char folder[4096];
    const char *slash = strrchr(path, '/');
    if (!slash || slash == path) return 0;
    snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
    return file_make_dir(folder);
}

bool file_first_line(const char *path, char *out, size_t size) {
    FILE *f = fopen(path, "re");
    const bool found = f && fgets(out, (int)size, f);
    if (f) fclose(f);
    if (!found) out[0] = 0;
    out[strcspn(out, "\n")] = 0;
    return found;
}

err file_rename(const char *from, const char *to) {
    if (hdfs_is(from)) return hdfs_rename(from, to);
    if (rename(from, to) != 0) return cannot_write(to, NULL, 0);
    sync_dir(to);
    return 0;
}

err file_remove_dir(const char *path) {
    char inner[4096];
    if (hdfs_is(path)) return hdfs_remove(path);
    DIR *d = opendir(path);
    for (const struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d))
        /* rmdir reports what remains */
        if (snprintf(inner, sizeof inner, "%s/%s", path, e->d_name) < (int)sizeof inner) unlink(inner);
    if (d) closedir(d);
    if (rmdir(path) == 0 || errno == ENOENT) return 0;
    return FAIL_AT(E702, path, "check the rights of the folder", "cannot remove the folder: %s", strerror(errno));
}

bool file_exists(const char *path) {
    struct hdfs_status s;
    bool there = false;
    if (!hdfs_is(path)) return access(path, F_OK) == 0;
    const struct err_record before = *err_last();
    if (hdfs_find(path, &there, &s) < 0) err_put(&before);
    return there;
}

bool file_is_remote(const char *path) { return hdfs_is(path); }

err file_remote_writable(const char *path) { return hdfs_writable(path); }
