/* t_supervise.c - the supervisor with a shell script in place of the program: what it starts, how often, and what it leaves. */
#include "t.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "launch/supervise.h"

static char run_dir[600];
static const char *const first[] = {"train"}, *const again[] = {"resume"};

/* The job of a test: a script that finds its folder in $0.run, and the words that it was started with in $1. */
static struct launch_job job_of(const char *name, const char *body, i32 restarts) {
    char text[2000];
    snprintf(text, sizeof text, "#!/bin/sh\nrun=$0.run\nmkdir -p $run/checkpoints\necho $1 >>$run/calls\n%s\n", body);
    const char *path = t_file(name, text);
    chmod(path, 0755);
    snprintf(run_dir, sizeof run_dir, "%s.run", path);
    return (struct launch_job){.program = path, .run_dir = run_dir, .first = {first, 1}, .again = {again, 1}, .ranks = 1,
                               .max_restarts = restarts, .mpi = "none", .wait = true};
}

static void ends(const struct launch_job *job, i32 want) {
    i32 status = -1;
    T_OK(supervise(job, &status));
    assert_int_equal(status, want);
}

static void called(const char *want) {
    char path[700], *text;
    i64 size;
    snprintf(path, sizeof path, "%s/calls", run_dir);
    T_OK(file_load(path, 1 << 16, &text, &size));
    assert_string_equal(text, want);
    mem_free(text);
}

TEST(a_job_that_dies_is_started_again_from_its_checkpoint) {
    const struct launch_job job = job_of("dies", "[ $1 = resume ] && exit 0\n: >$run/checkpoints/7.ckpt\nkill -9 $$", 3);
    ends(&job, 0);
    called("train\nresume\n");
}

/* The last rank to end was killed while it wrote its part of a checkpoint. */
TEST(what_a_finished_job_leaves_is_deleted) {
    const struct launch_job job = job_of("parts", "mkdir $run/checkpoints/7.ckpt $run/checkpoints/9.part\n"
                                         "printf '{\"finished\": true}' >$run/run.json\nkill -9 $$", 3);
    char path[700];
    ends(&job, 0);
    called("train\n");
    snprintf(path, sizeof path, "%s/checkpoints", run_dir);
    assert_false(file_exists(path));
}

TEST(a_job_without_checkpoint_begins_anew_and_is_given_up) {
    const struct launch_job job = job_of("gives_up", "kill -9 $$", 2);
    const f64 begin = clock_now();
    ends(&job, 8);
    called("train\ntrain\ntrain\n");
    assert_true(clock_now() - begin > 0.59); /* pauses of .2 and .4 s */
}

/* One restart is allowed, five happen: each attempt got further. */
TEST(progress_fills_the_allowance) {
    const struct launch_job job = job_of(
        "moves", "n=$(wc -l <$run/calls)\n[ $n = 6 ] && exit 0\n: >$run/checkpoints/$n.ckpt\nexit 75", 1);
    ends(&job, 0);
    called("train\nresume\nresume\nresume\nresume\nresume\n");
}

TEST(a_failure_of_the_job_itself_is_passed_on) {
    const struct launch_job job = job_of("fails", "exit 3", 5);
    ends(&job, 3);
    called("train\n");
}

TEST(ranks_that_differ_are_not_started_again) {
    const struct launch_job job = job_of("differs",
                                         "mkdir -p $run/status\n"
                                         "printf '{\"phase\": \"differs\", \"exit\": 8, \"time\": %s}' $(date +%s.%N) "
                                         ">$run/status/rank-0.json\n"
                                         "exit 8",
                                         5);
    ends(&job, 8);
    called("train\n");
}

/* mpirun --enable-recovery ends with 0 whatever its ranks did, mpiexec of MPICH now and then: their records count. */
TEST(a_launcher_that_says_nothing_is_not_believed) {
    static const struct {
        const char *record; /* of rank 0, NULL = there is none */
        enum verdict verdict;
        i32 code;
    } cases[] = {{"\"phase\": \"done\", \"exit\": 0", VERDICT_DONE, 0},
                 {"\"phase\": \"failed\", \"exit\": 75", VERDICT_AGAIN, 8},
                 {"\"phase\": \"train\", \"exit\": -1", VERDICT_AGAIN, 8},
                 {"\"phase\": \"failed\", \"exit\": 3", VERDICT_FINAL, 3},
                 {"\"phase\": \"differs\", \"exit\": 8", VERDICT_FINAL, 8},
                 {NULL, VERDICT_FINAL, 8}};
    char path[700], text[200];
    struct launch_job job = job_of("blind", "exit 0", 5);
    job.mpi = "openmpi";
    snprintf(path, sizeof path, "%s/status", run_dir);
    T_OK(file_make_dir(path));
    snprintf(path, sizeof path, "%s/status/rank-0.json", run_dir);
    for (size_t i = 0; i < COUNT(cases); i++) {
        i32 code = -1;
        unlink(path);
        snprintf(text, sizeof text, "{%s, \"time\": %.3f}\n", cases[i].record ? cases[i].record : "", clock_wall());
        if (cases[i].record) T_OK(file_write_all(path, text, (i64)strlen(text)));
        job.heals = true;
        assert_int_equal(verdict_of(&job, 0, 1, &code), cases[i].verdict);
        assert_int_equal(code, cases[i].code);
        job.heals = false; /* records count there too, and where there are none 0 is 0 */
        assert_int_equal(verdict_of(&job, 0, 1, &code), cases[i].record ? cases[i].verdict : VERDICT_DONE);
        assert_int_equal(code, cases[i].record ? cases[i].code : 0);
    }
}

TEST(a_run_that_has_its_model_is_done_however_it_ended) {
    const struct launch_job job = job_of("finished", "echo '{\"finished\": true}' >$run/run.json\nkill -9 $$", 5);
    ends(&job, 0);
    called("train\n");
}

TEST(nothing_of_an_attempt_is_left_when_the_next_begins) {
    const struct launch_job job = job_of("orphans",
                                         "[ -e $run/pid ] && kill -0 $(cat $run/pid) 2>/dev/null && exit 4\n"
                                         "[ -e $run/pid ] && exit 0\n(setsid sleep 600) & echo $! >$run/pid\nkill -9 $$",
                                         2);
    i32 pid[MARKED_MOST];
    ends(&job, 0);
    assert_int_equal(marked_find(run_dir, NULL, pid), 0);
}

/* What a killed launcher leaves in its folder is gone; a link there is cut, not followed. */
TEST(scratch_folder_goes_with_all_that_is_in_it) {
    char path[SCRATCH_PATH], inner[200], kept[600], other[SCRATCH_PATH];
    snprintf(kept, sizeof kept, "%s", t_file("kept", "x"));
    scratch_path("/some/run", path);
    scratch_path("/some/other", other);
    assert_string_not_equal(path, other);
    scratch_use("/some/run");
    assert_string_equal(getenv("OMPI_MCA_btl_vader_backing_directory"), path);
    snprintf(inner, sizeof inner, "%s/session/0", path);
    T_OK(file_make_dir(inner));
    snprintf(inner, sizeof inner, "%s/session/0/segment", path);
    T_OK(file_write_all(inner, "x", 1));
    snprintf(inner, sizeof inner, "%s/link", path);
    assert_int_equal(symlink(t_dir(), inner), 0);
    scratch_remove("/some/run");
    assert_false(file_exists(path));
    assert_true(file_exists(kept));
    unsetenv("OMPI_MCA_btl_vader_backing_directory");
    unsetenv("OMPI_MCA_orte_tmpdir_base");
}

static pid_t beside(const struct launch_job *job) {
    const pid_t child = fork();
    i32 status = 99;
    if (child != 0) return child;
    _exit(supervise(job, &status) < 0 ? err_last()->code % 100 : status);
}

static void until_called(void) {
    char path[700];
    snprintf(path, sizeof path, "%s/calls", run_dir);
    for (i32 i = 0; i < 1000 && !file_exists(path); i++) nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL); /* the script has set its trap */
}

TEST(a_stop_is_passed_on_and_ends_with_75) {
    /* the supervisor asks processes of the program itself; here that is the shell */
    struct launch_job job = job_of("stops", "trap 'exit 75' USR1\nwhile :; do sleep 0.05; done", 5);
    char shell[4096];
    assert_non_null(realpath("/bin/sh", shell));
    const char *script[] = {job.program, "train"};
    job.program = shell;
    job.first = (struct launch_words){script, 2};
    const pid_t child = beside(&job);
    int status;
    until_called();
    kill(child, SIGTERM);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(WEXITSTATUS(status), 75);
    called("train\n");
}

/* Its job has put off the mark by which all others are found. */
TEST(a_job_without_the_mark_ends_when_it_is_asked_twice) {
    const struct launch_job job = job_of("unmarked", "exec env -i sleep 600", 5);
    const pid_t child = beside(&job);
    int status;
    until_called();
    /* Asked every 2 s, not faster: between the end of supervise() and the exit of its process the next SIGTERM would kill it. */
    const f64 begin = clock_now();
    pid_t gone = 0;
    for (i32 i = 0; gone == 0 && clock_now() - begin < 30; i++) {
        if (i % 20 == 0) kill(child, SIGTERM);
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
        gone = waitpid(child, &status, WNOHANG);
    }
    assert_int_equal(gone, child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 75);
    called("train\n");
}

TEST(a_killed_supervisor_takes_its_job_along_and_a_second_one_goes_on) {
    const struct launch_job job = job_of("killed", "[ $1 = resume ] && exit 0\n: >$run/checkpoints/5.ckpt\nsleep 600", 5);
    const pid_t child = beside(&job);
    i32 pid[MARKED_MOST], status = -1;
    until_called();
    T_FAILS(supervise(&job, &status), E704); /* one at a time */
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    ends(&job, 0);
    called("train\nresume\n");
    assert_int_equal(marked_find(run_dir, NULL, pid), 0);
}

T_MAIN(cmocka_unit_test(a_job_that_dies_is_started_again_from_its_checkpoint),
       cmocka_unit_test(what_a_finished_job_leaves_is_deleted),
        cmocka_unit_test(a_job_without_checkpoint_begins_anew_and_is_given_up), cmocka_unit_test(progress_fills_the_allowance),
       cmocka_unit_test(a_failure_of_the_job_itself_is_passed_on),
       cmocka_unit_test(ranks_that_differ_are_not_started_again),
       cmocka_unit_test(a_launcher_that_says_nothing_is_not_believed),
       cmocka_unit_test(a_run_that_has_its_model_is_done_however_it_ended),
       cmocka_unit_test(scratch_folder_goes_with_all_that_is_in_it),
       cmocka_unit_test(nothing_of_an_attempt_is_left_when_the_next_begins),
       cmocka_unit_test(a_stop_is_passed_on_and_ends_with_75),
       cmocka_unit_test(a_job_without_the_mark_ends_when_it_is_asked_twice),
       cmocka_unit_test(a_killed_supervisor_takes_its_job_along_and_a_second_one_goes_on))
