/* input.c - see input.h. */
#define _GNU_SOURCE
#include "base/input.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

enum { PIECE = 1 << 18 };

static const char label[] = "standard input", again[] = "give the name of the file instead of -";
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int kept = -1; /* the descriptor that is opened again */

bool input_is(const char *path) { return path && strcmp(path, "-") == 0; }

enum { MEMORY = sizeof INPUT_MEMORY - 1 };

bool input_is_memory(const char *path) {
    return path && strncmp(path, INPUT_MEMORY, MEMORY) == 0 && (path[MEMORY] == 0 || path[MEMORY] == ':');
}

const char *input_label(const char *path) {
    if (!input_is_memory(path)) return input_is(path) ? label : path;
    const char *number = path + MEMORY, *label_of = *number ? strchr(number + 1, ':') : NULL;
    return label_of ? label_of + 1 : path;
}

static err cannot_read(void) {
    if (errno == EBADF) return FAIL_AT(E701, label, again, "it is closed");
    return FAIL_AT(E701, label, again, "cannot read it: %s", strerror(errno));
}

static bool write_all(int fd, const char *p, ssize_t n) {
    while (n > 0) {
        const ssize_t put = write(fd, p, (size_t)n);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) return false;
        p += put;
        n -= put;
    }
    return true;
}

/* Copies what comes to the memory behind `fd`. */
static err copy(int fd, char *piece) {
    for (;;) {
        const ssize_t got = read(STDIN_FILENO, piece, PIECE);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return cannot_read();
        if (got == 0) return 0;
        if (!write_all(fd, piece, got)) return FAIL_AT(E601, label, again, "no memory to keep it: %s", strerror(errno));
    }
}

static err keep_pipe(int *out) {
    char *piece = mem_alloc(PIECE);
    if (!piece) return -E601;
    const int fd = memfd_create(label, MFD_CLOEXEC);
    err e = fd < 0 ? FAIL_AT(E601, label, again, "no memory to keep it: %s", strerror(errno)) : copy(fd, piece);
    mem_free(piece);
    if (e < 0 && fd >= 0) close(fd);
    if (e >= 0) *out = fd;
    return e;
}

static int open_again(int fd) {
    char path[40];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return open(path, O_RDONLY | O_CLOEXEC);
}

static err keep(int *out) {
    struct stat st;
    if (fstat(STDIN_FILENO, &st) != 0) return cannot_read();
    if (isatty(STDIN_FILENO)) return FAIL_AT(E701, label, "cat FILE | stretto ..", "it is a terminal, neither a file nor a pipe");
    const bool whole = S_ISREG(st.st_mode) && lseek(STDIN_FILENO, 0, SEEK_CUR) == 0; /* another program may have read a part */
    *out = whole ? open_again(STDIN_FILENO) : -1;
    return *out >= 0 ? 0 : keep_pipe(out);
}

err input_open(int *fd) {
    pthread_mutex_lock(&lock);
    err e = kept < 0 ? keep(&kept) : 0;
    *fd = e >= 0 ? open_again(kept) : -1;
    if (e >= 0 && *fd < 0) e = cannot_read();
    pthread_mutex_unlock(&lock);
    return e;
}
