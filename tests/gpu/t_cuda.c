/* t_cuda.c - the driver cuda without an NVIDIA GPU: libcuda is cuda_on_opencl.c, NVRTC is fake_nvrtc.c.  It needs OpenCL. */
#define _GNU_SOURCE
#include "t.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/cuda_api.h"
#include "gpu/gpu.h"
#include "gpu/text/args.h"

enum { HEAP = 32 << 20, FLOATS = HEAP / 4, QUEUES = 3 };

static const struct gpu_driver *driver;
static f32 from[FLOATS], to[FLOATS];

/* Sets a variable of the environment, NULL = none. */
static void set(const char *name, const char *value) {
    if (value) setenv(name, value, 1);
    else unsetenv(name);
}

static void *opened(void) {
    void *dev;
    T_OK(driver->open(0, QUEUES, HEAP, &dev));
    return dev;
}

static i32 list(struct gpu_card *card, char why[GPU_WHY]) {
    why[0] = '\0';
    return driver->cards(card, 4, why);
}

static struct gpu_rows floats(i64 at, i64 n) { return (struct gpu_rows){.bytes = 4 * n, .n = 1, .at = 4 * at}; }

static void put_floats(void *dev, i32 lane, i64 at, i64 n, const f32 *values) {
    const struct gpu_rows r = floats(at, n);
    T_OK(driver->put(dev, lane, &r, values));
}

static void get_floats(void *dev, i32 lane, i64 at, i64 n, f32 *values) {
    const struct gpu_rows r = floats(at, n);
    T_OK(driver->get(dev, lane, &r, values));
}

/* y += x for n floats; more groups than needed do no harm. */
static err add(void *dev, i32 lane, i64 y, i64 x, i64 n) {
    const struct element_args a = {.at_y = y, .at_x = x, .n = n, .how = ELEMENT_ADD};
    const struct gpu_size groups = {(i32)((n + 255) / 256), 1, 1}, local = {256, 1, 1};
    return driver->launch(dev, lane, GPU_elementwise, groups, local, &a, sizeof a);
}

/* ------------------------------------------------------------------ devices ------------------------------------------------- */

TEST(the_device_is_described) {
    struct gpu_card card[4];
    char why[GPU_WHY];
    assert_int_equal(list(card, why), 1);
    assert_string_equal(card[0].name, "test device (OpenCL)");
    assert_string_equal(card[0].platform, "CUDA 13.0");
    assert_true(card[0].memory > HEAP && card[0].largest == card[0].memory && card[0].units == 2 && !card[0].lacks);
}

TEST(what_is_absent_is_named) {
    static const struct {
        const char *variable, *value, *usual, *why;
    } absent[] = {{"STRETTO_CUDA", "/nowhere/libcuda.so.1", CUDA_ON_OPENCL, "NVIDIA's driver is not installed"},
                  {"STRETTO_NVRTC", "/nowhere/libnvrtc.so", FAKE_NVRTC, "NVRTC, the compiler of the kernels, is not installed"},
                  {"STRETTO_CUDA", FAKE_NVRTC, CUDA_ON_OPENCL, "it has no cuInit"},
                  {"CUDA_TEST_DEVICES", "0", NULL, "the driver finds no GPU"},
                  {"CUDA_TEST_FAIL", "cuInit", NULL, "cuInit: unknown error (CUDA_ERROR_UNKNOWN, 999)"}};
    struct gpu_card card[4];
    char why[GPU_WHY];
    i64 bytes;
    void *dev;
    for (size_t i = 0; i < COUNT(absent); i++) {
        set(absent[i].variable, absent[i].value);
        assert_int_equal(list(card, why), 0);
        if (!strstr(why, absent[i].why)) fail_msg("\"%s\" does not say \"%s\"", why, absent[i].why);
        T_FAILS(driver->open(0, 1, HEAP, &dev), 831);
        assert_null(dev);
        T_FAILS(driver->free_memory(0, &bytes), 831);
        set(absent[i].variable, absent[i].usual);
    }
}

TEST(memory_is_counted_and_refused) {
    i64 before, inside;
    void *dev;
    T_OK(driver->free_memory(0, &before));
    dev = opened();
    T_OK(driver->free_memory(0, &inside));
    assert_true(before - inside == HEAP);
    put_floats(dev, 0, 0, 10, from); /* free_memory has left this thread without a context */
    driver->close(dev);
    T_FAILS(driver->open(0, 1, (i64)1 << 50, &dev), 601);
    assert_non_null(strstr(err_last()->text, "refuses 1073741824 MiB"));
    assert_null(dev);
    T_OK(driver->free_memory(0, &inside));
    assert_true(inside == before);
}

TEST(failures_name_the_call) {
    static const char *const call[] = {"cuDeviceGet", "cuDevicePrimaryCtxRetain", "cuCtxSetCurrent", "cuStreamCreate",
                                       "cuMemAlloc",  "cuMemsetD8Async",          "cuModuleLoadData"};
    void *dev;
    for (size_t i = 0; i < COUNT(call); i++) {
        set("CUDA_TEST_FAIL", strcmp(call[i], "cuMemAlloc") == 0 ? "cuMemAlloc_v2" : call[i]);
        T_FAILS(driver->open(0, QUEUES, HEAP, &dev), 831);
        assert_non_null(strstr(err_last()->text, call[i]));
        assert_null(dev);
    }
    set("CUDA_TEST_FAIL", NULL);
    dev = opened();
    set("CUDA_TEST_FAIL", "cuLaunchKernel");
    T_FAILS(add(dev, 0, 0, 0, 300), 831);
    assert_string_equal(err_last()->where, "cuda:0 (test device (OpenCL))");
    assert_string_equal(err_last()->text, "cuLaunchKernel elementwise, 2 x 1 x 1 groups of 256 x 1 x 1: unknown error "
                                          "(CUDA_ERROR_UNKNOWN, 999)");
    set("CUDA_TEST_FAIL", NULL);
    driver->close(dev);
}

/* ------------------------------------------------------------------ programs ------------------------------------------------ */

TEST(programs_are_compiled_once) {
    void *dev;
    char key[512];
    const char damaged[] = "//cubin sm_80\n";
    set("STRETTO_CACHE", t_dir());
    driver->close(opened());
    set("CUDA_TEST_FAIL", "nvrtcCompileProgram");
    driver->close(opened());
    snprintf(key, sizeof key, "cuda test device (OpenCL) sm_90 driver 13000 nvrtc 13.0 --gpu-architecture=sm_90 %s",
             cuda_options());
    gpu_program_save(key, damaged, sizeof damaged); /* one that this device does not load */
    T_FAILS(driver->open(0, QUEUES, HEAP, &dev), 831);
    assert_non_null(strstr(err_last()->text, "does not compile the kernels: error: CUDA_TEST_FAIL is set"));
    set("CUDA_TEST_FAIL", NULL);
    driver->close(opened());
    set("CUDA_TEST_FAIL", "nvrtcCompileProgram");
    driver->close(opened());
    set("CUDA_TEST_FAIL", NULL);
    set("STRETTO_CACHE", "off");
}

TEST(newer_devices_get_ptx_and_older_ones_an_error) {
    void *dev;
    set("CUDA_TEST_CC", "120");
    driver->close(opened());
    set("CUDA_TEST_CC", "60");
    T_FAILS(driver->open(0, QUEUES, HEAP, &dev), 831);
    assert_non_null(strstr(err_last()->text, "compiles for sm_75 and newer, the device has sm_60"));
    set("CUDA_TEST_CC", NULL);
}

TEST(an_older_driver_that_refuses_a_program_is_named) {
    void *dev;
    set("CUDA_TEST_VERSION", "12040");
    driver->close(opened()); /* an older driver may take it */
    set("CUDA_TEST_FAIL", "cuModuleLoadData");
    T_FAILS(driver->open(0, QUEUES, HEAP, &dev), 831);
    assert_string_equal(err_last()->text, "the driver, for CUDA 12.4, refuses what NVRTC 13.0 has compiled (999)");
    assert_non_null(strstr(err_last()->fix, "an NVRTC of CUDA 12 "));
    set("CUDA_TEST_FAIL", NULL);
    set("CUDA_TEST_VERSION", NULL);
}

/* ------------------------------------------------------------------ transfers ----------------------------------------------- */

/* Puts rows into a zeroed heap, and gets them back in other pitches. */
static void check_rows(void *dev, i64 bytes, i64 n, i64 pitch, i64 host_pitch, i64 back_pitch) {
    const struct gpu_rows up = {bytes, n, 4096, pitch, host_pitch}, down = {bytes, n, 4096, pitch, back_pitch};
    T_OK(driver->put(dev, 1, &up, from));
    memset(to, 0, sizeof to);
    T_OK(driver->get(dev, 1, &down, to));
    for (i64 i = 0; i < n; i++)
        assert_memory_equal((const char *)to + i * back_pitch, (const char *)from + i * host_pitch, (size_t)bytes);
    if (n > 1 && back_pitch > bytes) assert_true(((const char *)to)[bytes] == 0); /* between the rows */
}

TEST(rows_come_back_in_any_pitch) {
    for (i64 i = 0; i < FLOATS; i++) from[i] = (f32)(i % 100003) + 1;
    void *dev = opened();
    get_floats(dev, 0, 0, FLOATS, to);
    for (i64 i = 0; i < FLOATS; i++) assert_true(to[i] == 0); /* a new heap is zeroed */
    check_rows(dev, 4, 1, 0, 0, 0);
    check_rows(dev, 1000, 7, 1000, 1000, 1000);
    check_rows(dev, 1000, 7, 1200, 1004, 2000);
    check_rows(dev, 1000, 7, 1200, 0, 1000);   /* one row of the host for all */
    check_rows(dev, 256 << 10, 1, 0, 0, 0);    /* the largest that is staged */
    check_rows(dev, 3 << 20, 1, 0, 0, 0);
    check_rows(dev, 1 << 20, 5, 3 << 20, 1 << 20, 2 << 20);
    check_rows(dev, 1 << 20, 5, 1 << 20, 0, 2 << 20); /* no pitch of the driver's */
    driver->close(dev);
}

TEST(the_host_memory_of_a_put_is_free_at_once) {
    enum { N = 25000, PUTS = 100 }; /* more than the staging memory holds */
    void *dev = opened();
    for (i32 i = 0; i < 10; i++) T_OK(add(dev, 2, 0, 0, FLOATS)); /* the lane is late: copies wait */
    for (i32 k = 0; k < PUTS; k++) {
        for (i32 i = 0; i < N; i++) from[i] = (f32)(k * 1000 + i % 1000);
        put_floats(dev, 2, (i64)k * N, N, from);
    }
    get_floats(dev, 2, 0, (i64)PUTS * N, to);
    for (i32 k = 0; k < PUTS; k++)
        for (i32 i = 0; i < N; i++) assert_true(to[k * N + i] == (f32)(k * 1000 + i % 1000));
    driver->close(dev);
}

/* ------------------------------------------------------------------ lanes --------------------------------------------------- */

static void fill(f32 *values, i64 n, f32 value) {
    for (i64 i = 0; i < n; i++) values[i] = value;
}

static bool all(const f32 *values, i64 n, f32 value) {
    for (i64 i = 0; i < n; i++)
        if (values[i] != value) return false;
    return true;
}

TEST(kernels_run_in_the_order_of_their_lane) {
    enum { N = 1000 };
    void *dev = opened();
    const i32 blocks = (N + 63) / 64;
    const struct rows_args copy = {.at_to = 4 * N, .to_ld = N, .at_from = 0, .from_ld = N, .rows = 1, .n = N, .blocks = blocks};
    fill(from, N, 1);
    put_floats(dev, 0, 0, N, from);
    for (i32 i = 0; i < 5; i++) T_OK(add(dev, 0, 0, 0, N)); /* doubles */
    get_floats(dev, 0, 0, N + 1, to);
    assert_true(all(to, N, 32) && to[N] == 0);
    const struct gpu_size groups = {blocks, 1, 1}, local = {256, 1, 1};
    T_OK(driver->launch(dev, 0, GPU_copy_rows, groups, local, &copy, sizeof copy));
    get_floats(dev, 0, 4 * N, N, to);
    assert_true(all(to, N, 32));
    driver->close(dev);
}

TEST(a_lane_waits_for_the_mark_of_another) {
    enum { N = 1 << 18, ROUNDS = 20 };
    void *dev = opened();
    fill(from, N, 1);
    put_floats(dev, 0, 0, N, from);
    T_OK(driver->wait(dev, 1, 0, 77)); /* a mark that nobody has set */
    for (i32 i = 0; i < ROUNDS; i++) {
        T_OK(add(dev, 0, 0, 0, N));
        T_OK(driver->mark(dev, 0, i));
        T_OK(driver->wait(dev, 1, 0, i));
        T_OK(add(dev, 1, N, 0, N)); /* lane 1 sums what lane 0 has made */
        T_OK(driver->mark(dev, 1, GPU_SLOTS - 1));
        T_OK(driver->wait(dev, 0, 1, GPU_SLOTS - 1));
    }
    T_OK(driver->sync(dev, 1));
    get_floats(dev, 1, N, N, to);
    assert_true(all(to, N, (f32)((2 << ROUNDS) - 2)));
    assert_true(driver->between(dev, 0, 0, 1) > 0);
    assert_true(driver->between(dev, 0, 1, ROUNDS - 1) < 60);
    assert_true(driver->between(dev, 0, 0, ROUNDS) < 0); /* never set */
    driver->close(dev);
}

struct share {
    void *dev;
    i32 lane, right;
};

/* The driver makes its context that of each thread. */
static void *work(void *arg) {
    enum { N = 5000, ROUNDS = 50 };
    struct share *s = arg;
    const struct gpu_rows r = floats((i64)s->lane * N, N);
    f32 mine[N];
    for (i32 k = 0; k < ROUNDS; k++) {
        fill(mine, N, (f32)(s->lane + k));
        const bool done = driver->put(s->dev, s->lane, &r, mine) == 0 && add(s->dev, s->lane, r.at / 4, r.at / 4, N) == 0 &&
                          driver->get(s->dev, s->lane, &r, mine) == 0;
        s->right += done && all(mine, N, 2 * (f32)(s->lane + k));
    }
    return NULL;
}

TEST(each_thread_has_a_lane) {
    pthread_t thread[QUEUES];
    struct share share[QUEUES];
    void *dev = opened();
    for (i32 i = 0; i < QUEUES; i++) {
        share[i] = (struct share){dev, i, 0};
        assert_int_equal(pthread_create(&thread[i], NULL, work, &share[i]), 0);
    }
    for (i32 i = 0; i < QUEUES; i++) {
        pthread_join(thread[i], NULL);
        assert_int_equal(share[i].right, 50);
    }
    driver->close(dev);
}

TEST(another_library_may_change_the_context_of_the_thread) {
    int (*set_current)(struct CUctx_st *);
    void *library = dlopen(CUDA_ON_OPENCL, RTLD_NOW), *at = dlsym(library, "cuCtxSetCurrent");
    assert_non_null(at);
    memcpy(&set_current, &at, sizeof at);
    void *dev = opened();
    assert_int_equal(set_current(NULL), 0);
    T_OK(driver->mark(dev, 0, 0));
    driver->close(dev);
    dlclose(library);
}

/* ------------------------------------------------------------------ graphs -------------------------------------------------- */

TEST(a_graph_runs_the_kernels_of_a_lane_again) {
    enum { N = 1000 };
    void *dev = opened(), *graph;
    const struct gpu_rows r = floats(0, N);
    fill(from, N, 1);
    put_floats(dev, 0, 0, N, from);
    T_OK(driver->record(dev, 0));
    T_OK(add(dev, 0, 0, 0, N));
    T_FAILS(driver->put(dev, 0, &r, from), 1);
    T_FAILS(driver->get(dev, 0, &r, to), 1);
    T_OK(driver->mark(dev, 0, 3));
    T_OK(add(dev, 0, 0, 0, N));
    T_OK(driver->recorded(dev, 0, &graph));
    get_floats(dev, 0, 0, N, to);
    assert_true(all(to, N, 1)); /* nothing ran so far */
    for (i32 i = 0; i < 3; i++) T_OK(driver->replay(dev, 0, graph));
    get_floats(dev, 0, 0, N, to);
    assert_true(all(to, N, 64));
    T_OK(driver->sync(dev, 0));
    driver->drop(dev, graph);
    driver->drop(dev, NULL);
    driver->close(dev);
}

int main(void) {
    struct gpu_card card[4];
    char why[GPU_WHY];
    t_begin();
    setenv("STRETTO_CUDA", CUDA_ON_OPENCL, 1);
    setenv("STRETTO_NVRTC", FAKE_NVRTC, 1);
    setenv("STRETTO_CACHE", "off", 1);
    driver = gpu_driver_find("cuda");
    if (list(card, why) == 0) {
        printf("skipped: the test library finds no OpenCL device (%s)\n", why);
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_device_is_described),
        cmocka_unit_test(what_is_absent_is_named),
        cmocka_unit_test(memory_is_counted_and_refused),
        cmocka_unit_test(failures_name_the_call),
        cmocka_unit_test(programs_are_compiled_once),
        cmocka_unit_test(newer_devices_get_ptx_and_older_ones_an_error),
        cmocka_unit_test(an_older_driver_that_refuses_a_program_is_named),
        cmocka_unit_test(rows_come_back_in_any_pitch),
        cmocka_unit_test(the_host_memory_of_a_put_is_free_at_once),
        cmocka_unit_test(kernels_run_in_the_order_of_their_lane),
        cmocka_unit_test(a_lane_waits_for_the_mark_of_another),
        cmocka_unit_test(each_thread_has_a_lane),
        cmocka_unit_test(another_library_may_change_the_context_of_the_thread),
        cmocka_unit_test(a_graph_runs_the_kernels_of_a_lane_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
