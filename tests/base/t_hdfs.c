/* t_hdfs.c - paths of HDFS without an HDFS: which ones are paths, and how files fail that cannot be reached. What works is tested
 * by tests/e2e/t_hdfs.py. */
#include "t.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hdfs.h"
#include "base/http.h"

#define NOBODY "hdfs://127.0.0.1:1" /* no service has port 1 */

TEST(schemes_of_hdfs_are_known) {
    assert_true(hdfs_is("hdfs://nn/x") && hdfs_is("webhdfs://nn:9870/x") && hdfs_is("swebhdfs://nn/x"));
    assert_false(hdfs_is("/hdfs://nn/x") || hdfs_is("hdfs:/x") || hdfs_is("file.csv") || hdfs_is(NULL));
}

TEST(address_that_is_none_is_refused) {
    static const char *const bad[] = {"hdfs://", "hdfs://nn", "hdfs:///x", "hdfs://user@nn/x", "hdfs://a b/x",
                                      "hdfs://1,2,3,4,5,6,7,8,9/x"};
    struct file_in f;
    for (size_t i = 0; i < COUNT(bad); i++) {
        T_FAILS(file_open(bad[i], &f), 701);
        assert_non_null(strstr(err_last()->text, "no address of a file"));
        assert_non_null(strstr(err_last()->fix, "hdfs://HOST:9870/PATH"));
    }
}

static void need_http(void) {
    struct http *h;
    const err e = http_open(&h);
    http_close(h);
    if (e >= 0) return;
    print_message("skipped: %s\n", err_last()->text);
    skip();
}

/* E811 of http.h becomes E706, which names the path. */
TEST(server_that_is_not_there_is_e706) {
    need_http();
    struct file_in f;
    struct file_map m;
    char *data;
    i64 n;
    T_FAILS(file_open(NOBODY "/x", &f), 706);
    assert_string_equal(err_last()->where, NOBODY "/x");
    file_close(&f);
    T_FAILS(file_load(NOBODY "/x", 100, &data, &n), 706);
    T_FAILS(file_map(NOBODY "/x", &m), 706);
    T_FAILS(file_make_dir(NOBODY "/d"), 706);
    T_FAILS(file_rename(NOBODY "/x", NOBODY "/y"), 706);
    T_FAILS(file_remove_dir(NOBODY "/d"), 706);
    T_FAILS(file_remote_writable(NOBODY "/d/x"), 706);
    assert_false(file_exists(NOBODY "/x"));
    T_FAILS(hdfs_list(NOBODY "/d", NULL, NULL), 706);
}

TEST(output_that_is_not_sent_leaves_no_file) {
    need_http();
    struct file_out f;
    T_OK(file_create(NOBODY "/x", &f));
    assert_int_not_equal(access(f.tmp, F_OK), 0); /* without a name from the beginning */
    T_OK(file_write(&f, "abc", 3));
    T_FAILS(file_commit(&f), 706);
    T_OK(file_create(NOBODY "/x", &f));
    file_abort(&f);
    file_abort(&f);
    setenv("TMPDIR", "/nowhere", 1);
    T_FAILS(file_create(NOBODY "/x", &f), 702);
    assert_non_null(strstr(err_last()->text, "/nowhere/stretto-"));
}

T_MAIN(cmocka_unit_test(schemes_of_hdfs_are_known), cmocka_unit_test(address_that_is_none_is_refused),
       cmocka_unit_test(server_that_is_not_there_is_e706), cmocka_unit_test(output_that_is_not_sent_leaves_no_file))
