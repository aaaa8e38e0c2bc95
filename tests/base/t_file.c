/* t_file.c - files written whole or not at all, loading, folders, packed data, JSON. */
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
#include "base/input.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/unfinished.h"
#include "base/zfile.h"

static const char *in_dir(const char *name) {
    static char path[300];
    snprintf(path, sizeof path, "%s/%s", t_dir(), name);
    return path;
}

static void holds(const char *path, const char *want) {
    char *data;
    i64 n;
    T_OK(file_load(path, 1 << 20, &data, &n));
    assert_string_equal(data, want);
    assert_int_equal(n, strlen(want));
    mem_free(data);
}

TEST(file_that_is_unfinished_is_removed_and_the_old_one_stays) {
    struct file_out f, done;
    char other[310];
    const char *path = in_dir("unfinished");
    snprintf(other, sizeof other, "%s.tmp", path);
    T_OK(file_write_all(path, "old", 3));
    T_OK(file_create(in_dir("finished"), &done));
    T_OK(file_commit(&done));
    T_OK(file_create(in_dir("unfinished"), &f));
    assert_int_equal(access(other, F_OK), 0);
    unfinished_remove();
    assert_int_not_equal(access(other, F_OK), 0);
    holds(in_dir("unfinished"), "old");
    holds(in_dir("finished"), "");
    file_abort(&f);
    unfinished_remove(); /* nothing is left to remove */
}

TEST(file_is_replaced_whole) {
    const char *path = in_dir("whole");
    i64 before = mem_stats().live;
    T_OK(file_write_all(path, "old", 3));
    struct file_out f;
    T_OK(file_create(path, &f));
    T_OK(file_write(&f, "new text", 8));
    holds(path, "old"); /* not visible before the commit */
    T_OK(file_commit(&f));
    holds(path, "new text");
    T_OK(file_create(path, &f));
    T_OK(file_write(&f, "half", 4));
    file_abort(&f);
    holds(path, "new text");
    assert_false(file_exists(in_dir("whole.tmp")));
    assert_int_equal(mem_stats().live, before);
}

TEST(file_two_writers_do_not_share_a_temporary) {
    struct file_out a, b;
    T_OK(file_create(in_dir("two"), &a));
    T_FAILS(file_create(in_dir("two"), &b), 702);
    T_OK(file_commit(&a));
    T_OK(file_create(in_dir("two"), &b));
    T_OK(file_commit(&b));
}

TEST(file_errors_have_codes) {
    struct file_out f;
    struct file_in in;
    T_FAILS(file_create("/no/such/folder/x", &f), 702);
    T_FAILS(file_create(t_dir(), &f), 702);
    T_FAILS(file_open("/no/such/file", &in), 701);
    T_FAILS(file_open(t_dir(), &in), 202);
    if (access("/dev/full", W_OK) != 0) skip();
    T_OK(file_create("/dev/full", &f));
    static char big[1 << 20];
    err e = file_write(&f, big, sizeof big);
    if (e >= 0) e = file_commit(&f);
    else file_abort(&f);
    assert_int_equal(e, -703);
    assert_non_null(strstr(err_last()->text, "no space left on device"));
}

TEST(file_large_writes_and_links_survive) {
    i64 n = 3000000;
    char *big = mem_alloc((size_t)n), *back;
    for (i64 i = 0; i < n; i++) big[i] = (char)(i * 7 % 251);
    char link[300];
    T_OK(file_write_all(in_dir("big"), "x", 1));
    snprintf(link, sizeof link, "%s", in_dir("link"));
    assert_int_equal(symlink(in_dir("big"), link), 0);
    T_OK(file_write_all(link, big, n));
    struct stat st;
    assert_true(lstat(link, &st) == 0 && S_ISLNK(st.st_mode)); /* the link stays, its file is replaced */
    i64 got;
    T_OK(file_load(in_dir("big"), 1 << 30, &back, &got));
    assert_int_equal(got, n);
    assert_memory_equal(back, big, (size_t)n);
    mem_free(back);
    mem_free(big);
    struct file_map m;
    T_OK(file_map(in_dir("big"), &m));
    assert_int_equal(m.size, n);
    file_unmap(&m);
}

/* A requested fault must occur, otherwise its test would pass without it. */
TEST(file_write_phase_brings_about_what_a_fault_asks_for) {
    const char *path = in_dir("phase");
    T_OK(file_write_phase(path, "before", 6, "report"));
    setenv("STRETTO_FAULT", "0:0:report=enospc", 1);
    T_FAILS(file_write_phase(path, "after!", 6, "report"), 703);
    holds(path, "before");
    setenv("STRETTO_FAULT", "0:0:report=bitflip", 1);
    T_OK(file_write_all(path, "other!", 6));
    holds(path, "other!"); /* no phase, no fault */
    T_OK(file_write_phase(path, "after!", 6, "report"));
    unsetenv("STRETTO_FAULT");
    holds(path, "aftar!");
}

TEST(file_make_dir_makes_parents) {
    T_OK(file_make_dir(in_dir("a/b/c")));
    T_OK(file_make_dir(in_dir("a/b/c")));
    assert_true(file_exists(in_dir("a/b/c")));
    T_OK(file_write_all(in_dir("plain"), "x", 1));
    T_FAILS(file_make_dir(in_dir("plain/d")), 702);
}

TEST(zfile_plain_files_pass_through) {
    T_OK(file_write_all(in_dir("p"), "hello", 5));
    char *data;
    i64 n;
    T_OK(zfile_load(in_dir("p"), &data, &n));
    assert_string_equal(data, "hello");
    mem_free(data);
    static const u8 cut[] = {0x1f, 0x8b, 8, 0}, bad[] = {0x28, 0xb5, 0x2f, 0xfd, 1, 2, 3};
    T_OK(file_write_all(in_dir("g"), cut, sizeof cut));
    T_FAILS(zfile_load(in_dir("g"), &data, &n), 202);
    T_OK(file_write_all(in_dir("z"), bad, sizeof bad));
    T_FAILS(zfile_load(in_dir("z"), &data, &n), 202);
}

TEST(json_round_trip_keeps_values_and_order) {
    struct js *o = js_object(), *a = js_array(), *back;
    js_put_i64(o, "z", INT64_MAX);
    js_put_f64(o, "a", 0.1);
    js_put_f64(o, "n", (f64)NAN);
    js_put_text(o, "t", "line\n\"q\"");
    js_put_text(o, "nothing", NULL);
    js_push(a, js_new_bool(true));
    js_push(a, js_new_text("\xFF" "x")); /* no UTF-8 */
    js_put(o, "list", a);
    struct str text = {0};
    T_OK(js_text(o, &text, 0));
    js_free(o);
    T_OK(js_parse(text.s, text.len, "x", &back));
    assert_int_equal(js_i64(js_get(back, "z"), 0), INT64_MAX);
    assert_true(js_f64(js_get(back, "a"), 0) == 0.1 && isnan(js_f64(js_get(back, "n"), 0)));
    assert_string_equal(js_str(js_get(back, "t"), ""), "line\n\"q\"");
    assert_int_equal(js_kind(js_get(back, "nothing")), JS_NULL);
    assert_int_equal(js_len(js_get(back, "list")), 2);
    assert_true(js_bool(js_at(js_get(back, "list"), 0), false));
    assert_string_equal(js_str(js_at(js_get(back, "list"), 1), ""), "?x");
    assert_int_equal(js_i64(js_get(back, "absent"), -7), -7);
    const char *name;
    const struct js *value;
    assert_true(js_member(back, 1, &name, &value));
    assert_string_equal(name, "a");
    assert_false(js_member(back, 6, &name, &value));
    js_free(back);
    str_free(&text);
}

TEST(json_mistakes_have_a_place) {
    struct js *o;
    const char *bad = "{\n  \"a\": 1,\n  \"a\": 2\n}";
    T_FAILS(js_parse(bad, strlen(bad), "c.json", &o), 104);
    assert_non_null(strstr(err_last()->text, "duplicate"));
    assert_non_null(strstr(err_last()->where, "c.json:3:"));
    T_FAILS(js_parse("{", 1, "c.json", &o), 104);
    T_FAILS(js_load("/no/such.json", &o), 701);
}

/* Runs in a process of its own, because standard input is kept once per process; returns 0, or the line that failed. */
static int read_input(const char *want) {
#define NEED(x) if (!(x)) return __LINE__ % 250 + 1
    char got[64], *data;
    struct file_in f, g;
    i64 n;
    NEED(file_open("-", &f) >= 0 && file_open("-", &g) >= 0);
    NEED(f.size == (i64)strlen(want) && strcmp(f.path, "standard input") == 0);
    NEED(file_read_some(&f, got, 3, &n) >= 0 && n == 3);
    NEED(file_read_some(&g, got, 3, &n) >= 0 && n == 3 && memcmp(got, want, 3) == 0); /* a position of its own */
    NEED(file_read_at(&f, f.size - 2, got, 2) >= 0 && memcmp(got, want + strlen(want) - 2, 2) == 0);
    file_close(&f);
    file_close(&g);
    NEED(file_load("-", 64, &data, &n) >= 0 && strcmp(data, want) == 0);
    mem_free(data);
    return 0;
}

static void input_gives(int fd, const char *want) {
    int status;
    const pid_t child = fork();
    if (child == 0) {
        dup2(fd, STDIN_FILENO);
        _exit(read_input(want));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

TEST(input_can_be_read_again_from_pipe_and_file) {
    int p[2];
    assert_int_equal(pipe(p), 0);
    assert_int_equal(write(p[1], "a,b\n1,2\n", 8), 8);
    close(p[1]);
    input_gives(p[0], "a,b\n1,2\n");
    close(p[0]);
    FILE *f = fopen(t_file("input.csv", "a,b\n1,2\n"), "r");
    input_gives(fileno(f), "a,b\n1,2\n");
    lseek(fileno(f), 4, SEEK_SET); /* another program has read the first line */
    input_gives(fileno(f), "1,2\n");
    fclose(f);
}

T_MAIN(cmocka_unit_test(file_that_is_unfinished_is_removed_and_the_old_one_stays), cmocka_unit_test(file_is_replaced_whole),
       cmocka_unit_test(file_two_writers_do_not_share_a_temporary),
       cmocka_unit_test(file_errors_have_codes), cmocka_unit_test(file_large_writes_and_links_survive),
       cmocka_unit_test(file_write_phase_brings_about_what_a_fault_asks_for),
       cmocka_unit_test(file_make_dir_makes_parents), cmocka_unit_test(input_can_be_read_again_from_pipe_and_file),
       cmocka_unit_test(zfile_plain_files_pass_through),
       cmocka_unit_test(json_round_trip_keeps_values_and_order), cmocka_unit_test(json_mistakes_have_a_place))
