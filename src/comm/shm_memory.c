/* shm_memory.c - shared memory of the ranks of a host: regions and segments.
 *
 * The memory is anonymous (memfd) and peers open it through /proc/PID/fd. So it needs no space in /dev/shm and disappears with
 * its last process. A peer's segment is mapped when the first message refers to it, and unmapped after its owner has freed it.
 * Pages are taken when they are first touched: a rank may use a part of a buffer only. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "comm/shm.h"

bool shm_map_new(struct mapping *m, size_t bytes) {
    *m = (struct mapping){.bytes = bytes};
    m->fd = memfd_create("stretto", MFD_CLOEXEC);
    void *p = MAP_FAILED;
    if (m->fd >= 0 && ftruncate(m->fd, (off_t)bytes) == 0) p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, m->fd, 0);
    if (p != MAP_FAILED) m->base = p;
    else if (m->fd >= 0) close(m->fd);
    return m->base != NULL;
}

bool shm_map_peer(struct mapping *m, i32 pid, i32 fd, u64 bytes, int rights) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, fd);
    *m = (struct mapping){.bytes = bytes, .fd = -1};
    /* the fd number may refer to another file by now (shm_find): O_NONBLOCK avoids blocking on a pipe */
    const int at = open(path, (rights & PROT_WRITE ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (at < 0) return false;
    void *p = lseek(at, 0, SEEK_END) >= (off_t)bytes ? mmap(NULL, bytes, rights, MAP_SHARED, at, 0) : MAP_FAILED;
    close(at);
    if (p != MAP_FAILED) m->base = p;
    return m->base != NULL;
}

void shm_unmap(struct mapping *m) {
    if (!m->base) return;
    munmap(m->base, m->bytes);
    if (m->fd >= 0) close(m->fd);
    *m = (struct mapping){.fd = -1};
}

void shm_close_peer(struct shm *x, i32 peer) {
    struct peer *p = &x->peer[peer];
    for (i32 i = 0; i < SHM_SEGMENTS; i++) shm_unmap(&p->seen[i]);
    shm_unmap(&p->region);
}

static u64 serial_of(const struct peer *p, i32 k) {
    return atomic_load_explicit(&((struct region *)p->region.base)->segment[k].serial, memory_order_acquire);
}

/* Unmaps segments that peers have freed. */
static void unmap_freed(struct shm *x) {
    for (i32 k = 0; k < x->size; k++) {
        struct peer *p = &x->peer[k];
        for (i32 i = 0; p->region.base && i < SHM_SEGMENTS; i++)
            if (p->seen[i].base && p->seen[i].serial != serial_of(p, i)) shm_unmap(&p->seen[i]);
    }
}

void *shm_alloc(void *self, size_t bytes) {
    struct shm *x = self;
    struct region *b = x->region.base;
    i32 k = 0;
    unmap_freed(x);
    while (k < SHM_SEGMENTS && x->own[k].base) k++;
    if (k == SHM_SEGMENTS || bytes == 0 || !shm_map_new(&x->own[k], bytes)) return NULL;
    b->segment[k].fd = x->own[k].fd;
    b->segment[k].bytes = bytes;
    atomic_store_explicit(&b->segment[k].serial, ++x->serial, memory_order_release);
    return x->own[k].base;
}

bool shm_release(void *self, void *p) {
    struct shm *x = self;
    struct region *b = x->region.base;
    for (i32 k = 0; p && k < SHM_SEGMENTS; k++) {
        if (x->own[k].base != p) continue;
        atomic_store(&b->segment[k].serial, 0);
        shm_unmap(&x->own[k]);
        unmap_freed(x);
        return true;
    }
    return false;
}

bool shm_zero(void *self, void *p) {
    struct shm *x = self;
    for (i32 k = 0; p && k < SHM_SEGMENTS; k++) {
        if (x->own[k].base != p) continue;
        if (madvise(p, x->own[k].bytes, MADV_REMOVE) != 0) memset(p, 0, x->own[k].bytes);
        return true;
    }
    return false;
}

/* The reason decides the message: too many open files or mappings are limits that many ranks in one process reach. */
static err cannot_open(const struct shm *x, i32 peer, int why) {
    const char *fix = strcmp(x->inside->name, "mpi") == 0 ? "STRETTO_NEAR=off   (messages by MPI alone)" :
                                                            "STRETTO_NEAR=off   (messages from thread to thread)";
    const i32 pid = x->peer[peer].pid;
    if (why == EMFILE || why == ENFILE)
        return FAIL_AT(E601, NULL, fix, "memory of rank %d (pid %d) cannot be opened: %s (ulimit -n)", peer, pid, strerror(why));
    if (why == ENOMEM)
        return FAIL_AT(E601, NULL, fix, "memory of rank %d (pid %d) cannot be mapped: %s, or more mappings than "
                       "vm.max_map_count allows", peer, pid, strerror(why));
    return FAIL_AT(E801, NULL, fix, "memory of rank %d (pid %d) cannot be opened%s%s", peer, pid, why ? ": " : "",
                   why ? strerror(why) : "");
}

/* Maps a peer's segment. A dying process closes its files before it is reported dead: with recovery that is no error. If the
 * segment was freed meanwhile and the fd reused, the serial has changed and the mapping is dropped. */
static err open_segment(struct shm *x, i32 peer, i32 k, u64 serial) {
    struct peer *p = &x->peer[peer];
    struct region *b = p->region.base;
    struct mapping *m = &p->seen[k];
    unmap_freed(x);
    shm_unmap(m);
    errno = 0;
    const bool open = shm_map_peer(m, p->pid, b->segment[k].fd, b->segment[k].bytes, PROT_READ);
    const int why = open ? 0 : errno;
    const bool gone = why == ENOENT || why == ESRCH || why == EACCES || why == EPERM; /* its region could be opened */
    if (serial_of(p, k) != serial) shm_unmap(m);
    else if (!open && !(gone && x->recovers)) return cannot_open(x, peer, why);
    else m->serial = serial;
    return 0;
}

/* The entry may hold another segment by now, or none. */
err shm_find(struct shm *x, i32 peer, const struct slot *s, const char **from) {
    struct peer *p = &x->peer[peer];
    const i32 k = s->segment % SHM_SEGMENTS;
    const struct mapping *m = &p->seen[k];
    const u64 serial = serial_of(p, k);
    *from = NULL;
    if (serial == 0) return 0;
    if (!m->base || m->serial != serial) TRY(open_segment(x, peer, k, serial));
    if (m->base) *from = (const char *)m->base + s->at;
    return 0;
}
