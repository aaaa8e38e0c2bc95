/* t_doctor.c - a sound host has no findings; every planted fault has the one that names it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launch/doctor.h"
#include "t.h"

static struct facts sound(void) {
    return (struct facts){
        .host = "a",
        .promised = 1,
        .world = 1,
        .cores = 8,
        .cores_allowed = 8,
        .ranks = 1,
        .ranks_here = 1,
        .threads = 8,
        .isa = "avx2",
        .isa_best = "avx2",
        .clock = "tsc",
        .shm = (i64)4 << 30,
        .files = 4096,
        .run = "m.run",
        .tmp_writes = true,
        .run_writes = true,
        .tmp_free = (i64)9 << 30,
        .run_free = (i64)9 << 30,
        .mpi = {{.name = "Open MPI", .flavour = "openmpi", .launcher = "mpirun.openmpi", .plugin = true, .loads = true},
                {.name = "MPICH", .flavour = "mpich", .launcher = "mpiexec.mpich"}}};
}

/* Four ranks here, of eight, joined by Open MPI. */
static struct facts launched(void) {
    struct facts f = sound();
    snprintf(f.launcher, sizeof f.launcher, "Slurm (pmix)");
    snprintf(f.flavour, sizeof f.flavour, "openmpi");
    f.joined = true;
    f.promised = f.world = f.ranks = 8;
    f.ranks_here = 4;
    f.threads = 2;
    return f;
}

/* Exactly one check is not ok: this one, at this level, with these words, and a fix. */
static void one(const struct facts *f, const char *check, enum doctor_level level, const char *words) {
    struct finding out[DOCTOR_FINDINGS];
    const i32 n = doctor_examine(f, out);
    i32 found = 0;
    for (i32 i = 0; i < n; i++) {
        if (out[i].level == DOCTOR_OK) continue;
        found++;
        assert_string_equal(out[i].check, check);
        assert_int_equal(out[i].level, level);
        if (!strstr(out[i].text, words)) print_error("said: %s\n", out[i].text);
        assert_non_null(strstr(out[i].text, words));
        assert_true(out[i].fix[0] != 0);
    }
    assert_int_equal(found, 1);
    assert_int_equal(doctor_worst(out, n), level);
}

TEST(sound_hosts_are_ok) {
    struct finding out[DOCTOR_FINDINGS];
    struct facts f = sound();
    assert_int_equal(doctor_worst(out, doctor_examine(&f, out)), DOCTOR_OK);
    f = launched();
    assert_int_equal(doctor_worst(out, doctor_examine(&f, out)), DOCTOR_OK);
}

TEST(wrong_launcher) {
    struct facts f = launched();
    f.world = 1;
    one(&f, "launcher", DOCTOR_STOP, "Slurm (pmix) promised 8 ranks and the MPI library sees 1");
    f = launched();
    f.joined = false;
    snprintf(f.problem, sizeof f.problem, "no way");
    snprintf(f.fix, sizeof f.fix, "srun --mpi=pmix");
    one(&f, "launcher", DOCTOR_STOP, "no way");
}

TEST(foreign_mpi) {
    struct facts f = launched();
    snprintf(f.flavour, sizeof f.flavour, "mpich");
    one(&f, "mpi", DOCTOR_STOP, "wants MPICH, and this build has no plug-in for it");
    f = launched();
    snprintf(f.flavour, sizeof f.flavour, "intel");
    one(&f, "mpi", DOCTOR_STOP, "there is no plug-in \"intel\"");
    f = launched();
    f.mpi[0].loads = false;
    snprintf(f.mpi[0].why, sizeof f.mpi[0].why, "libmpi.so.40: cannot open");
    one(&f, "mpi", DOCTOR_STOP, "cannot be loaded: libmpi.so.40: cannot open");
    f = sound();
    f.mpi[0].loads = false;
    one(&f, "mpi", DOCTOR_WARN, "cannot be loaded");
    f = sound();
    f.mpi[0].plugin = false;
    one(&f, "mpi", DOCTOR_WARN, "no plug-in for MPI was built");
}

TEST(root_and_mpirun) {
    struct facts f = sound();
    f.root = true;
    f.mpi[0].launches = true;
    one(&f, "user", DOCTOR_WARN, "refuses root");
    struct finding out[DOCTOR_FINDINGS];
    f.root_allowed = true;
    assert_int_equal(doctor_worst(out, doctor_examine(&f, out)), DOCTOR_OK);
}

TEST(small_shared_memory) {
    struct facts f = launched();
    f.shm = 64 << 20;
    one(&f, "shared memory", DOCTOR_STOP, "holds 64 MiB, and 4 ranks of MPI need 128");
    f = sound();
    f.shm = 32 << 20;
    one(&f, "shared memory", DOCTOR_WARN, "holds 32 MiB"); /* nobody uses it now */
    f.shm = -1;
    one(&f, "shared memory", DOCTOR_WARN, "there is no /dev/shm");
}

TEST(too_few_cores) {
    struct facts f = launched();
    f.threads = 3;
    one(&f, "cores", DOCTOR_WARN, "4 ranks of 3 threads on 8 cores");
    f = launched();
    f.quota = 2.5;
    one(&f, "cores", DOCTOR_WARN, "grant 2.5 processors, and 4 ranks of 2 threads need 8");
    f = sound();
    f.cores_allowed = 2;
    one(&f, "cores", DOCTOR_WARN, "1 rank of 8 threads on 2 cores of those here (affinity)");
    struct finding out[DOCTOR_FINDINGS];
    f = launched(); /* each rank is bound to its share: all is well */
    f.cores_allowed = 2;
    assert_int_equal(doctor_worst(out, doctor_examine(&f, out)), DOCTOR_OK);
}

TEST(small_things) {
    struct facts f = sound();
    f.ptrace = 1;
    one(&f, "ptrace", DOCTOR_WARN, "scope 1");
    f = sound();
    f.files = 100;
    one(&f, "open files", DOCTOR_STOP, "at most 100, and 1 rank need");
    f.files = 512;
    one(&f, "open files", DOCTOR_WARN, "at most 512");
    f = sound();
    f.tmp_writes = false;
    one(&f, "temporary files", DOCTOR_STOP, "/tmp cannot be written");
    f = sound();
    f.run_writes = false;
    one(&f, "run folder", DOCTOR_STOP, "m.run cannot be written");
    f = sound();
    f.run_free = 1 << 20;
    one(&f, "run folder", DOCTOR_WARN, "m.run has 1 MiB left");
    f = sound();
    snprintf(f.isa, sizeof f.isa, "ref");
    one(&f, "kernels", DOCTOR_WARN, "ref, and this processor has avx2");
    f = sound();
    snprintf(f.clock, sizeof f.clock, "hpet");
    one(&f, "clock", DOCTOR_WARN, "hpet");
}

TEST(hosts_that_differ_are_named) {
    struct facts a = launched(), b = launched();
    struct finding fa[DOCTOR_FINDINGS], fb[DOCTOR_FINDINGS];
    struct str s = {0};
    const i32 n = doctor_examine(&a, fa);
    b.run_free -= 1 << 20; /* room is never the same twice */
    doctor_examine(&b, fb);
    doctor_print(fb, n, "b", fa, &s);
    assert_int_equal(s.len, 0);
    b.shm = 64 << 20;
    doctor_examine(&b, fb);
    doctor_print(fb, n, "b", fa, &s);
    assert_int_equal(strncmp(str_text(&s), "b: stop  shared memory ", 23), 0);
    assert_non_null(strstr(s.s, "      fix: "));
    str_free(&s);
}

TEST(gpus_are_told_and_stop_nothing) {
    static struct facts facts, *f = &facts;
    struct finding out[DOCTOR_FINDINGS];
    struct str text = {0};
    setenv("STRETTO_NVML", FAKE_LIBRARY, 1);
    setenv("FAKE_NVML", t_file("gpus", "gpu 10 1 1000\ngpu 3 220 1000\ngpu 12 0 1000\n"), 1);
    facts_of_host(t_dir(), f);
    assert_true(f->gpus == 3 && f->busiest == 1 && f->gpu_taken == 0.22);
    doctor_print(out, doctor_examine(f, out), NULL, NULL, &text);
    assert_non_null(strstr(str_text(&text), "ok    gpu load         3 GPUs, of which number 1 is busiest: 22% taken\n"));
    str_free(&text);
    setenv("FAKE_NVML", t_file("gpus", "gpu 10 1 1000\nfail memory 15\n"), 1);
    facts_of_host(t_dir(), f);
    assert_true(f->gpus == 0 && err_last()->code == 0);
    doctor_print(out, doctor_examine(f, out), NULL, NULL, &text);
    assert_non_null(strstr(str_text(&text), "NVML reports no GPU"));
    str_free(&text);
    unsetenv("STRETTO_NVML");
}

TEST(this_host_has_facts) {
    struct facts f;
    facts_of_host(t_dir(), &f);
    assert_true(f.cores >= 1 && f.cores_allowed >= 1 && f.files > 0);
    assert_true(f.run_writes && f.run_free > 0);
    facts_of_host("/proc/no/such", &f);
    assert_false(f.run_writes);
}

T_MAIN(cmocka_unit_test(sound_hosts_are_ok), cmocka_unit_test(wrong_launcher), cmocka_unit_test(foreign_mpi),
       cmocka_unit_test(root_and_mpirun), cmocka_unit_test(small_shared_memory), cmocka_unit_test(too_few_cores),
       cmocka_unit_test(small_things), cmocka_unit_test(hosts_that_differ_are_named),
       cmocka_unit_test(gpus_are_told_and_stop_nothing), cmocka_unit_test(this_host_has_facts))
