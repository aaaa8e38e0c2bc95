/* t_folder.c - folders of text tables: one text cut into files gives the table of the text, whatever the files, chunks and
 * threads; places in messages are those in the files. */
#include "tables.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "data/folder.h"
#include "data/table.h"

static void put(const char *dir, const char *name, const char *text, size_t n) {
    char path[400];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

/* A new folder. */
static const char *folder(void) {
    static char dir[300];
    static i32 n;
    snprintf(dir, sizeof dir, "%s/folder-%d", t_dir(), n++);
    assert_int_equal(mkdir(dir, 0700), 0);
    return dir;
}

enum { ROWS = 60 };

/* Row i of a text with words, quotes and missing cells. */
static i32 row(char *to, size_t size, i32 i) {
    static const char *const words[] = {"a", "\"b,\nb\"", "NA", "\"c\"\"\""};
    return snprintf(to, size, "2011-01-01 %02d:%02d,%d.5,%s\n", i / 60, i % 60, i * i, words[i * 7 % 4]);
}

/* Cuts the rows at random places into files with or without a line feed at their end. */
static void cut(const char *dir, bool header, u32 *seed, i32 *first, i32 *nfile) {
    char text[1 << 13], name[40];
    i32 fill = 0, file = 0;
    for (i32 i = 0; i < ROWS; i++) {
        if (fill == 0) {
            first[file] = i;
            if (header) fill = snprintf(text, sizeof text, "%s%s", *seed % 3 ? "" : "\n", "ds,y,w\n");
        }
        fill += row(text + fill, sizeof text - (size_t)fill, i);
        *seed = *seed * 1664525 + 1013904223;
        if (i + 1 < ROWS && (*seed >> 16) % 8) continue;
        snprintf(name, sizeof name, "part-%03d.csv", file++);
        put(dir, name, text, (size_t)(fill - ((*seed >> 20) % 2 == 0)));
        fill = 0;
    }
    *nfile = file;
}

TEST(folder_of_text_is_the_table_of_the_text) {
    char whole[1 << 13];
    u32 seed = 5;
    for (i32 turn = 0; turn < 24; turn++) {
        const bool header = turn % 4 != 0;
        struct read_options o = READ_OPTIONS_DEFAULT;
        struct table *one, *t;
        i32 fill = header ? snprintf(whole, sizeof whole, "ds,y,w\n") : 0, first[ROWS], nfile;
        for (i32 i = 0; i < ROWS; i++) fill += row(whole + fill, sizeof whole - (size_t)fill, i);
        const char *dir = folder();
        const i64 before = mem_stats().live;
        cut(dir, header, &seed, first, &nfile);
        put(dir, "_SUCCESS", "x", 1);
        put(dir, ".part-000.csv.crc", "x", 1);
        put(dir, "part-999.csv", "", 0);
        T_OK(table_read(t_file("whole.csv", whole), &o, &one));
        o.threads = 1 + turn % 3;
        o.chunk = turn % 2 ? 7 + 11 * turn : 0;
        T_OK(table_read(dir, &o, &t));
        same_tables(t, one);
        for (i32 k = 0; k < nfile; k++) {
            char where[256], want[40];
            table_where(t, first[k], NULL, where);
            snprintf(want, sizeof want, "part-%03d.csv:", k);
            assert_non_null(strstr(where, want));
            assert_in_range(atoi(strstr(where, want) + strlen(want)), 1 + header, 2 + header);
        }
        table_free(one);
        table_free(t);
        assert_int_equal(mem_stats().live, before);
    }
}

static void fails(const char *dir, i32 code, const char *where, const char *text) {
    struct read_options o = READ_OPTIONS_DEFAULT;
    struct table *t;
    const i64 before = mem_stats().live;
    T_FAILS(table_read(dir, &o, &t), code);
    if (!strstr(err_last()->where, where) || !strstr(err_last()->text, text))
        fail_msg("%s: %s", err_last()->where, err_last()->text);
    assert_int_equal(mem_stats().live, before);
}

#define PUT(dir, name, text) put(dir, name, text, sizeof text - 1)

TEST(folder_headers_must_agree) {
    const char *dir = folder();
    PUT(dir, "a.csv", "ds,y\n1,2\n");
    PUT(dir, "b.csv", "\nds,z\n2,3\n");
    fails(dir, 202, "b.csv:2:2", "column 2 of the header is \"z\" here and \"y\"");
    PUT(dir, "b.csv", "ds,y,z\n2,3,4\n");
    fails(dir, 202, "b.csv:1:3", "the header has 3 columns");
    PUT(dir, "b.csv", "ds\n2\n");
    fails(dir, 202, "b.csv:1:2", "the header has 1 column,");
    PUT(dir, "b.csv", "2,3\n");
    fails(dir, 202, "b.csv:1:1", "\"2\" here and \"ds\"");
}

TEST(folder_places_are_those_of_the_files) {
    const char *dir = folder();
    PUT(dir, "a.csv", "ds,y\n2011-01-01,2\n2011-01-02,3\n2011-01-03,3");
    PUT(dir, "b.csv", "ds,y\n2011-01-04,2\n2011-01-05,x\n2011-01-06,3\n");
    fails(dir, 204, "b.csv:3:2", "\"x\" in column \"y\"");
    PUT(dir, "b.csv", "ds,y\n2011-01-04,2\n2011-01-05,\"x\n2011-01-06,3\n");
    PUT(dir, "c.csv", "ds,y\n2011-01-04,\"2\"\n");
    fails(dir, 206, "b.csv:3", "never ends");
    PUT(dir, "b.csv", "ds,y\n2011-01-04,2\n\n2011-01-05,\xFF\n2011-01-06,3\n");
    fails(dir, 202, "b.csv:4", "is not UTF-8");
    PUT(dir, "b.csv", "ds,y\n2011-01-04\n");
    fails(dir, 203, "b.csv:2", "1 field, the header has 2");
}

TEST(folder_without_records_or_with_two_formats) {
    const char *dir = folder();
    fails(dir, 202, dir, "no data file is in it");
    PUT(dir, "readme.md", "x");
    fails(dir, 202, dir, "no data file is in it");
    PUT(dir, "a.csv", "");
    fails(dir, 201, dir, "the files of the folder are empty");
    PUT(dir, "a.csv", "ds,y\n");
    PUT(dir, "b.csv", "ds,y\n");
    fails(dir, 201, dir, "a header only");
    PUT(dir, "b.arrow", "x");
    fails(dir, 202, dir, "two formats, arrow and csv");
}

TEST(folder_parts_by_name) {
    static const char *const ending[] = {".csv", "part-", NULL};
    const char *dir = folder(), **file;
    struct arena memory = {0};
    i32 n;
    PUT(dir, "part-1", "x");
    PUT(dir, "part-0.csv", "x");
    PUT(dir, "part-2.crc", "x");
    PUT(dir, ".csv", "x");
    PUT(dir, "_part-3.csv", "x");
    T_OK(folder_list(&memory, dir, ending, &file, &n));
    assert_int_equal(n, 2);
    assert_non_null(strstr(file[0], "/part-0.csv"));
    assert_non_null(strstr(file[1], "/part-1"));
    arena_free(&memory);
}

T_MAIN(cmocka_unit_test(folder_of_text_is_the_table_of_the_text), cmocka_unit_test(folder_headers_must_agree),
       cmocka_unit_test(folder_places_are_those_of_the_files), cmocka_unit_test(folder_without_records_or_with_two_formats),
       cmocka_unit_test(folder_parts_by_name))
