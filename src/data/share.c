/* share.c - see share.h. */
#define _GNU_SOURCE
#include "data/share.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/spill.h"

/* The head of the file: the one that was announced, and not another that has its number now. */
struct head {
    u64 token, bytes;
};

/* ------------------------------------------------------------------ fields -------------------------------------------------- */

static err ends_early(void) { return FAIL(E701, "the data that another process has read end early: it runs another build"); }

void share_bytes(struct share *x, void *p, i64 n) {
    if (x->e < 0 || n == 0) return;
    if (x->gives) {
        str_addn(&x->out, p, (size_t)n);
        x->e = str_ok(&x->out);
    } else if (x->end - x->at < n) {
        x->e = ends_early();
    } else {
        memcpy(p, x->at, (size_t)n);
        x->at += n;
    }
}

/* True if the giver has one. */
static bool share_has(struct share *x, const void *p) {
    u8 has = p != NULL;
    share_bytes(x, &has, 1);
    return has && x->e >= 0;
}

void share_list(struct share *x, struct arena *a, void **list, i64 n, size_t size) {
    const bool has = share_has(x, *list);
    if (!x->gives) *list = NULL;
    if (!has) return;
    if (!x->gives && !(*list = arena_array(a, n, size))) x->e = -E601;
    share_bytes(x, *list, n * (i64)size);
}

void share_text(struct share *x, struct arena *a, const char **text) {
    i64 n = x->gives && *text ? (i64)strlen(*text) + 1 : 0;
    share_bytes(x, &n, sizeof n);
    share_list(x, a, (void **)(uintptr_t)text, n, 1);
}

void share_texts(struct share *x, struct arena *a, const char ***list, i64 n) {
    const bool has = share_has(x, *list);
    if (!x->gives) *list = NULL;
    if (!has) return;
    if (!x->gives && !(*list = arena_array(a, n, sizeof **list))) x->e = -E601;
    for (i64 i = 0; i < n && x->e >= 0; i++) share_text(x, a, &(*list)[i]);
}

bool share_array(struct share *x, void **array, i64 n, size_t size) {
    struct spill_place at = {0};
    const bool has = share_has(x, *array);
    if (!x->gives) *array = NULL;
    if (!has) return false;
    if (x->gives && !spill_place_of(*array, &at)) at.bytes = 0;
    share_bytes(x, &at, sizeof at);
    if (x->e < 0 || (x->gives && at.bytes > 0)) return false;
    if (!x->gives) x->e = at.bytes > 0 ? spill_map(&at, array) : mem_new(array, n, size);
    if (at.bytes == 0) share_bytes(x, *array, n * (i64)size);
    return at.bytes > 0 && x->e >= 0;
}

/* ------------------------------------------------------------------ the file ------------------------------------------------ */

void share_give(struct share *x) {
    const struct head none = {0};
    *x = (struct share){.gives = true};
    str_addn(&x->out, (const char *)&none, sizeof none);
}

static bool write_all(int fd, const char *p, size_t n) {
    while (n > 0) {
        const ssize_t k = write(fd, p, n);
        if (k <= 0) return false;
        p += k;
        n -= (size_t)k;
    }
    return true;
}

err share_publish(struct share *x, struct share_place *out, int *fd) {
    const f64 now = clock_now();
    err e = x->e < 0 ? x->e : str_ok(&x->out);
    *out = (struct share_place){.pid = (i32)getpid(), .fd = -1, .bytes = (i64)x->out.len};
    memcpy(&out->token, &now, sizeof out->token);
    *fd = -1;
    if (e >= 0) {
        const struct head head = {out->token, x->out.len};
        memcpy(x->out.s, &head, sizeof head);
        *fd = memfd_create("stretto fields", MFD_CLOEXEC);
        if (*fd >= 0 && write_all(*fd, x->out.s, x->out.len)) out->fd = *fd;
    }
    str_free(&x->out);
    return e;
}

err share_open(struct share *x, const struct share_place *at) {
    struct head head = {0};
    *x = (struct share){0};
    const int fd = spill_open(at->pid, at->fd);
    if (fd < 0) return FAIL(E701, "the data that process %d has read cannot be opened: %s", at->pid, strerror(errno));
    const bool fits = at->bytes >= (i64)sizeof head && read(fd, &head, sizeof head) == (ssize_t)sizeof head &&
                      head.token == at->token && head.bytes == (u64)at->bytes;
    void *p = fits ? mmap(NULL, (size_t)at->bytes, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
    close(fd);
    if (p == MAP_FAILED) return FAIL(E701, "process %d is another one than that which has read the data", at->pid);
    x->map = p;
    x->bytes = (size_t)at->bytes;
    x->at = (const char *)p + sizeof head;
    x->end = (const char *)p + at->bytes;
    return 0;
}

err share_close(struct share *x) {
    if (x->e >= 0 && x->at != x->end) x->e = FAIL(E1, "%lld bytes of shared data were not taken", (long long)(x->end - x->at));
    munmap(x->map, x->bytes);
    return x->e;
}
