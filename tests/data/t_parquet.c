/* t_parquet.c - Parquet files: the seeds of the fuzzer (made with pyarrow) against the same rows as CSV text, files of one table,
 * decoders of pages, and files that are cut off or changed in any byte. */
#include "tables.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "data/parquet.h"

static struct table *read_seed(const char *name, const struct read_options *o) { return table_of_seed("parquet", name, o); }

TEST(parquet_table_is_the_csv_table) {
    static const char *const names[] = {"plain.parquet", "v2.parquet", "groups.parquet", "lz4.parquet", "none.parquet", NULL};
    seeds_are_the_csv_table("parquet", names);
}

TEST(parquet_columns_in_other_roles) {
    struct read_options o = READ_OPTIONS_DEFAULT;
    o.cat = "big,d,b";
    o.more_na = "-9,a";
    struct table *t = read_seed("groups.parquet", &o);
    assert_int_equal(t->col[2].missing, 2);
    assert_int_equal(t->col[7].nword, 1);
    assert_string_equal(t->col[3].word[1], "9223372036854775808");
    assert_string_equal(t->col[6].word[1], "12345678901234567890.50");
    assert_string_equal(t->col[5].word[1], "false");
    assert_int_equal(t->col[8].type, COL_TIME);
    assert_int_equal(t->col[8].time[2], t->col[0].time[2]);
    table_free(t);
}

/* Pages of few rows, a zone, deltas of numbers and of texts. */
TEST(parquet_pages_of_a_column_follow_each_other) {
    struct read_options o = READ_OPTIONS_DEFAULT;
    struct table *t = read_seed("long.parquet", &o);
    assert_int_equal(t->nrow, 40);
    assert_true(t->col[0].zoned);
    for (i64 i = 0; i < 40; i++) {
        char text[20];
        assert_int_equal(t->col[0].time[i], 1711843200 + 3600 * i);
        assert_true(i % 7 ? t->col[1].number[i] == (f64)(i * i) : isnan(t->col[1].number[i]));
        snprintf(text, sizeof text, "a%d", (i32)i % 5);
        assert_string_equal(t->col[2].word[t->col[2].code[i]], text);
        snprintf(text, sizeof text, "pre%03d", (i32)i);
        assert_string_equal(t->col[3].word[t->col[3].code[i]], text);
    }
    table_free(t);
}

TEST(parquet_int96_times_are_in_utc) {
    struct read_options o = READ_OPTIONS_DEFAULT;
    struct table *t = read_seed("int96.parquet", &o);
    assert_int_equal(t->col[0].time[1], 1293926400);
    assert_true(t->col[0].zoned);
    table_free(t);
}

/* The name of a zone, in the metadata of Arrow: as the offsets of a text. */
TEST(parquet_zones_by_name_are_kept) {
    static const char text[] = "ds,y\n2024-10-27 01:00+02:00,1\n2024-10-27 02:00+02:00,2\n2024-10-27 02:00+01:00,3\n"
                               "2024-10-27 03:00+01:00,4\n2024-10-27 04:00+01:00,5\n2024-10-27 05:00+01:00,6\n";
    struct read_options o = READ_OPTIONS_DEFAULT;
    struct zone *z;
    struct table *csv;
    T_OK(zone_load("Europe/Berlin", &z));
    if (!z) skip(); /* no time zones on this system */
    zone_free(z);
    struct table *t = read_seed("zone.parquet", &o), *stream = read_seed("../arrow/zone.arrows", &o);
    T_OK(table_read(t_file("zone.csv", text), &o, &csv));
    same_files(t, csv);
    same_files(stream, csv);
    assert_int_equal(t->col[0].zone, 7200);
    table_free(t);
    table_free(stream);
    table_free(csv);
}

static void refused(const char *name, i32 code, const char *text) {
    struct read_options o = READ_OPTIONS_DEFAULT;
    struct table *t;
    i64 n;
    char *bytes = table_seed("parquet", name, &n);
    T_FAILS(table_read(table_put(name, bytes, n), &o, &t), code);
    if (!strstr(err_last()->text, text)) fail_msg("%s", err_last()->text);
    mem_free(bytes);
}

TEST(parquet_what_is_not_read_is_refused_with_a_remedy) {
    struct read_options o = READ_OPTIONS_DEFAULT;
    refused("nested.parquet", 214, "column \"v\" is a nested column");
    assert_non_null(strstr(err_last()->fix, "--ignore v"));
    refused("brotli.parquet", 202, "compressed with Brotli");
    assert_non_null(strstr(err_last()->fix, "zstd"));
    o.ignore = "v,s,t";
    struct table *t = read_seed("nested.parquet", &o);
    assert_int_equal(t->ncol, 1);
    assert_true(t->col[0].number[2] == 3);
    table_free(t);
}

TEST(parquet_files_of_a_folder_are_one_table) {
    struct read_options o = READ_OPTIONS_DEFAULT;
    char dir[300], where[256];
    struct table *t;
    i64 n;
    char *bytes = table_seed("parquet", "plain.parquet", &n);
    snprintf(dir, sizeof dir, "%s/parts", t_dir());
    assert_int_equal(mkdir(dir, 0700), 0);
    table_put("parts/part-1.snappy.parquet", bytes, n);
    table_put("parts/part-0.parquet", bytes, n);
    table_put("parts/_SUCCESS", "", 0);
    T_OK(table_read(dir, &o, &t));
    assert_int_equal(t->nrow, 6);
    assert_int_equal(t->col[7].code[5], t->col[7].code[2]);
    table_where(t, 4, &t->col[1], where);
    assert_non_null(strstr(where, "part-1.snappy.parquet:2:2"));
    table_free(t);
    mem_free(bytes);
    bytes = table_seed("parquet", "int96.parquet", &n);
    table_put("parts/part-1.snappy.parquet", bytes, n);
    T_FAILS(table_read(dir, &o, &t), 202);
    assert_non_null(strstr(err_last()->text, "2 columns, but"));
    mem_free(bytes);
}

TEST(parquet_pages_unpack) {
    static const u8 snappy[] = {11, 4 << 2, 'h', 'e', 'l', 'l', 'o', 2 << 2 | 1, 5, 0, '!'};
    static const u8 lz4[] = {0x52, 'h', 'e', 'l', 'l', 'o', 5, 0, 0x00};
    static const u8 hadoop[] = {0, 0, 0, 5, 0, 0, 0, 6, 0x50, 'h', 'e', 'l', 'l', 'o', 0, 0, 0, 1, 0, 0, 0, 2, 0x10, '!'};
    u8 to[32];
    bool known;
    assert_true(parquet_unpack(1, snappy, sizeof snappy - 1, to, 11, &known) == false); /* the last literal is cut off */
    static const u8 whole[] = {12, 4 << 2, 'h', 'e', 'l', 'l', 'o', 2 << 2 | 1, 5, 0, '!'};
    assert_true(parquet_unpack(1, whole, sizeof whole, to, 12, &known));
    assert_memory_equal(to, "hellohelloh!", 12);
    assert_false(parquet_unpack(1, whole, sizeof whole, to, 13, &known));
    assert_true(parquet_unpack(7, lz4, sizeof lz4, to, 11, &known));
    assert_memory_equal(to, "hellohelloh", 11);
    assert_true(parquet_unpack(5, hadoop, sizeof hadoop, to, 6, &known));
    assert_memory_equal(to, "hello!", 6);
    assert_true(known);
    assert_false(parquet_unpack(4, lz4, sizeof lz4, to, 11, &known));
    assert_false(known);
}

/* Numbers of any number of bits, against bits that are set one by one. */
TEST(parquet_packed_numbers) {
    enum { N = 64 };
    for (i32 bits = 1; bits <= 64; bits++) {
        u8 page[16 + N * 8 + 16] = {0}, *p = page;
        i64 got[N + 1];
        u64 want[N], seed = 7;
        *p++ = 64; /* block of 64 values, one miniblock */
        *p++ = 1;
        *p++ = N + 1;
        *p++ = 0;
        *p++ = 0;
        *p++ = (u8)bits;
        for (i32 i = 0; i < N; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            want[i] = (seed ^ seed >> 29) & (bits == 64 ? ~(u64)0 : ((u64)1 << bits) - 1);
            for (i32 k = 0; k < bits; k++) {
                u8 *to = &p[(i * bits + k) >> 3];
                *to = (u8)(*to | (want[i] >> k & 1) << ((i * bits + k) & 7));
            }
        }
        const u8 *end = p + N * bits / 8;
        assert_ptr_equal(parquet_deltas(page, end, got, N + 1), end);
        assert_null(parquet_deltas(page, end - 1, got, N + 1));
        u64 sum = 0;
        for (i32 i = 0; i < N; i++) assert_true((u64)got[i + 1] == (sum += want[i]));
        if (bits > 32) continue;
        u32 run[N + 3];
        p[-1] = N / 8 << 1 | 1;
        memcpy(p + N * bits / 8, (u8[6]){3 << 1, 1, 0, 0, 0, 0}, 6);
        assert_ptr_equal(parquet_runs(p - 1, end + 1 + (bits + 7) / 8, bits, run, N + 3), end + 1 + (bits + 7) / 8);
        for (i32 i = 0; i < N; i++) assert_int_equal(run[i], want[i]);
        assert_int_equal(run[N + 2], 1);
    }
}

static void must_end(const char *path, const struct read_options *o, i64 before) {
    struct table *t;
    err_clear();
    const err e = table_read(path, o, &t);
    if (e < 0) assert_true(err_last()->text[0] != 0);
    table_free(t);
    assert_int_equal(mem_stats().live, before);
}

TEST(parquet_files_cut_off_or_changed_in_a_byte_end_in_one_error_or_a_table) {
    static const char *const names[] = {"plain.parquet", "v2.parquet", "long.parquet"};
    struct read_options o = READ_OPTIONS_DEFAULT;
    mem_set_limit(256 << 20);
    for (size_t k = 0; k < COUNT(names); k++) {
        i64 n;
        char *bytes = table_seed("parquet", names[k], &n);
        const i64 before = mem_stats().live, step = t_few() ? 7 : 1;
        for (i64 i = 0; i < n; i += step) must_end(table_put("cut.parquet", bytes, i), &o, before);
        for (i64 i = 4; i < n; i += step) {
            const char was = bytes[i];
            for (i32 turn = 0; turn < 3; turn++) {
                bytes[i] = (char)(turn == 0 ? 0xFF : turn == 1 ? was ^ 1 : 0x7F);
                must_end(table_put("changed.parquet", bytes, n), &o, before);
            }
            bytes[i] = was;
        }
        mem_free(bytes);
    }
    mem_set_limit(0);
}

T_MAIN(cmocka_unit_test(parquet_table_is_the_csv_table), cmocka_unit_test(parquet_columns_in_other_roles),
       cmocka_unit_test(parquet_pages_of_a_column_follow_each_other), cmocka_unit_test(parquet_int96_times_are_in_utc),
       cmocka_unit_test(parquet_zones_by_name_are_kept),
       cmocka_unit_test(parquet_what_is_not_read_is_refused_with_a_remedy),
       cmocka_unit_test(parquet_files_of_a_folder_are_one_table), cmocka_unit_test(parquet_pages_unpack),
       cmocka_unit_test(parquet_packed_numbers),
       cmocka_unit_test(parquet_files_cut_off_or_changed_in_a_byte_end_in_one_error_or_a_table))
