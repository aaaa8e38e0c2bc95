/* mem.c - see mem.h. A 64-byte header before each block stores its size. */
#define _GNU_SOURCE
#include "base/mem.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/pager.h"

enum { HEADER = 64, LINE = 64, HUGE_FROM = 4 << 20, HUGE_PAGE = 2 << 20, PAGE = 4096, TRIM_FROM = 256 << 10 };

/* A sanitizer must see where large blocks end; it gets them from the heap. */
#if defined(__SANITIZE_ADDRESS__)
enum { MAPPED = 0 };
#else
enum { MAPPED = 1 };
#endif

struct header {
    size_t size;
    size_t mapped; /* bytes from the header on, of a block with pages of its own; else 0 */
    size_t file;   /* bytes of the mapping of a file that holds the block behind its first page, else 0 */
    bool kept;     /* the file keeps these bytes when the block is freed: other processes map them, too */
};

static _Atomic i64 live, peak, calls, limit, fail_in;

static bool refused_by_test(void) {
    if (atomic_load_explicit(&fail_in, memory_order_relaxed) <= 0) return false;
    return atomic_fetch_sub(&fail_in, 1) == 1;
}

static void count(i64 bytes) {
    i64 now = atomic_fetch_add(&live, bytes) + bytes;
    i64 old = atomic_load(&peak);
    while (now > old && !atomic_compare_exchange_weak(&peak, &old, now)) {
    }
}

/* Fresh pages are zero, and memory is taken where they are touched first: by the worker that uses them, or never. */
static void *map_pages(size_t total) {
    const size_t room = total + HUGE_PAGE;
    char *all = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) return NULL;
    char *block = all + (-(uintptr_t)all & (HUGE_PAGE - 1)), *end = block + total;
    if (block > all) munmap(all, (size_t)(block - all));
    if (all + room > end) munmap(end, (size_t)(all + room - end));
    madvise(block, total, MADV_HUGEPAGE);
    return block;
}

static struct header *new_block(size_t size) {
    const bool large = MAPPED && size >= HUGE_FROM;
    const size_t align = large ? HUGE_PAGE : LINE, total = (size + HEADER + align - 1) / align * align;
    struct header *block = large ? map_pages(total) : aligned_alloc(align, total);
    if (!block) return NULL;
    if (!large) memset(block, 0, size + HEADER);
    block->size = size;
    block->mapped = large ? total : 0;
    block->file = 0;
    return block;
}

void *mem_alloc(size_t size) {
    atomic_fetch_add(&calls, 1);
    i64 cap = atomic_load(&limit);
    if (refused_by_test() || size > (size_t)1 << 46) {
        FAIL(E601, "%zu bytes of memory were refused", size);
        return NULL;
    }
    if (cap > 0 && atomic_load(&live) + (i64)size > cap) {
        FAIL_AT(E601, NULL, "a larger --memory, a smaller --batch or a shorter --context",
                "%.1f MiB more are needed, --memory allows %.1f MiB and %.1f are in use", (f64)size / 1048576.0,
                (f64)cap / 1048576.0, (f64)atomic_load(&live) / 1048576.0);
        return NULL;
    }
    struct header *block = new_block(size);
    if (!block) {
        FAIL(E601, "%.1f MiB of memory were refused by the system", (f64)size / 1048576.0);
        return NULL;
    }
    count((i64)size);
    if (cap > 0 && (size >= TRIM_FROM || size > (size_t)atomic_load(&live) % TRIM_FROM)) pager_trim();
    return (char *)block + HEADER;
}

void *mem_wrap(void *mapping, size_t bytes, size_t size) {
    struct header *block = (struct header *)(void *)((char *)mapping + PAGE - HEADER);
    *block = (struct header){.size = size, .file = bytes};
    return (char *)mapping + PAGE;
}

static struct header *header_of(void *p) { return (struct header *)(void *)((char *)p - HEADER); }

size_t mem_share(void *p) {
    struct header *block = header_of(p);
    if (block->file) block->kept = true;
    return block->file;
}

void mem_free(void *p) {
    if (!p) return;
    struct header *block = header_of(p);
    if (block->file) {
        char *page = (char *)p - PAGE;
        const size_t bytes = block->file;
        pager_drop(p, !block->kept);
        if (!block->kept) madvise(page, bytes, MADV_REMOVE);
        munmap(page, bytes);
        return;
    }
    atomic_fetch_sub(&live, (i64)block->size);
    if (block->mapped)
        munmap(block, block->mapped);
    else
        free(block);
}

void mem_release(void *p, size_t lo, size_t hi) {
    const uintptr_t at = (uintptr_t)p, page = PAGE;
    const uintptr_t from = (at + lo + page - 1) / page * page, to = (at + hi) / page * page;
    if (header_of(p)->mapped && to > from) madvise((char *)p + (from - at), to - from, MADV_DONTNEED);
}

void mem_zero(void *p) {
    const struct header *block = header_of(p);
    char *from = p, *end = from + block->size;
    if (block->mapped) {
        char *pages = from + PAGE - HEADER; /* the header stays */
        madvise(pages, (size_t)(end - pages) / PAGE * PAGE, MADV_DONTNEED);
        memset(from, 0, PAGE - HEADER);
        from = pages + (size_t)(end - pages) / PAGE * PAGE;
    }
    memset(from, 0, (size_t)(end - from));
}

void *mem_realloc(void *p, size_t size) {
    void *q = mem_alloc(size);
    if (!q || !p) return q;
    size_t old = header_of(p)->size;
    memcpy(q, p, old < size ? old : size);
    mem_free(p);
    return q;
}

char *mem_strdup(const char *s) {
    size_t n = strlen(s) + 1;
    char *copy = mem_alloc(n);
    if (copy) memcpy(copy, s, n);
    return copy;
}

err mem_check(i64 n, size_t size) {
    if (n >= 0 && (n == 0 || (u64)n <= ((u64)1 << 46) / size)) return 0;
    return FAIL(E601, "%lld elements of %zu bytes do not fit in memory", (long long)n, size);
}

err mem_new(void **out, i64 n, size_t size) {
    TRY(mem_check(n, size));
    *out = mem_alloc((size_t)n * size);
    return *out ? 0 : -E601;
}

err mem_grow(void **array, i64 n, i64 *cap, size_t size) {
    if (n < *cap) return 0;
    i64 more = *cap ? *cap * 2 : 64;
    while (more <= n) more *= 2; /* where it grows by more than one element at a time */
    void *q = mem_realloc(*array, (size_t)more * size);
    if (!q) return -E601;
    *array = q;
    *cap = more;
    return 0;
}

struct mem_stats mem_stats(void) {
    return (struct mem_stats){atomic_load(&live), atomic_load(&peak), atomic_load(&calls)};
}

void mem_reset_peak(void) { atomic_store(&peak, atomic_load(&live)); }
i64 mem_limit(void) { return atomic_load(&limit); }

void mem_set_limit(i64 bytes) {
    atomic_store(&limit, bytes);
    pager_limit(bytes, &live);
}

void mem_fail_nth(i64 n) { atomic_store(&fail_in, n); }
