/* t_wisdom.c - the wisdom file: its path, reading and writing, damage, other versions, two concurrent processes. */
#define _GNU_SOURCE
#include "t.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "tune/wisdom.h"

static char dir[64], path[96];

static void begin(void) {
    snprintf(dir, sizeof dir, "/tmp/wisdom.XXXXXX");
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/deep/wisdom", dir);
    setenv("STRETTO_WISDOM", path, 1);
}

static void end(void) {
    char command[160];
    snprintf(command, sizeof command, "rm -rf %s", dir);
    assert_int_equal(system(command), 0);
}

static struct tune_entry entry(i32 H, i32 best) {
    struct tune_entry e = {.key = {.kind = TUNE_HOW, .table = "avx512", .T = 100, .B = 32, .I = 8, .H = H, .threads = 2}};
    snprintf(e.key.cpu, sizeof e.key.cpu, "cpu/1");
    e.best = best;
    e.seconds[0] = 571.2e-6;
    e.seconds[1] = 1.5;
    e.fresh = true;
    return e;
}

static void write_text(const char *text) {
    char folder[96];
    snprintf(folder, sizeof folder, "%s/deep", dir);
    T_OK(file_make_dir(folder));
    T_OK(file_write_all(path, text, (i64)strlen(text)));
}

static struct tune_seconds cost_of(const char *work, f64 seconds) {
    struct tune_seconds c = {.threads = 2, .seconds = seconds, .fresh = true};
    snprintf(c.cpu, sizeof c.cpu, "cpu/1");
    snprintf(c.table, sizeof c.table, "avx512");
    snprintf(c.work, sizeof c.work, "%s", work);
    return c;
}

TEST(costs_come_back_from_the_file) {
    struct wisdom w;
    begin();
    T_OK(wisdom_open("A", &w));
    const struct tune_seconds a = cost_of("fwd:1:alone:0:0:16", 3.25e-6), b = cost_of("fwd:1:alone:0:0:16", 2e-9);
    struct tune_seconds c = cost_of("fwd:1:alone:0:0:16", 4);
    c.threads = 1;
    T_OK(wisdom_put_cost(&w, &a));
    T_OK(wisdom_put_cost(&w, &b)); /* replaces a */
    T_OK(wisdom_put_cost(&w, &c));
    T_OK(wisdom_save(&w));
    wisdom_close(&w);
    T_OK(wisdom_open("A", &w));
    assert_int_equal(w.ncost, 2);
    assert_string_equal(w.cost[0].work, a.work);
    assert_true(fabs(w.cost[0].seconds - 2e-9) < 1e-15 && !w.cost[0].fresh);
    assert_true(w.cost[1].seconds == 4 && w.cost[1].threads == 1);
    assert_string_equal(w.damage, "");
    wisdom_close(&w);
    write_text("# stretto wisdom 1\ncost cpu=a table=b threads=2 work=x seconds=3\ncost cpu=a table=b threads=0 work=x "
               "seconds=3us\n"
               "cost cpu=a table=b threads=2 work=x seconds=3us more\ncost cpu=a table=b threads=2 work=x seconds=3us\ncost \n");
    T_OK(wisdom_open("A", &w));
    assert_int_equal(w.ncost, 1);
    assert_string_equal(w.damage, "line 2 and 3 more are damaged and were left out");
    wisdom_close(&w);
    end();
}

TEST(wisdom_comes_back_from_its_file) {
    struct wisdom w;
    begin();
    T_OK(wisdom_open("A processor = b", &w));
    assert_int_equal(w.n, 0);
    assert_string_equal(w.path, path);
    assert_true(memcmp(w.cpu, "A_processor___b/", 16) == 0);
    struct tune_entry a = entry(64, 1), b = entry(128, 0);
    b.key.kind = TUNE_PRECISION;
    b.key.cell = CELL_GRU;
    T_OK(wisdom_put(&w, &a));
    T_OK(wisdom_put(&w, &b));
    T_OK(wisdom_save(&w));
    wisdom_close(&w);
    T_OK(wisdom_open("x", &w));
    assert_int_equal(w.n, 2);
    const struct tune_entry *e = wisdom_find(&w, &a.key);
    assert_non_null(e);
    assert_int_equal(e->best, 1);
    assert_true(e->seconds[0] > 571.1e-6 && e->seconds[0] < 571.3e-6 && e->seconds[1] == 1.5);
    a.key.threads = 1;
    assert_null(wisdom_find(&w, &a.key));
    struct str s = {0};
    wisdom_line(&w.entry[1], &s);
    assert_string_equal(str_text(&s),
                        "precision cpu=cpu/1 table=avx512 cell=gru T=100 B=32 I=8 H=128 threads=2 best=fp32 "
                        "fp32=571.2us bf16=1.5s");
    str_free(&s);
    wisdom_close(&w);
    end();
}

TEST(wisdom_skips_damaged_lines_and_says_which) {
    static const char good[] =
        "how cpu=c table=amx cell=rnn precision=bf16 T=1 B=1 I=1 H=1 threads=1 best=fold fold=1us ahead=2ms";
    static const char *const bad[] = {
        "how",
        "why cpu=c",
        "how cpu=c table=amx cell=rnn precision=bf16 T=1 B=1 I=1 H=1 threads=1 best=fold fold=1us ahead=2m",
        "how cpu=c table=amx cell=rnn precision=bf16 T=0 B=1 I=1 H=1 threads=1 best=fold fold=1us ahead=2ms",
        "how cpu=c table=amx cell=rnn precision=bf16 T=1 B=1 I=1 H=99999999999 threads=1 best=fold fold=1us ahead=2ms",
        "how cpu=c table=amx cell=rnn precision=bf16 T=1 B=1 I=1 H=1 threads=1 best=bf16 fold=1us ahead=2ms",
        "how cpu=c table=amx cell=rnn precision=bf16 T=1 B=1 I=1 H=1 threads=1 best=fold fold=nanus ahead=2ms",
        "how cpu=c table=amx cell=rnn precision=bf16 T=1 B=1 I=1 H=1 threads=1 best=fold fold=1us ahead=2ms more",
        "precision cpu=c table=amx cell=rnn precision=bf16 T=1 B=1 I=1 H=1 threads=1 best=fp32 fp32=1us bf16=2ms",
        "how cpu=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa table=amx",
    };
    begin();
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct wisdom w;
        struct str s = {0};
        str_addf(&s, "# stretto wisdom 1\n%s\n\n%s\n# a remark\n", bad[i], good);
        write_text(str_text(&s));
        T_OK(wisdom_open("x", &w));
        if (w.n != 1) fail_msg("%d entries after \"%s\"", w.n, bad[i]);
        assert_string_equal(w.damage, "line 2 is damaged and was left out");
        wisdom_close(&w);
        str_free(&s);
    }
    struct wisdom w;
    write_text("# stretto wisdom 1\nx\ny\nz");
    T_OK(wisdom_open("x", &w));
    assert_string_equal(w.damage, "line 2 and 2 more are damaged and were left out");
    wisdom_close(&w);
    end();
}

/* A mistyped path must not overwrite a file, nor an older program a newer wisdom file. */
TEST(files_that_are_no_wisdom_of_ours_are_left_alone) {
    static const char *const other[] = {"# stretto wisdom 2\nwhatever\n", "# stretto wisdom\n", "GIF89a", "date,v\n2020,1\n"};
    begin();
    for (size_t i = 0; i < COUNT(other); i++) {
        struct wisdom w;
        struct tune_entry e = entry(64, 0);
        char *text;
        i64 n;
        write_text(other[i]);
        T_OK(wisdom_open("x", &w));
        assert_null(w.path);
        assert_true(w.damage[0] != 0);
        T_OK(wisdom_put(&w, &e));
        T_OK(wisdom_save(&w));
        wisdom_close(&w);
        T_OK(file_load(path, 1 << 20, &text, &n));
        assert_string_equal(text, other[i]);
        mem_free(text);
    }
    end();
}

TEST(wisdom_is_where_the_environment_says) {
    struct wisdom w;
    begin();
    setenv("STRETTO_WISDOM", "off", 1);
    T_OK(wisdom_open("x", &w));
    assert_true(w.off && !w.path);
    wisdom_close(&w);
    unsetenv("STRETTO_WISDOM");
    setenv("XDG_CACHE_HOME", dir, 1);
    T_OK(wisdom_open("x", &w));
    assert_memory_equal(w.path, dir, strlen(dir));
    assert_string_equal(w.path + strlen(dir), "/stretto/wisdom");
    wisdom_close(&w);
    setenv("XDG_CACHE_HOME", "not/absolute", 1);
    setenv("HOME", dir, 1);
    T_OK(wisdom_open("x", &w));
    assert_string_equal(w.path + strlen(dir), "/.cache/stretto/wisdom");
    wisdom_close(&w);
    unsetenv("HOME");
    T_OK(wisdom_open("x", &w));
    assert_null(w.path);
    struct tune_entry e = entry(64, 0);
    T_OK(wisdom_put(&w, &e)); /* it lasts as long as the process */
    T_OK(wisdom_save(&w));
    assert_int_equal(w.n, 1);
    wisdom_close(&w);
    end();
}

TEST(wisdom_that_cannot_be_written_says_so) {
    struct wisdom w;
    struct tune_entry e = entry(64, 0);
    begin();
    char wrong[128];
    snprintf(wrong, sizeof wrong, "%s/file/wisdom", dir);
    write_text("");
    snprintf(path, sizeof path, "%s/file", dir);
    write_text("a file where a folder is wanted");
    setenv("STRETTO_WISDOM", wrong, 1);
    T_OK(wisdom_open("x", &w));
    T_OK(wisdom_put(&w, &e));
    err got = wisdom_save(&w);
    assert_true(got == -E702 || got == -E701);
    assert_int_equal(w.n, 1);
    wisdom_close(&w);
    setenv("STRETTO_WISDOM", dir, 1); /* a folder cannot be read */
    T_OK(wisdom_open("x", &w));
    assert_true(w.damage[0] && !w.path && w.n == 0);
    wisdom_close(&w);
    end();
}

/* Concurrent writers: every line of every process is present at the end, or is written by the next save; never half a file. */
TEST(wisdom_survives_two_processes_at_once) {
    enum { PROCESSES = 4, LINES = 20 };
    begin();
    for (i32 p = 0; p < PROCESSES; p++)
        if (fork() == 0) {
            struct wisdom w;
            bool fine = wisdom_open("x", &w) == 0;
            for (i32 i = 0; i < LINES && fine; i++) {
                struct tune_entry e = entry(1 + i + LINES * p, 0);
                fine = wisdom_put(&w, &e) == 0 && wisdom_save(&w) == 0;
            }
            _exit(fine ? 0 : 1);
        }
    for (i32 p = 0; p < PROCESSES; p++) {
        int status;
        wait(&status);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    struct wisdom w;
    T_OK(wisdom_open("x", &w));
    assert_string_equal(w.damage, "");
    assert_true(w.n >= LINES / 2); /* a line that another process overwrote is only measured again */
    wisdom_close(&w);
    end();
}

TEST(wisdom_forgets_the_oldest_and_replaces) {
    struct wisdom w = {0};
    for (i32 i = 0; i < WISDOM_LINES + 3; i++) {
        struct tune_entry e = entry(i + 1, 0);
        T_OK(wisdom_put(&w, &e));
    }
    assert_int_equal(w.n, WISDOM_LINES);
    assert_int_equal(w.entry[0].key.H, 4);
    struct tune_entry e = entry(5, 1);
    T_OK(wisdom_put(&w, &e));
    assert_int_equal(w.n, WISDOM_LINES);
    assert_int_equal(w.entry[1].best, 1);
    wisdom_close(&w);
}

TEST(wisdom_survives_every_refused_allocation) {
    i64 live = mem_stats().live;
    begin();
    for (i64 nth = 1; nth < 60; nth++) {
        struct wisdom w = {0};
        struct tune_entry e = entry(64, 0);
        mem_fail_nth(nth);
        err got = wisdom_open("x", &w);
        if (got == 0) got = wisdom_put(&w, &e);
        if (got == 0) got = wisdom_save(&w);
        mem_fail_nth(0);
        wisdom_close(&w);
        assert_int_equal(mem_stats().live, live);
        if (got == 0 && nth > 8) break;
        assert_true(got == 0 || got == -E601);
    }
    end();
}

T_MAIN(cmocka_unit_test(costs_come_back_from_the_file), cmocka_unit_test(wisdom_comes_back_from_its_file),
       cmocka_unit_test(wisdom_skips_damaged_lines_and_says_which),
       cmocka_unit_test(files_that_are_no_wisdom_of_ours_are_left_alone), cmocka_unit_test(wisdom_is_where_the_environment_says),
       cmocka_unit_test(wisdom_that_cannot_be_written_says_so), cmocka_unit_test(wisdom_survives_two_processes_at_once),
       cmocka_unit_test(wisdom_forgets_the_oldest_and_replaces), cmocka_unit_test(wisdom_survives_every_refused_allocation))
