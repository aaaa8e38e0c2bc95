/* t_slurm.c - batch scripts of Slurm, and what scontrol says of jobs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "launch/slurm.h"
#include "t.h"

static const char *const args[] = {"train", "it's a file.csv", "--target", "$(oops)", "-o", "m"};

static struct launch_job job(void) {
    return (struct launch_job){.model = "m",
                               .program = "./stretto",
                               .run_dir = "m.run",
                               .mpi = "openmpi",
                               .first = {args, COUNT(args)},
                               .nodes = 2,
                               .ranks_per_node = 4,
                               .ranks = 8,
                               .max_restarts = 3};
}

static err render(const struct launch_job *j, struct str *out) { return launcher_find("slurm")->render(j, out); }

TEST(requests_are_rendered) {
    struct launch_job j = job();
    struct str s = {0};
    j.queue = "long";
    j.threads = 8;
    j.gpus_per_node = 2;
    j.memory = ((i64)3 << 30) + 1;
    j.seconds = 100;
    T_OK(render(&j, &s));
    static const char *const lines[] = {"#SBATCH --nodes=2\n",
                                        "#SBATCH --ntasks-per-node=4\n",
                                        "#SBATCH --cpus-per-task=8\n",
                                        "#SBATCH --gpus-per-node=2\n",
                                        "#SBATCH --mem=3073M\n",
                                        "#SBATCH --partition=long\n",
                                        "#SBATCH --time=0:01:40\n",
                                        "#SBATCH --signal=USR1@50 ",
                                        "#SBATCH --requeue\n",
                                        "#SBATCH --open-mode=append\n",
                                        "srun --mpi=pmix --kill-on-bad-exit=1 --cpus-per-task=8 ./stretto"};
    for (size_t i = 0; i < COUNT(lines); i++) {
        if (!strstr(s.s, lines[i])) print_error("missing: %s\n%s", lines[i], s.s);
        assert_non_null(strstr(s.s, lines[i]));
    }
    str_free(&s);
    j = job();
    T_OK(render(&j, &s));
    assert_null(strstr(s.s, "--time="));
    assert_null(strstr(s.s, "--signal="));
    assert_null(strstr(s.s, "--mem="));
    assert_null(strstr(s.s, "gpus"));
    assert_null(strstr(s.s, "partition"));
    assert_null(strstr(s.s, "export"));
    str_free(&s);
}

TEST(environment_and_library_of_the_ranks) {
    static const char *const env[] = {"STRETTO_ISA=avx2", "STRETTO_PLUGINS=a b"};
    struct launch_job j = job();
    struct str s = {0};
    j.env = (struct launch_words){env, COUNT(env)};
    j.mpi = "mpich";
    T_OK(render(&j, &s));
    assert_non_null(strstr(s.s, "export STRETTO_ISA=avx2\nexport 'STRETTO_PLUGINS=a b'\n"));
    assert_non_null(strstr(s.s, "srun --mpi=pmi2 "));
    str_free(&s);
    j.ranks = 1;
    T_OK(render(&j, &s));
    assert_non_null(strstr(s.s, "srun --mpi=none "));
    str_free(&s);
}

TEST(names_that_a_script_cannot_hold) {
    struct launch_job j = job();
    struct str s = {0};
    j.queue = "a\n#SBATCH --uid=0";
    T_FAILS(render(&j, &s), E103);
    j = job();
    j.model = "my file";
    T_FAILS(render(&j, &s), E103);
    j = job();
    j.model = "folder/";
    T_FAILS(render(&j, &s), E103);
    str_free(&s);
}

static void stand_in(const char *name, const char *text) { assert_int_equal(chmod(t_file(name, text), 0755), 0); }

/* Stand-ins of srun and scontrol: srun writes down how it was called and ends as it is told. */
static int run_script(const char *script, const char *srun_exit, const char *restarts, const char *config, char *called,
                      size_t size) {
    struct str line = {0};
    char path[600];
    char *text = NULL;
    i64 n = 0;
    t_file("job.sh", script);
    stand_in("srun", "#!/bin/sh\nprintf '%s|' \"$@\" >called\nexit $SRUN_EXIT\n");
    stand_in("scontrol", "#!/bin/sh\n[ $1 = show ] && echo \"$CONFIG\" || echo \"$@\" >>called\n");
    str_addf(&line, "cd '%s' && : >called && PATH=.:$PATH SRUN_EXIT=%s CONFIG='%s' SLURM_JOB_ID=7 %s%s bash job.sh 2>said",
             t_dir(), srun_exit, config, restarts ? "SLURM_RESTART_COUNT=" : "", restarts ? restarts : "");
    const int status = system(line.s);
    str_free(&line);
    snprintf(path, sizeof path, "%s/called", t_dir());
    T_OK(file_load(path, 1 << 16, &text, &n));
    snprintf(called, size, "%s", text);
    mem_free(text);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static const char known[] = "RequeueExit             = 12,75", unknown[] = "RequeueExit             = (null)";

TEST(script_starts_what_was_asked_for) {
    struct launch_job j = job();
    struct str s = {0};
    char called[2000];
    T_OK(render(&j, &s));
    assert_int_equal(run_script(s.s, "0", NULL, known, called, sizeof called), 0);
    assert_string_equal(called, "--mpi=pmix|--kill-on-bad-exit=1|./stretto|train|it's a file.csv|--target|$(oops)|-o|m|");
    str_free(&s);
}

TEST(script_passes_on_what_no_try_mends) {
    struct launch_job j = job();
    struct str s = {0};
    char called[2000];
    T_OK(render(&j, &s));
    assert_int_equal(run_script(s.s, "3", NULL, known, called, sizeof called), 3);
    assert_int_equal(run_script(s.s, "8", NULL, known, called, sizeof called), 8); /* a rank lost, and nothing to go on from */
    assert_int_equal(run_script(s.s, "75", NULL, known, called, sizeof called), 75);
    assert_int_equal(run_script(s.s, "137", "2", known, called, sizeof called), 75);
    assert_int_equal(run_script(s.s, "137", "3", known, called, sizeof called), 8);
    str_free(&s);
}

TEST(script_asks_where_slurm_does_not_know_75) {
    struct launch_job j = job();
    struct str s = {0};
    char called[2000];
    T_OK(render(&j, &s));
    assert_int_equal(run_script(s.s, "75", NULL, unknown, called, sizeof called), 75);
    assert_non_null(strstr(called, "requeue 7\n"));
    assert_int_equal(run_script(s.s, "75", NULL, known, called, sizeof called), 75);
    assert_null(strstr(called, "requeue"));
    str_free(&s);
}

TEST(script_goes_on_from_a_checkpoint) {
    struct launch_job j = job();
    struct str s = {0};
    char called[2000], folder[600];
    snprintf(folder, sizeof folder, "%s/m.run/checkpoints", t_dir());
    T_OK(file_make_dir(folder));
    T_OK(render(&j, &s));
    t_file("m.run/checkpoints/000000000300.ckpt", "x");
    assert_int_equal(run_script(s.s, "8", NULL, known, called, sizeof called), 75); /* a rank lost, and something to go on from */
    assert_string_equal(called, "--mpi=pmix|--kill-on-bad-exit=1|./stretto|resume|m.run|");
    str_free(&s);
}

TEST(states_of_a_job) {
    struct slurm_state s;
    assert_true(
        slurm_state_read("JobId=5 JobName=k JobState=PENDING Reason=NonZeroExitCode Requeue=1 Restarts=8 ExitCode=75:0", &s));
    assert_string_equal(s.name, "PENDING");
    assert_string_equal(s.why, "NonZeroExitCode");
    assert_int_equal(s.restarts, 8);
    assert_false(s.over);
    assert_true(slurm_state_read("JobId=5 JobState=FAILED DerivedExitCode=0:0 ExitCode=10:0\n", &s));
    assert_true(s.over);
    assert_int_equal(s.exit_code, 10);
    assert_true(slurm_state_read("JobId=5 JobState=CANCELLED ExitCode=0:15", &s));
    assert_true(s.over);
    assert_int_equal(s.signal, 15);
    assert_false(slurm_state_read("slurm_load_jobs error: Invalid job id specified", &s));
}

/* scontrol is what the text says; setting a weight with it, with so much patience. */
static err weight_by(const char *scontrol, u32 patience) {
    struct slurm_weight w;
    struct str path = {0};
    const char *before = getenv("PATH");
    char kept[4096];
    snprintf(kept, sizeof kept, "%s", before ? before : "");
    if (scontrol) stand_in("scontrol", scontrol);
    str_addf(&path, "%s:%s", t_dir(), kept);
    setenv("PATH", scontrol ? str_text(&path) : "/absent", 1);
    T_OK(slurm_weight_command("node1", 62, &w));
    err e = slurm_set_weight(&w, patience);
    setenv("PATH", kept, 1);
    str_free(&path);
    return e;
}

TEST(weights_are_set_by_scontrol) {
    char script[800], path[600];
    char *text = NULL;
    i64 n = 0;
    snprintf(path, sizeof path, "%s/called", t_dir());
    snprintf(script, sizeof script, "#!/bin/sh\necho \"$@\" >'%s'\n", path);
    T_OK(weight_by(script, 20));
    T_OK(file_load(path, 1 << 16, &text, &n));
    assert_string_equal(text, "update NodeName=node1 Weight=62\n");
    mem_free(text);
    T_FAILS(weight_by("#!/bin/sh\necho 'slurm_update error: Invalid node name specified' >&2\nexit 1\n", 20), E805);
    assert_non_null(strstr(err_last()->text, "NodeName=node1: slurm_update error: Invalid node name specified"));
    T_FAILS(weight_by("#!/bin/sh\nexec sleep 30\n", 1), E805);
    assert_string_equal(err_last()->text, "scontrol gave no answer within 1 s");
    T_FAILS(weight_by(NULL, 20), E805);
    assert_non_null(strstr(err_last()->text, "there is no program scontrol here"));
}

TEST(names_that_no_node_has) {
    static const char *const bad[] = {"", "a b", "n1,n2", "node[1-3]", "$(oops)", "x=y", "../n",
                                      "a-name-that-is-longer-than-the-sixty-three-letters-a-host-may-have"};
    struct slurm_weight w;
    for (size_t i = 0; i < COUNT(bad); i++) T_FAILS(slurm_weight_command(bad[i], 1, &w), E103);
}

T_MAIN(cmocka_unit_test(requests_are_rendered), cmocka_unit_test(environment_and_library_of_the_ranks),
       cmocka_unit_test(names_that_a_script_cannot_hold), cmocka_unit_test(script_starts_what_was_asked_for),
       cmocka_unit_test(script_passes_on_what_no_try_mends), cmocka_unit_test(script_asks_where_slurm_does_not_know_75),
       cmocka_unit_test(script_goes_on_from_a_checkpoint), cmocka_unit_test(states_of_a_job),
       cmocka_unit_test(weights_are_set_by_scontrol), cmocka_unit_test(names_that_no_node_has))
