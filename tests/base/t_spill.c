/* t_spill.c - arrays beyond --memory: the bytes that were written, the resident memory, threads, a full disk, a real crash;
 * arrays that other processes map. */
#define _GNU_SOURCE
#include "t.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/pager.h"
#include "base/spill.h"

enum { MIB = 1 << 20, ROOM = 16 * MIB, THREADS = 4 };

/* A number of /proc/self/status in bytes. */
static i64 status_of(const char *field) {
    char line[256];
    i64 kib = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, field, strlen(field)) == 0) kib = strtol(line + strlen(field) + 1, NULL, 10);
    if (f) fclose(f);
    return kib * 1024;
}

/* The limit that leaves ROOM beside what the process holds now; the peak begins anew. */
static i64 limit_here(void) {
    const i64 limit = status_of("VmRSS") + ROOM;
    mem_set_limit(limit);
    FILE *f = fopen("/proc/self/clear_refs", "w");
    if (f) {
        fputs("5", f);
        fclose(f);
    }
    return limit;
}

static bool peak_counts(void) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return false; /* the shadow is resident, too */
#else
    return access("/proc/self/clear_refs", W_OK) == 0;
#endif
}

static u64 value_of(i64 i) { return (u64)i * 0x9E3779B97F4A7C15u; }

TEST(array_without_a_limit_is_heap) {
    u64 *v;
    const i64 live = mem_stats().live;
    T_OK(spill_new((void **)&v, MIB, sizeof *v));
    assert_int_equal(pager_stats().areas, 0);
    assert_int_equal(mem_stats().live - live, 8 * MIB);
    mem_free(v);
}

TEST(array_that_is_small_is_heap) {
    u64 *v;
    limit_here();
    T_OK(spill_new((void **)&v, 100, sizeof *v));
    assert_int_equal(pager_stats().areas, 0);
    mem_free(v);
    mem_set_limit(0);
}

TEST(folder_that_is_absent_is_refused) {
    u64 *v;
    char before[4096];
    snprintf(before, sizeof before, "%s", getenv("TMPDIR") ? getenv("TMPDIR") : "");
    setenv("TMPDIR", "/no/such/folder", 1);
    limit_here();
    T_FAILS(spill_new((void **)&v, MIB, sizeof *v), E702);
    assert_non_null(strstr(err_last()->where, "/no/such/folder"));
    assert_non_null(strstr(err_last()->fix, "TMPDIR="));
    if (before[0])
        setenv("TMPDIR", before, 1);
    else
        unsetenv("TMPDIR");
    mem_set_limit(0);
}

TEST(disk_that_is_full_is_refused) {
    u64 *v;
    limit_here();
    setenv("STRETTO_FAULT", "*:0:spill=enospc", 1);
    T_FAILS(spill_new((void **)&v, MIB, sizeof *v), E703);
    assert_non_null(strstr(err_last()->text, "8.0 MiB"));
    unsetenv("STRETTO_FAULT");
    mem_set_limit(0);
}

TEST(array_beyond_the_limit_keeps_its_bytes) {
    u64 *v;
    const i64 n = (t_few() ? 4 : 10) * ROOM / 8, limit = limit_here();
    T_OK(spill_new((void **)&v, n, sizeof *v));
    for (i64 i = 0; i < n; i += 999) assert_int_equal(v[i], 0);
    for (i64 i = 0; i < n; i++) v[i] = value_of(i);
    for (i64 i = n - 1; i >= 0; i--)
        if (v[i] != value_of(i)) fail_msg("backwards, element %lld", (long long)i);
    for (i64 k = 0, i = 1; k < 20000; k++, i = (i * 48271 + 11) % n)
        if (v[i] != value_of(i)) fail_msg("at random, element %lld", (long long)i);
    const struct pager_stats s = pager_stats();
    assert_int_equal(s.areas, 1);
    assert_int_equal(s.bytes, n * 8);
    assert_true(s.resident <= ROOM);
    assert_true(s.faults > n * 8 / ROOM);
    if (peak_counts() && status_of("VmHWM") > limit + limit / 20)
        fail_msg("peak %lld of %lld bytes", (long long)status_of("VmHWM"), (long long)limit);
    mem_free(v);
    assert_int_equal(pager_stats().areas, 0);
    assert_int_equal(pager_stats().resident, 0);
    mem_set_limit(0);
}

TEST(heap_that_grows_takes_pages_away) {
    u64 *v;
    char *heap;
    const i64 n = 2 * ROOM / 8, limit = limit_here();
    T_OK(spill_new((void **)&v, n, sizeof *v));
    for (i64 i = 0; i < n; i++) v[i] = value_of(i);
    const i64 before = pager_stats().resident;
    T_OK(mem_new((void **)&heap, ROOM / 2, 1));
    assert_true(pager_stats().resident <= lmax(2 * MIB, before - ROOM / 4));
    memset(heap, 1, ROOM / 2);
    if (peak_counts()) assert_true(status_of("VmHWM") <= limit + limit / 20);
    mem_free(heap);
    mem_free(v);
    mem_set_limit(0);
}

TEST(block_of_zeros_and_a_larger_copy) {
    u64 *v, *w;
    limit_here();
    T_OK(spill_new((void **)&v, MIB, sizeof *v));
    for (i64 i = 0; i < MIB; i++) v[i] = 7;
    mem_zero(v);
    for (i64 i = 0; i < MIB; i++) assert_int_equal(v[i], 0);
    v[5] = 9;
    w = mem_realloc(v, 8 * MIB + 8);
    assert_non_null(w);
    assert_int_equal(w[5], 9);
    mem_free(w);
    mem_set_limit(0);
}

struct part {
    u64 *v;
    i64 n;
    i32 k;
    i64 wrong;
};

/* Writes every THREADS-th stretch of 5000 elements, then reads all that it wrote. */
static void *work(void *arg) {
    struct part *p = arg;
    for (i32 turn = 0; turn < 2; turn++)
        for (i64 from = (i64)p->k * 5000; from < p->n; from += (i64)THREADS * 5000)
            for (i64 i = from; i < lmin(from + 5000, p->n); i++)
                if (turn == 0)
                    p->v[i] = value_of(i);
                else
                    p->wrong += p->v[i] != value_of(i);
    return NULL;
}

TEST(threads_share_the_limit) {
    pthread_t thread[THREADS];
    struct part part[THREADS];
    const i64 n = (t_few() ? 2 : 5) * ROOM / 8, limit = limit_here();
    u64 *v;
    T_OK(spill_new((void **)&v, n, sizeof *v));
    for (i32 k = 0; k < THREADS; k++) {
        part[k] = (struct part){v, n, k, 0};
        assert_int_equal(pthread_create(&thread[k], NULL, work, &part[k]), 0);
    }
    for (i32 k = 0; k < THREADS; k++) pthread_join(thread[k], NULL);
    for (i32 k = 0; k < THREADS; k++) assert_int_equal(part[k].wrong, 0);
    if (peak_counts()) assert_true(status_of("VmHWM") <= limit + limit / 20);
    mem_free(v);
    mem_set_limit(0);
}

TEST(peek_reads_what_is_not_resident) {
    u64 *v, copy[8] = {0};
    const i64 n = 4 * ROOM / 8;
    i64 copies = 0;
    assert_ptr_equal(pager_peek(copy, 8, NULL), copy);
    limit_here();
    T_OK(spill_new((void **)&v, n, sizeof *v));
    for (i64 i = 0; i < n; i++) v[i] = value_of(i);
    const i64 faults = pager_stats().faults;
    for (i64 k = 0, i = 1; k < 1000; k++, i = (i * 48271 + 11) % (n - 8)) {
        const u64 *at = pager_peek(v + i, sizeof copy, copy);
        copies += at == copy;
        for (i32 j = 0; j < 8; j++) assert_int_equal(at[j], value_of(i + j));
    }
    assert_true(copies > 500);
    assert_true(pager_stats().faults - faults <= 1000 - copies);
    mem_free(v);
    mem_set_limit(0);
}

TEST(file_takes_bytes_that_a_system_call_cannot_read) {
    struct file_out f;
    char path[4200], *back;
    i64 size;
    u64 *v;
    const i64 n = 2 * ROOM / 8;
    snprintf(path, sizeof path, "%s/out", t_dir());
    limit_here();
    T_OK(spill_new((void **)&v, n, sizeof *v));
    for (i64 i = 0; i < n; i++) v[i] = value_of(i);
    assert_true(pager_holds(v));
    T_OK(file_create(path, &f));
    T_OK(file_write(&f, v, n * 8));
    T_OK(file_commit(&f));
    mem_set_limit(0);
    T_OK(file_load(path, 4 * ROOM, &back, &size));
    assert_int_equal(size, n * 8);
    assert_memory_equal(back, v, (size_t)size);
    mem_free(back);
    mem_free(v);
}

TEST(arena_frees_its_arrays) {
    struct arena a = {0};
    u64 *v, *w;
    limit_here();
    v = arena_spill(&a, MIB, sizeof *v);
    w = arena_array(&a, 10, sizeof *w);
    assert_true(v && w);
    assert_int_equal(pager_stats().areas, 1);
    assert_int_equal((uintptr_t)v % 64, 0);
    v[MIB - 1] = w[9] = 3;
    arena_free(&a);
    assert_int_equal(pager_stats().areas, 0);
    mem_set_limit(0);
}

/* Bytes of the file in memory that the arrays of spill_share lie in; -1 = there is none. */
static i64 bytes_in_memory(void) {
    char link[64], name[64];
    struct stat st;
    for (int fd = 3; fd < 64; fd++) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        const ssize_t n = readlink(link, name, sizeof name - 1);
        name[n > 0 ? n : 0] = 0;
        if (strstr(name, "stretto data") && fstat(fd, &st) == 0) return (i64)st.st_blocks * 512;
    }
    return -1;
}

TEST(array_to_share_lies_in_a_file) {
    u64 *v, *small;
    const i64 live = mem_stats().live;
    spill_share(true);
    T_OK(spill_new((void **)&v, MIB, sizeof *v));
    T_OK(spill_new((void **)&small, 100, sizeof *small));
    spill_share(false);
    assert_int_equal(mem_stats().live - live, 100 * 8);
    for (i64 i = 0; i < MIB; i++) assert_int_equal(v[i], 0);
    for (i64 i = 0; i < MIB; i++) v[i] = value_of(i);
    assert_true(bytes_in_memory() >= 8 * MIB);
    mem_free(v);
    assert_true(bytes_in_memory() >= 0);
    if (!t_few()) assert_true(bytes_in_memory() < MIB); /* nobody else has it; an emulator does not pass on MADV_REMOVE */
    struct spill_place at;
    assert_false(spill_place_of(small, &at));
    assert_false(spill_place_of(NULL, &at));
    mem_free(small);
}

/* Reads every element; false where one is not as expected. */
static bool holds(const u64 *v, i64 n) {
    for (i64 i = 0; i < n; i++)
        if (v[i] != value_of(i)) return false;
    return true;
}

/* In another process: maps the array, says so, waits until its owner has freed it, and reads it again.  Status 0 = all is
 * right. */
static int reads_it(const struct spill_place *at, i64 n, int says, int waits) {
    u64 *v;
    char byte = 0;
    const i64 areas = pager_stats().areas; /* of the parent, which this process is a copy of */
    if (spill_map(at, (void **)&v) < 0) return 1;
    if (!holds(v, n)) return 2;
    if (write(says, &byte, 1) != 1 || read(waits, &byte, 1) != 1) return 3;
    if (!holds(v, n)) return 4;
    mem_free(v);
    return pager_stats().areas == areas ? 0 : 5;
}

static void another_process_reads(i64 n) {
    struct spill_place at;
    int there[2], back[2], status = -1;
    char byte = 0;
    u64 *v;
    spill_share(true);
    T_OK(spill_new((void **)&v, n, sizeof *v));
    spill_share(false);
    for (i64 i = 0; i < n; i++) v[i] = value_of(i);
    assert_true(spill_place_of(v, &at));
    assert_int_equal(pipe(there) | pipe(back), 0);
    const pid_t child = fork();
    if (child == 0) _exit(reads_it(&at, n, back[1], there[0]));
    close(back[1]);
    const bool mapped = read(back[0], &byte, 1) == 1;
    mem_free(v);
    assert_int_equal(write(there[1], &byte, 1), 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0);
    assert_true(mapped);
    close(back[0]);
    close(there[0]);
    close(there[1]);
}

TEST(array_is_read_by_another_process) { another_process_reads(MIB); }

TEST(array_beyond_the_limit_is_read_by_another_process) {
    limit_here();
    another_process_reads(4 * ROOM / 8);
    mem_set_limit(0);
}

TEST(array_of_a_process_that_has_ended_is_refused) {
    const pid_t child = fork();
    u64 *v;
    if (child == 0) _exit(0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    const struct spill_place at = {.pid = child, .fd = 3, .bytes = 1 << 20};
    T_FAILS(spill_map(&at, (void **)&v), E701);
}

/* A bad address goes to the handler that was there before the pager: here the default, which ends the process. */
TEST(fault_elsewhere_is_a_crash) {
    u64 *v;
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
        volatile u64 *bad = (u64 *)(uintptr_t)4096;
        signal(SIGSEGV, SIG_DFL);
        limit_here();
        if (spill_new((void **)&v, MIB, sizeof *v) < 0) _exit(1);
        *bad = v[0];
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
}

T_MAIN(cmocka_unit_test(array_without_a_limit_is_heap), cmocka_unit_test(array_that_is_small_is_heap),
       cmocka_unit_test(folder_that_is_absent_is_refused), cmocka_unit_test(disk_that_is_full_is_refused),
       cmocka_unit_test(array_beyond_the_limit_keeps_its_bytes), cmocka_unit_test(heap_that_grows_takes_pages_away),
       cmocka_unit_test(block_of_zeros_and_a_larger_copy), cmocka_unit_test(threads_share_the_limit),
       cmocka_unit_test(peek_reads_what_is_not_resident), cmocka_unit_test(file_takes_bytes_that_a_system_call_cannot_read),
       cmocka_unit_test(array_to_share_lies_in_a_file), cmocka_unit_test(array_is_read_by_another_process),
       cmocka_unit_test(array_beyond_the_limit_is_read_by_another_process),
       cmocka_unit_test(array_of_a_process_that_has_ended_is_refused), cmocka_unit_test(arena_frees_its_arrays),
       cmocka_unit_test(fault_elsewhere_is_a_crash))
