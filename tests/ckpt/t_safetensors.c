/* t_safetensors.c - written files read back, equal content gives equal bytes, damaged files are refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "ckpt/safetensors.h"
#include "t.h"

static f32 weight[6] = {1, 2, 3, 4, 5, 6};
static f64 scale[2] = {0.1, 1e300};
static i64 count = 1LL << 60;
static u8 bytes[3] = {7, 0, 255};

static const struct tens four[] = {
    {"b.weight", DTYPE_F32, 2, {2, 3}, weight},
    {"a.bytes", DTYPE_U8, 1, {3}, bytes},
    {"count", DTYPE_I64, 0, {0}, &count},
    {"scale", DTYPE_F64, 1, {2}, scale},
};
static const struct meta two[] = {{"zeta", "last \"quoted\"\n"}, {"alpha", "{\"a\": 1}"}};

static const char *path_in(const char *name) {
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s", t_dir(), name);
    return path;
}

TEST(write_then_read_gives_tensors_and_metadata) {
    struct st_file *f;
    T_OK(st_write(path_in("a.model"), four, 4, two, 2));
    T_OK(st_read(path_in("a.model"), &f));
    assert_int_equal(f->ntens, 4);
    assert_int_equal(f->nmeta, 2);
    const struct tens *w = st_find(f, "b.weight"), *c = st_find(f, "count");
    assert_non_null(w);
    assert_int_equal(w->ndim, 2);
    assert_int_equal(w->dim[1], 3);
    assert_memory_equal(w->data, weight, sizeof weight);
    assert_int_equal(c->ndim, 0);
    assert_true(*(const i64 *)c->data == count);
    assert_memory_equal(st_find(f, "scale")->data, scale, sizeof scale);
    assert_memory_equal(st_find(f, "a.bytes")->data, bytes, sizeof bytes);
    assert_string_equal(st_meta(f, "zeta"), two[0].value);
    assert_null(st_find(f, "B.weight"));
    assert_null(st_meta(f, "beta"));
    st_free(f);
}

TEST(write_gives_the_same_bytes_for_any_order) {
    struct tens turned[4];
    struct meta back[2] = {two[1], two[0]};
    char *a, *b;
    i64 na, nb;
    for (i32 i = 0; i < 4; i++) turned[i] = four[3 - i];
    T_OK(st_write(path_in("1"), four, 4, two, 2));
    T_OK(file_load(path_in("1"), 1 << 20, &a, &na));
    T_OK(st_write(path_in("2"), turned, 4, back, 2));
    T_OK(file_load(path_in("2"), 1 << 20, &b, &nb));
    assert_int_equal(na, nb);
    assert_memory_equal(a, b, (size_t)na);
    u64 header = 0;
    for (i32 i = 7; i >= 0; i--) header = header << 8 | (u8)a[i];
    assert_int_equal(header % 8, 0);
    assert_int_equal((i64)header + 8 + 16 + 8 + 24 + 3, na);
    assert_true(strstr(a + 8, "alpha") < strstr(a + 8, "zeta"));
    mem_free(a);
    mem_free(b);
}

TEST(write_refuses_two_tensors_of_one_name_and_a_missing_folder) {
    struct tens twice[2] = {four[0], four[0]};
    T_FAILS(st_write(path_in("twice"), twice, 2, NULL, 0), E1);
    assert_false(file_exists(path_in("twice")));
    T_FAILS(st_write(path_in("no/folder/x"), four, 4, NULL, 0), E702);
}

TEST(write_of_nothing_reads_back) {
    struct st_file *f;
    struct tens none = {"empty", DTYPE_F32, 2, {0, 5}, NULL};
    T_OK(st_write(path_in("none"), NULL, 0, NULL, 0));
    T_OK(st_read(path_in("none"), &f));
    assert_int_equal(f->ntens + f->nmeta, 0);
    st_free(f);
    T_OK(st_write(path_in("none"), &none, 1, NULL, 0));
    T_OK(st_read(path_in("none"), &f));
    assert_int_equal(st_find(f, "empty")->dim[1], 5);
    st_free(f);
}

/* A file of this header and n bytes of data; length < 0 = the header's own. */
static const char *raw(const char *header, i64 length, i32 ndata) {
    static char path[4096];
    snprintf(path, sizeof path, "%s/raw", t_dir());
    FILE *f = fopen(path, "wb");
    u64 n = length < 0 ? strlen(header) : (u64)length;
    for (i32 i = 0; i < 8; i++) fputc((int)(n >> (8 * i) & 255), f);
    fputs(header, f);
    for (i32 i = 0; i < ndata; i++) fputc(i, f);
    fclose(f);
    return path;
}

static void refused(const char *header, i64 length, i32 ndata, const char *why) {
    struct st_file *f;
    T_FAILS(st_read(raw(header, length, ndata), &f), E901);
    assert_null(f);
    if (!strstr(err_last()->text, why)) {
        print_error("header %s\n  says \"%s\", want \"%s\"\n", header, err_last()->text, why);
        fail();
    }
}

#define ENTRY(shape, begin, end) "{\"dtype\":\"F32\",\"shape\":" shape ",\"data_offsets\":[" begin "," end "]}"

TEST(read_refuses_every_broken_rule_with_its_reason) {
    refused("{}", 1, 0, "header has 1 bytes");
    refused("{}", 3, 0, "header has 3 bytes");
    refused("{}", INT64_MAX, 0, "header has");
    refused("[1,2]", -1, 0, "begins with {");
    refused("{\"a\":", -1, 0, "no JSON");
    refused("{\"a\":" ENTRY("[1]", "0", "4") ",\"a\":" ENTRY("[1]", "4", "8") "}", -1, 8, "no JSON");
    refused("{\"a\":3}", -1, 0, "dtype");
    refused("{\"a\":{\"dtype\":\"F31\",\"shape\":[],\"data_offsets\":[0,4]}}", -1, 4, "dtype \"F31\"");
    refused("{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", -1, 4, "no shape");
    refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"offsets\":[0,4]}}", -1, 4, "no data_offsets");
    refused("{\"a\":" ENTRY("[1,1,1,1,1]", "0", "4") "}", -1, 4, "5 dimensions");
    refused("{\"a\":" ENTRY("[-1]", "0", "4") "}", -1, 4, "no possible size");
    refused("{\"a\":" ENTRY("[1.0]", "0", "4") "}", -1, 4, "no possible size");
    refused("{\"a\":" ENTRY("[4294967296,4294967296,4]", "0", "4") "}", -1, 4, "no possible size");
    refused("{\"a\":" ENTRY("[2]", "0", "4") "}", -1, 4, "has 4 bytes, its shape needs 8");
    refused("{\"a\":" ENTRY("[1]", "4", "0") "}", -1, 4, "lies at [4, 0)");
    refused("{\"a\":" ENTRY("[1]", "-4", "0") "}", -1, 4, "lies at");
    refused("{\"a\":" ENTRY("[2]", "0", "8") "}", -1, 4, "lies at [0, 8) of 4");
    refused("{\"a\":" ENTRY("[1]", "0", "4") "}", -1, 8, "end at byte 4");
    refused("{\"a\":" ENTRY("[1]", "4", "8") "}", -1, 8, "begins at byte 4 of the data, 0");
    refused("{\"a\":" ENTRY("[2]", "0", "8") ",\"b\":" ENTRY("[1]", "4", "8") "}", -1, 8, "begins at byte 4 of the data, 8");
    refused("{\"__metadata__\":{\"a\":1}}", -1, 0, "not a text");
    refused("{\"__metadata__\":[]}", -1, 0, "not an object");
}

TEST(read_accepts_foreign_layouts) {
    struct st_file *f;
    /* a header of odd length, an f32 after one byte: data must still be aligned */
    T_OK(st_read(raw("{\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}, \"a\":" ENTRY("[1]", "1", "5") "}", -1, 5),
                 &f));
    const struct tens *a = st_find(f, "a");
    assert_int_equal((uintptr_t)a->data % 4, 0);
    assert_memory_equal(a->data, "\1\2\3\4", 4);
    st_free(f);
}

TEST(read_of_every_cut_file_fails_cleanly) {
    char *whole;
    i64 n;
    T_OK(st_write(path_in("whole"), four, 4, two, 2));
    T_OK(file_load(path_in("whole"), 1 << 20, &whole, &n));
    for (i64 cut = 0; cut < n; cut++) {
        struct st_file *f;
        T_OK(file_write_all(path_in("cut"), whole, cut));
        T_FAILS(st_read(path_in("cut"), &f), E901);
    }
    mem_free(whole);
}

TEST(read_of_missing_file_and_folder_fails) {
    struct st_file *f;
    T_FAILS(st_read(path_in("absent"), &f), E701);
    T_FAILS(st_read(t_dir(), &f), E202);
}

TEST(every_refused_allocation_ends_in_e601_without_leak) {
    T_OK(st_write(path_in("mem"), four, 4, two, 2));
    i64 live = mem_stats().live;
    err e = -E601;
    for (i64 n = 1; e == -E601; n++) {
        struct st_file *f = NULL;
        mem_fail_nth(n);
        e = st_read(path_in("mem"), &f);
        if (e == 0) e = st_write(path_in("mem2"), f->tens, f->ntens, f->meta, f->nmeta);
        mem_fail_nth(0);
        st_free(f);
        assert_true(e == 0 || e == -E601);
        assert_int_equal(mem_stats().live, live);
    }
}

T_MAIN(cmocka_unit_test(write_then_read_gives_tensors_and_metadata), cmocka_unit_test(write_gives_the_same_bytes_for_any_order),
       cmocka_unit_test(write_refuses_two_tensors_of_one_name_and_a_missing_folder),
       cmocka_unit_test(write_of_nothing_reads_back), cmocka_unit_test(read_refuses_every_broken_rule_with_its_reason),
       cmocka_unit_test(read_accepts_foreign_layouts), cmocka_unit_test(read_of_every_cut_file_fails_cleanly),
       cmocka_unit_test(read_of_missing_file_and_folder_fails),
       cmocka_unit_test(every_refused_allocation_ends_in_e601_without_leak))
