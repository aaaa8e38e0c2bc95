/* t_machine.c - the text form of machines and what is found out about this host. */
#define _GNU_SOURCE
#include "t.h"

#include <sched.h>
#include <string.h>
#include <time.h>

#include "topo/machine.h"

static struct machine m, again;

#if defined(__has_feature)
#define SANITIZED (__has_feature(thread_sanitizer) || __has_feature(address_sanitizer))
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif
#define SLOWER (SANITIZED ? 50 : 1)

TEST(machine_parse_counts_ranks_and_devices) {
    T_OK(machine_parse("host*2(cpu*4)", &m));
    assert_int_equal(m.nrank, 2);
    assert_int_equal(m.ndevice, 8);
    assert_int_equal(m.device[3].rank, 0);
    assert_int_equal(m.device[4].rank, 1);
    char name[DEVICE_NAME];
    machine_device_name(&m, 5, name);
    assert_string_equal(name, "r1.cpu1");
    T_OK(machine_parse(" cpu*3 # three\n gflops=25 memory=2GiB", &m));
    assert_int_equal(m.ndevice, 3);
    assert_true(m.device[2].gflops == 25);
    assert_int_equal(m.device[2].memory, (i64)2 << 30);
    T_OK(machine_parse("host(cpu,gpu*2)", &m));
    assert_int_equal(m.ndevice, 3);
    assert_true(m.device[0].weight < m.device[1].weight);
}

TEST(machine_text_comes_back_the_same) {
    const char *texts[] = {"cpu*4", "host*2(cpu*4) gflops=33.5 link_us=9", "host(cpu*2,gpu)", "host*1024(cpu) l2=4MiB",
                           "host*2(gpu*2) shares=1,0.25", "host(gpu*3) shares=0.5,1,0.125"};
    for (size_t i = 0; i < COUNT(texts); i++) {
        struct str a = {0}, b = {0};
        T_OK(machine_parse(texts[i], &m));
        machine_print(&m, &a);
        T_OK(machine_parse(str_text(&a), &again));
        machine_print(&again, &b);
        assert_string_equal(str_text(&a), str_text(&b));
        assert_int_equal(m.ndevice, again.ndevice);
        for (i32 d = 0; d < m.ndevice; d++) assert_true(m.device[d].share == again.device[d].share);
        str_free(&a);
        str_free(&b);
    }
}

TEST(machine_parse_refuses_nonsense_with_the_column) {
    const char *bad[] = {"",         "cpu*0",   "cpu*",        "host*2",          "host(",           "host(cpu",   "tpu*2",
                         "cpu*20000", "cpu x=3", "cpu gflops=", "host*9000(cpu*2)", "cpu*4 gflops=-1", "cpu gflops", "(cpu)"};
    for (size_t i = 0; i < COUNT(bad); i++) T_FAILS(machine_parse(bad[i], &m), E103);
    T_FAILS(machine_parse("cpu*4 speed=3", &m), E103);
    assert_string_equal(err_last()->where, "--machine:12");
    const char *shares[] = {"host*2(cpu*2) shares=1", "host*2(cpu*2) shares=1,1,1", "cpu*2 shares=1,1.5", "cpu*2 shares=1,0",
                            "cpu shares=1,1",        "cpu*2 shares=1,",             "cpu*2 shares"};
    for (size_t i = 0; i < COUNT(shares); i++) T_FAILS(machine_parse(shares[i], &m), E103);
}

TEST(machine_shares_are_of_hosts_or_of_devices) {
    T_OK(machine_parse("host*2(gpu*2) shares=1,0.25", &m));
    assert_true(m.device[1].weight == 1 && m.device[2].weight == 0.25 && m.device[3].share == 0.25);
    T_OK(machine_parse("host*2(gpu*2) shares=1,0.25,0.5,1", &m));
    assert_true(m.device[1].weight == 0.25 && m.device[2].weight == 0.5 && m.device[3].weight == 1);
    machine_set_rate(&m, "gpu", 77); /* a measurement leaves shares as they are */
    assert_true(m.device[1].weight == 0.25 && m.device[2].gflops == 77);
    const f64 share[] = {0.5, 1};
    machine_set_shares(&m, share);
    assert_true(m.device[0].weight == 0.5 && m.device[1].weight == 0.5 && m.device[2].weight == 1);
}

TEST(machine_set_rate_changes_one_kind) {
    T_OK(machine_parse("host(cpu*2,gpu)", &m));
    machine_set_rate(&m, "cpu", 123);
    assert_true(m.device[0].gflops == 123 && m.device[1].gflops == 123 && m.device[2].gflops != 123);
}

static f64 now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); /* whatever else runs here */
    return (f64)t.tv_sec * 1e3 + (f64)t.tv_nsec * 1e-6;
}

TEST(cores_are_cut_into_parts_that_do_not_meet) {
    if (t_few()) skip(); /* an emulator answers for its host */
    struct cores all, part[64];
    bool enough;
    assert_true(cores_allowed(&all));
    T_OK(machine_host(0, &m));
    const i32 n = imin(m.ncore, 64);
    i32 sum = 0;
    for (i32 k = 0; k < n; k++) {
        T_OK(cores_cut(&all, n, k, &part[k], &enough));
        assert_true(enough);
        sum += cores_count(&part[k]);
        for (i32 i = 0; i < k; i++) assert_false(cores_meet(&part[i], &part[k]));
    }
    if (n < 64) assert_int_equal(sum, cores_count(&all));
    T_OK(cores_cut(&all, cores_count(&all) + 1, 0, &part[0], &enough));
    assert_false(enough); /* nobody is put on top of another */
    T_OK(cores_cut(&all, 1, 0, &part[0], &enough));
    assert_memory_equal(&part[0], &all, sizeof all);
    cores_stay(&all);
}

TEST(machine_host_honours_affinity_and_is_quick) {
    if (t_few()) skip(); /* an emulator answers for its host */
    cpu_set_t old, one;
    assert_int_equal(sched_getaffinity(0, sizeof old, &old), 0);
    f64 best = 1e9;
    for (i32 i = 0; i < 5; i++) {
        f64 t = now_ms();
        T_OK(machine_host(0, &m));
        best = dmin(best, now_ms() - t);
    }
    assert_in_range(m.ndevice, 1, CPU_COUNT(&old));
    assert_int_equal(m.ncore, m.ndevice);
    assert_true(m.memory > 0 && m.cpu[0]);
    assert_true(best < 20 * SLOWER); /* 2 to 3 ms */
    CPU_ZERO(&one);
    for (size_t c = 0; c < CPU_SETSIZE; c++)
        if (CPU_ISSET(c, &old) && CPU_COUNT(&one) == 0) CPU_SET(c, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    T_OK(machine_host(0, &m));
    assert_int_equal(m.ndevice, 1);
    T_OK(machine_host(3, &m));
    assert_int_equal(m.ndevice, 3);
    sched_setaffinity(0, sizeof old, &old);
    T_FAILS(machine_host(-1, &m), E103);
}

T_MAIN(cmocka_unit_test(machine_parse_counts_ranks_and_devices), cmocka_unit_test(machine_text_comes_back_the_same),
       cmocka_unit_test(machine_parse_refuses_nonsense_with_the_column), cmocka_unit_test(machine_set_rate_changes_one_kind),
       cmocka_unit_test(machine_shares_are_of_hosts_or_of_devices),
       cmocka_unit_test(machine_host_honours_affinity_and_is_quick),
       cmocka_unit_test(cores_are_cut_into_parts_that_do_not_meet))
