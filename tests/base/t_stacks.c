/* t_stacks.c - the stacks of all threads name their functions, whether they sleep or compute, and no thread is disturbed. */
#define _GNU_SOURCE
#include "t.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/stacks.h"
#include "base/symbol.h"

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static _Atomic i32 ready;
static _Atomic bool over;
static _Atomic u64 turns;

__attribute__((noinline)) static void t_stacks_waits(void) {
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
    __asm__ volatile("");
}

__attribute__((noinline)) static void t_stacks_computes(void) {
    while (!atomic_load(&over)) {
        atomic_fetch_add(&turns, 1);
        if (t_few()) nanosleep(&(struct timespec){.tv_nsec = 1000}, NULL);
    }
    __asm__ volatile("");
}

static void *sleeper(void *self) {
    (void)self;
    pthread_setname_np(pthread_self(), "sleeper");
    atomic_fetch_add(&ready, 1);
    t_stacks_waits();
    return NULL;
}

static void *worker(void *self) {
    (void)self;
    pthread_setname_np(pthread_self(), "worker");
    atomic_fetch_add(&ready, 1);
    t_stacks_computes();
    return NULL;
}

static void take(char *text, size_t size) {
    const int fd = open(t_file("stacks.txt", ""), O_RDWR | O_TRUNC);
    assert_true(fd >= 0);
    stacks_write(fd);
    const ssize_t n = pread(fd, text, size - 1, 0);
    assert_true(n > 0);
    text[n] = 0;
    close(fd);
}

/* The thread's part of the text names the function. */
static bool says(const char *text, const char *thread, const char *function) {
    const char *at = strstr(text, thread), *next = at ? strstr(at, "\nthread ") : NULL, *found = at ? strstr(at, function) : NULL;
    return found && (!next || found < next);
}

TEST(stacks_name_threads_and_functions) {
    static char text[1 << 16];
    pthread_t a, b;
    pthread_mutex_lock(&gate);
    assert_int_equal(pthread_create(&a, NULL, sleeper, NULL), 0);
    assert_int_equal(pthread_create(&b, NULL, worker, NULL), 0);
    while (atomic_load(&ready) < 2) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    for (i32 turn = 0; turn < 3; turn++) {
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
        take(text, sizeof text);
        if (!says(text, "sleeper, state", "t_stacks_waits+") || !says(text, "worker, state", "t_stacks_computes+") ||
            !says(text, "t_stacks, state", "stacks_write+"))
            fail_msg("%s", text);
    }
    const u64 before = atomic_load(&turns);
    pthread_mutex_unlock(&gate);
    while (atomic_load(&turns) == before) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL); /* it goes on */
    atomic_store(&over, true);
    assert_int_equal(pthread_join(a, NULL), 0);
    assert_int_equal(pthread_join(b, NULL), 0);
}

TEST(symbols_of_what_is_nowhere) {
    char name[SYMBOL];
    symbol_name(NULL, name);
    assert_string_equal(name, "?");
    symbol_name((const char *)(uintptr_t)t_stacks_waits + 1, name);
    assert_non_null(strstr(name, "t_stacks_waits+0x1 "));
}

T_MAIN(cmocka_unit_test(stacks_name_threads_and_functions), cmocka_unit_test(symbols_of_what_is_nowhere))
