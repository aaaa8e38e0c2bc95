/* t_stage.c - what goes to HDFS for other hosts: places by content, an archive that tar reads, and what a shell says of a program
 * that it cannot start. */
#include "t.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "launch/stage.h"
#include "launch/yarn.h"

static void folder_is(const char *wish, const char *want) {
    char out[STAGE_PATH];
    T_OK(stage_folder(wish, out));
    assert_string_equal(out, want);
}

TEST(stage_folder_is_the_users_own_unless_named) {
    char out[STAGE_PATH];
    setenv("HADOOP_USER_NAME", "ann", 1);
    folder_is("hdfs://nn:9870", "hdfs://nn:9870/user/ann/.stretto");
    folder_is("hdfs://nn:9870/", "hdfs://nn:9870/user/ann/.stretto");
    folder_is("hdfs://a:9870,b:9870/shared/x/", "hdfs://a:9870,b:9870/shared/x");
    assert_string_equal(stage_path("hdfs://a:9870,b:9870/shared/x"), "/shared/x");
    assert_string_equal(stage_path("hdfs://nn:9870"), "");
    T_FAILS(stage_folder("/shared", out), E103);
    T_FAILS(stage_folder("", out), E103);
}

static void write_file(const char *name, const char *text, char path[512]) {
    snprintf(path, 512, "%s/%s", t_dir(), name);
    T_OK(file_write_all(path, text, (i64)strlen(text)));
}

TEST(stage_names_files_by_content) {
    char a[512], b[512], c[512], url[3][STAGE_PATH];
    i64 bytes;
    write_file("a.csv", "1,2\n", a);
    write_file("b.csv", "1,2\n", b);
    write_file("c.csv", "1,3\n", c);
    T_OK(stage_name("hdfs://nn/s", a, &bytes, url[0]));
    assert_int_equal(bytes, 4);
    T_OK(stage_name("hdfs://nn/s", b, &bytes, url[1]));
    T_OK(stage_name("hdfs://nn/s", c, &bytes, url[2]));
    const size_t hash = strlen("hdfs://nn/s/") + 16;
    assert_memory_equal(url[0], url[1], hash); /* the same content */
    assert_string_equal(url[0] + hash, "-a.csv");
    assert_true(strncmp(url[0], url[2], hash) != 0);
    T_FAILS(stage_name("hdfs://nn/s", "/no/such/file", &bytes, url[0]), E701);
}

TEST(stage_archive_is_read_by_tar) {
    char program[512], plugin[512], path[512], url[2][STAGE_PATH], command[2048];
    struct str tar = {0}, again = {0};
    write_file("prog", "#!/bin/sh\necho it runs\n", program);
    write_file("plug.so", "", plugin);
    T_OK(stage_pack("hdfs://nn/s", program, plugin, &tar, url[0]));
    T_OK(stage_pack("hdfs://nn/s", program, plugin, &again, url[1]));
    assert_string_equal(url[0], url[1]); /* equal content, equal bytes */
    assert_int_equal(tar.len % 512, 0);
    snprintf(path, sizeof path, "%s/p.tar", t_dir());
    T_OK(file_write_all(path, str_text(&tar), (i64)tar.len));
    snprintf(command, sizeof command,
             "cd '%s' && tar -xf p.tar && test \"$(bin/prog)\" = 'it runs' && test -x lib/stretto/plug.so && "
             "ls lib | grep -q '^libjansson.so.4$'",
             t_dir());
    assert_int_equal(system(command), 0);
    str_free(&tar);
    str_free(&again);
    T_FAILS(stage_pack("hdfs://nn/s", "/no/such/program", NULL, &tar, url[0]), E701);
    str_free(&tar);
}

static void says(const char *text, const char *want) {
    char line[128];
    assert_int_equal(yarn_start_failure(text, line, sizeof line), want != NULL);
    assert_string_equal(line, want ? want : "");
}

TEST(yarn_start_failures_are_told_from_output) {
    says("", NULL);
    says("output: m.model.run/s.out.0\n", NULL);
    says("bash: warning: setlocale: LC_ALL: cannot change locale (x): No such file or directory\n", NULL);
    says("LogType:stderr.txt\n/bin/bash: line 1: /opt/stretto: No such file or directory\nmore\n",
         "/bin/bash: line 1: /opt/stretto: No such file or directory");
    says("x: error while loading shared libraries: libhwloc.so.15: cannot open",
         "x: error while loading shared libraries: libhwloc.so.15: cannot open");
    says("x: /lib/libm.so.6: version `GLIBC_2.99' not found (required by x)",
         "x: /lib/libm.so.6: version `GLIBC_2.99' not found (required by x)");
}

T_MAIN(cmocka_unit_test(stage_folder_is_the_users_own_unless_named), cmocka_unit_test(stage_names_files_by_content),
       cmocka_unit_test(stage_archive_is_read_by_tar), cmocka_unit_test(yarn_start_failures_are_told_from_output))
