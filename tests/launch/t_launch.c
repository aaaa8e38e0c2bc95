/* t_launch.c - the command lines of the local launcher; the supervisor's log; how the end of an attempt is judged. */
#include "t.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "launch/supervise.h"

static const char *const first[] = {"train", "it's data.csv", "--steps", "5"};
static const char *const again[] = {"resume", "m.model.run", "--steps=5"};

static struct launch_job job_of(const char *mpi, const char *run_dir) {
    return (struct launch_job){.program = "/bin/stretto", .run_dir = run_dir, .first = {first, COUNT(first)},
                               .again = {again, COUNT(again)}, .ranks = 3, .max_restarts = 2, .mpi = mpi};
}

TEST(words_are_quoted_as_a_shell_reads_them) {
    static const char *const want[][2] = {{"plain", "plain"}, {"", "''"}, {"a b", "'a b'"}, {"it's", "'it'\\''s'"},
                                          {"--x=1,2", "--x=1,2"}, {"$HOME", "'$HOME'"}};
    for (size_t i = 0; i < COUNT(want); i++) {
        struct str s = {0};
        launch_quote(&s, want[i][0]);
        assert_string_equal(str_text(&s), want[i][1]);
        str_free(&s);
    }
}

static void line_is(const struct launch_job *job, bool resumed, const char *want) {
    char **argv = NULL;
    struct str s = {0};
    T_OK(launch_command(job, resumed, &argv));
    launch_line(&s, argv);
    assert_string_equal(str_text(&s), want);
    str_free(&s);
    launch_free_words(argv);
}

/* A path with launchers that do nothing. */
static void fake(const char *name) {
    chmod(t_file(name, "#!/bin/sh\n"), 0755);
    setenv("PATH", t_dir(), 1);
}

TEST(command_lines_of_threads_and_of_each_mpi) {
    struct launch_job job = job_of("none", "run");
    line_is(&job, false, "/bin/stretto train 'it'\\''s data.csv' --steps 5 --ranks=3");
    line_is(&job, true, "/bin/stretto resume m.model.run --steps=5 --ranks=3");
    char *path = mem_strdup(getenv("PATH"));
    fake("mpirun");
    fake("mpiexec.mpich");
    job.mpi = "openmpi";
    line_is(&job, true, "mpirun --oversubscribe --bind-to none -n 3 /bin/stretto resume m.model.run --steps=5");
    job.heals = true;
    line_is(&job, true, "mpirun --oversubscribe --bind-to none --enable-recovery -n 3 /bin/stretto resume m.model.run --steps=5");
    job.mpi = "mpich";
    line_is(&job, true, "mpiexec.mpich -n 3 /bin/stretto resume m.model.run --steps=5");
    char **argv = NULL;
    setenv("PATH", "/nowhere", 1);
    T_FAILS(launch_command(&job, true, &argv), E803);
    setenv("PATH", path, 1);
    mem_free(path);
}

TEST(rendering_shows_both_lines) {
    const struct launch_job job = job_of("none", "a run");
    struct str s = {0};
    T_OK(launcher_find("local")->render(&job, &s));
    assert_non_null(strstr(str_text(&s), "train 'it'\\''s data.csv' --steps 5 --ranks=3\n"));
    assert_non_null(strstr(str_text(&s), "checkpoint in 'a run'/checkpoints; at most 2 times"));
    assert_non_null(strstr(str_text(&s), "resume m.model.run --steps=5 --ranks=3\n"));
    str_free(&s);
    assert_null(launcher_find("moon"));
}

TEST(every_launcher_has_a_name_a_help_and_an_example) {
    i32 n = 0;
    for (const struct launcher *l; (l = launcher_at(n)) != NULL; n++) {
        assert_ptr_equal(launcher_find(l->name), l);
        assert_true(*l->help && strstr(l->example, "stretto submit ") && l->render && l->submit);
    }
    assert_true(n >= 2);
}

TEST(options_that_a_launcher_does_not_take_are_refused) {
    const struct launcher *local = launcher_find("local"), *slurm = launcher_find("slurm");
    struct launch_job job = job_of("auto", "run");
    job.given = 1u << REQUEST_RANKS;
    T_OK(launch_prepare(local, &job));
    assert_int_equal(job.ranks, 3);
    assert_string_equal(job.mpi, "none");
    job.given |= 1u << REQUEST_QUEUE;
    T_FAILS(launch_prepare(local, &job), E106);
    assert_string_equal(err_last()->text, "--on local takes no --queue");
    assert_string_equal(err_last()->fix, "leave out --queue   or   --on slurm   or   --on yarn");
    job = job_of("auto", "run");
    job.given = 1u << REQUEST_RANKS;
    T_FAILS(launch_prepare(slurm, &job), E106);
    assert_string_equal(err_last()->fix, "leave out --ranks   or   --on local");
}

TEST(ranks_of_a_cluster_need_a_library) {
    const struct launcher *slurm = launcher_find("slurm");
    struct launch_job job = job_of("auto", "run");
    job.nodes = 2;
    job.ranks_per_node = 4;
    T_FAILS(launch_prepare(slurm, &job), E803);
    job.mpi = "auto";
    job.plugin = "mpich";
    T_OK(launch_prepare(slurm, &job));
    assert_int_equal(job.ranks, 8);
    assert_string_equal(job.mpi, "mpich");
    job.mpi = "auto";
    job.nodes = job.ranks_per_node = 1;
    job.plugin = NULL;
    T_OK(launch_prepare(slurm, &job));
    assert_string_equal(job.mpi, "none");
}

TEST(time_limits_in_every_form) {
    static const struct {
        const char *text;
        i64 seconds;
    } good[] = {{"2:00:00", 7200}, {"90m", 5400},          {"1h30m", 5400}, {"90:00", 5400},
                {"1:30", 90},      {"1-12:00:00", 129600}, {"2h", 7200}};
    static const char *const bad[] = {"",    "2",     "7200", "2:", ":30", "1:75:00", "59s",  "0:30", "1:2:3:4", "1-2:00",
                                      "-1h", "1h:30", "2 h",  "a",  "nan", "400-00:00:00", "-1:00", "1:-5"};
    for (size_t i = 0; i < COUNT(good); i++) {
        i64 s = 0;
        T_OK(launch_seconds(good[i].text, &s));
        assert_int_equal(s, good[i].seconds);
    }
    for (size_t i = 0; i < COUNT(bad); i++) {
        i64 s = 0;
        T_FAILS(launch_seconds(bad[i], &s), E103);
    }
}

TEST(backoff_doubles_up_to_ten_seconds) {
    static const f64 want[] = {0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10, 10};
    for (i32 n = 1; n <= (i32)COUNT(want); n++) assert_float_equal(backoff(n), want[n - 1], 1e-12);
    assert_float_equal(backoff(1000000), 10, 0);
}

/* ------------------------------------------------------------------ the log ------------------------------------------------- */

static void folder(const char *name, char out[600]) {
    snprintf(out, 600, "%s/%s", t_dir(), name);
    T_OK(file_make_dir(out));
}

static void wrote(struct ledger *l, const char *what, const char *command, i64 checkpoint, i32 left, i32 status) {
    T_OK(ledger_write(l, 2, &(struct ledger_event){.what = what, .command = command, .checkpoint = checkpoint, .left = left,
                                                   .exit = status, .pid = -1, .signal = -1, .down = -1}));
}

TEST(log_of_a_supervisor_that_was_killed_is_gone_on_from) {
    char run[600];
    struct ledger l, second;
    struct ledger_past past;
    folder("log.run", run);
    T_OK(ledger_open(&l, run, "train a", &past));
    assert_false(past.open);
    T_FAILS(ledger_open(&second, run, "train a", &past), E704);
    ledger_close(&second);
    wrote(&l, "begin", "train a", -1, 3, -1);
    wrote(&l, "start", "x", -1, 3, -1);
    wrote(&l, "pause", NULL, 300, 1, -1);
    ledger_close(&l); /* killed here */

    int fd = open(l.path, O_WRONLY | O_APPEND);
    assert_int_equal(write(fd, "{\"time\": 17, \"ev", 16), 16); /* in the middle of a line */
    close(fd);
    T_OK(ledger_open(&l, run, "train a", &past));
    assert_true(past.open);
    assert_int_equal(past.checkpoint, 300);
    assert_int_equal(past.left, 1);
    assert_true(past.since > 1e9);
    wrote(&l, "start", "x", 300, 1, -1);
    ledger_close(&l);

    T_OK(ledger_open(&l, run, "train b", &past)); /* another command is another submission */
    assert_false(past.open);
    ledger_close(&l);
    T_OK(ledger_open(&l, run, "train a", &past)); /* the torn line has not swallowed the next one */
    assert_true(past.open);
    wrote(&l, "end", NULL, 300, 1, 75);
    ledger_close(&l);
    T_OK(ledger_open(&l, run, "train a", &past)); /* stopped: goes on */
    assert_true(past.open);
    wrote(&l, "end", NULL, 300, 1, 0);
    ledger_close(&l);
    T_OK(ledger_open(&l, run, "train a", &past)); /* done: begins anew */
    assert_false(past.open);
    ledger_close(&l);
}

static void file_in(const char *run, const char *name, const char *text) {
    char path[1500];
    snprintf(path, sizeof path, "%.700s/%.700s", run, name);
    T_OK(file_write_all(path, text, (i64)strlen(text)));
}

TEST(checkpoints_of_an_older_run_do_not_count) {
    char run[600], sub[700];
    folder("ckpt.run", run);
    snprintf(sub, sizeof sub, "%s/checkpoints", run);
    assert_int_equal(run_checkpoint(run, 0), -1);
    T_OK(file_make_dir(sub));
    file_in(sub, "000000000300.ckpt", "x");
    file_in(sub, "000000000700.ckpt.tmp", "x");
    file_in(sub, "notes.ckpt", "x");
    assert_int_equal(run_checkpoint(run, 0), 300);
    assert_int_equal(run_checkpoint(run, clock_wall() + 5), -1);
    assert_false(run_finished(run, 0));
    file_in(run, "run.json", "{\"finished\": true}");
    assert_true(run_finished(run, 0));
    assert_false(run_finished(run, clock_wall() + 5));
}

/* ------------------------------------------------------------------ verdicts ------------------------------------------------ */

static void judged(const char *mpi, const char *run, int status, enum verdict want, i32 code) {
    const struct launch_job job = job_of(mpi, run);
    i32 got;
    const enum verdict v = verdict_of(&job, status, 100, &got);
    if (v != want || got != code)
        fail_msg("%s, wait status %x: verdict %d with %d, not %d with %d", mpi, status, v, got, want, code);
}
#define EXIT(n) ((n) << 8)

TEST(verdict_of_one_process) {
    judged("none", "none.run", EXIT(0), VERDICT_DONE, 0);
    judged("none", "none.run", EXIT(75), VERDICT_AGAIN, 75);
    judged("none", "none.run", EXIT(8), VERDICT_AGAIN, 8);
    judged("none", "none.run", 9, VERDICT_AGAIN, 137);
    judged("none", "none.run", EXIT(9), VERDICT_FINAL, 9);
    judged("none", "none.run", EXIT(2), VERDICT_FINAL, 2);
}

static void record(const char *run, i32 rank, f64 time, const char *phase, i32 status) {
    char name[40], text[200];
    snprintf(name, sizeof name, "status/rank-%d.json", rank);
    snprintf(text, sizeof text, "{\"rank\":%d,\"time\":%g,\"phase\":\"%s\",\"exit\":%d}", rank, time, phase, status);
    file_in(run, name, text);
}

TEST(verdict_of_ranks_under_a_launcher) {
    char run[600], sub[700];
    folder("mpi.run", run);
    snprintf(sub, sizeof sub, "%s/status", run);
    T_OK(file_make_dir(sub));
    judged("mpich", run, EXIT(9), VERDICT_FINAL, 9); /* nobody had begun: what the program itself says */
    judged("mpich", run, EXIT(0), VERDICT_DONE, 0);
    record(run, 0, 50, "failed", 3);                  /* of an attempt before */
    judged("mpich", run, EXIT(9), VERDICT_FINAL, 9);
    record(run, 0, 150, "train", -1);
    record(run, 1, 150, "train", -1);
    judged("mpich", run, EXIT(9), VERDICT_AGAIN, 9); /* a rank was killed */
    judged("openmpi", run, EXIT(137), VERDICT_AGAIN, 137);
    judged("openmpi", run, EXIT(75), VERDICT_AGAIN, 75);
    record(run, 1, 150, "failed", 75);
    judged("mpich", run, EXIT(9), VERDICT_AGAIN, 9);
    record(run, 1, 150, "failed", 5);
    judged("mpich", run, EXIT(13), VERDICT_FINAL, 5); /* MPICH mixes the numbers of its ranks; the record does not */
    record(run, 0, 150, "stopped", 75);
    record(run, 1, 150, "stopped", 75);
    judged("mpich", run, EXIT(0), VERDICT_AGAIN, 8); /* it forgot what its ranks ended with */
    record(run, 1, 150, "done", 0);
    record(run, 0, 150, "done", 0);
    judged("mpich", run, EXIT(0), VERDICT_DONE, 0);
    judged("openmpi", run, EXIT(10), VERDICT_FINAL, 10); /* --require-skill, after the model was written */
    judged("openmpi", run, EXIT(137), VERDICT_DONE, 137); /* killed when all was written, by whatever its launcher says of it */
    judged("mpich", run, EXIT(9), VERDICT_DONE, 9);
    judged("none", run, 9, VERDICT_AGAIN, 137);
    record(run, 0, 150, "score", -1);
    judged("openmpi", run, EXIT(137), VERDICT_AGAIN, 137);
    file_in(run, "run.json", "{\"finished\": true}\n"); /* STRETTO_WATCH=off: no records */
    judged("openmpi", run, EXIT(137), VERDICT_DONE, 137);
}

T_MAIN(cmocka_unit_test(words_are_quoted_as_a_shell_reads_them), cmocka_unit_test(command_lines_of_threads_and_of_each_mpi),
       cmocka_unit_test(rendering_shows_both_lines),
       cmocka_unit_test(every_launcher_has_a_name_a_help_and_an_example),
       cmocka_unit_test(options_that_a_launcher_does_not_take_are_refused), cmocka_unit_test(ranks_of_a_cluster_need_a_library),
       cmocka_unit_test(time_limits_in_every_form), cmocka_unit_test(backoff_doubles_up_to_ten_seconds),
       cmocka_unit_test(log_of_a_supervisor_that_was_killed_is_gone_on_from),
       cmocka_unit_test(checkpoints_of_an_older_run_do_not_count), cmocka_unit_test(verdict_of_one_process),
       cmocka_unit_test(verdict_of_ranks_under_a_launcher))
