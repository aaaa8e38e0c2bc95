/* t_gpu.c - GPU loads through NVML, with a test library in place of the driver's (fake_nvml.c). */
#include "t.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "topo/gpu.h"

static struct gpu_load load[GPU_MOST];

/* One look at GPUs that are as the text says. */
static err look_at(const char *text, i32 *n) {
    struct gpus *g;
    setenv("FAKE_NVML", t_file("gpus", text), 1);
    setenv("STRETTO_NVML", FAKE_LIBRARY, 1);
    TRY(gpus_open(&g));
    *n = gpus_count(g);
    err e = gpus_look(g, load);
    gpus_close(g);
    return e;
}

TEST(loads_are_shares) {
    i32 n;
    T_OK(look_at("gpu 95 8589934592 17179869184\ngpu 3 0 1000\ngpu 100 1000 1000\n", &n));
    assert_int_equal(n, 3);
    assert_true(load[0].busy == 0.95 && load[0].memory == 0.5);
    assert_true(load[1].busy == 0.03 && load[1].memory == 0);
    assert_true(load[2].busy == 1 && load[2].memory == 1);
}

TEST(a_gpu_in_instances_says_its_memory_only) {
    i32 n;
    T_OK(look_at("gpu -1 250 1000\n", &n));
    assert_true(load[0].busy == -1 && load[0].memory == 0.25);
}

TEST(more_gpus_than_we_look_at) {
    i32 n;
    struct str text = {0};
    for (i32 i = 0; i < GPU_MOST + 6; i++) str_add(&text, "gpu 7 1 2\n");
    T_OK(look_at(str_text(&text), &n));
    assert_int_equal(n, GPU_MOST);
    str_free(&text);
}

TEST(refusals_name_the_call_and_the_reason) {
    static const struct {
        const char *text, *call, *why;
    } bad[] = {{"fail init 9\n", "nvmlInit: ", "Driver Not Loaded (9)"},
               {"gpu 1 1 2\nfail count 999\n", "nvmlDeviceGetCount: ", "Unknown Error (999)"},
               {"gpu 1 1 2\nfail handle 15\n", "GPU 0: nvmlDeviceGetHandleByIndex: ", "GPU is lost (15)"},
               {"gpu 1 1 2\ngpu 1 1 2\nfail utilisation 15\n", "GPU 0: nvmlDeviceGetUtilizationRates: ", "GPU is lost (15)"},
               {"gpu 1 1 2\nfail memory 15\n", "GPU 0: nvmlDeviceGetMemoryInfo: ", "GPU is lost (15)"},
               {"gpu 1 1 0\n", "GPU 0: nvmlDeviceGetMemoryInfo: ", ""},
               {"", "there is no GPU", ""}};
    i32 n;
    for (size_t i = 0; i < COUNT(bad); i++) {
        T_FAILS(look_at(bad[i].text, &n), E820);
        if (!strstr(err_last()->text, bad[i].call)) print_error("%s\n", err_last()->text);
        assert_non_null(strstr(err_last()->text, bad[i].call));
        assert_non_null(strstr(err_last()->text, bad[i].why));
        assert_string_equal(err_last()->where, FAKE_LIBRARY);
    }
}

TEST(a_library_that_is_none) {
    struct gpus *g;
    setenv("STRETTO_NVML", "libabsent-ml.so.1", 1);
    T_FAILS(gpus_open(&g), E820);
    assert_null(g);
    assert_string_equal(err_last()->where, "libabsent-ml.so.1");
    assert_null(strstr(err_last()->text, "libabsent"));
    assert_true(strlen(err_last()->fix) > 0);
    setenv("STRETTO_NVML", "libm.so.6", 1);
    T_FAILS(gpus_open(&g), E820);
    assert_non_null(strstr(err_last()->text, "nvmlErrorString"));
}

T_MAIN(cmocka_unit_test(loads_are_shares), cmocka_unit_test(a_gpu_in_instances_says_its_memory_only),
       cmocka_unit_test(more_gpus_than_we_look_at), cmocka_unit_test(refusals_name_the_call_and_the_reason),
       cmocka_unit_test(a_library_that_is_none))
