/* t_checkpoint.c - checkpoints: bit-exact from any number of shards, retention of two, damaged ones skipped by name, no partial
 * reads; a failed write leaves the previous checkpoint and nothing else. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "ckpt/crc32c.h"
#include "ckpt/saver.h"
#include "t.h"

struct things {
    f32 theta[100];
    f64 best;
    i64 counter[2];
    u8 raw[5];
};

static void items(struct things *t, struct ckpt_item out[4]) {
    out[0] = (struct ckpt_item){"theta", DTYPE_F32, t->theta, 100};
    out[1] = (struct ckpt_item){"best", DTYPE_F64, &t->best, 1};
    out[2] = (struct ckpt_item){"counter", DTYPE_I64, t->counter, 2};
    out[3] = (struct ckpt_item){"raw", DTYPE_U8, t->raw, 5};
}

static struct things make(i32 k) {
    struct things t;
    memset(&t, 0, sizeof t);
    for (i32 i = 0; i < 100; i++) t.theta[i] = (f32)(i + k) / 7;
    t.theta[3] = -0.0f;
    t.best = 1.0 / (3 + k);
    t.counter[0] = INT64_MIN;
    t.counter[1] = k;
    memcpy(t.raw, "\0\1\2\377\4", 5);
    return t;
}

static const char *dir_in(const char *name) {
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s/checkpoints", t_dir(), name);
    return path;
}

/* Theta is distributed over the ranks, the rest belongs to rank 0. */
static struct ckpt_pieces pieces(i32 shards) {
    static struct ckpt_piece p[16];
    i32 n = 0;
    for (i32 r = 0; r < shards; r++) p[n++] = (struct ckpt_piece){0, r, 100 * r / shards, 100 * (r + 1) / shards};
    for (i32 i = 1; i < 4; i++) p[n++] = (struct ckpt_piece){i, 0, 0, (const i64[]){100, 1, 2, 5}[i]};
    return (struct ckpt_pieces){p, n, shards};
}

enum { RANKS = 4 };
struct fleet {
    struct ckpt_saver *saver[RANKS];
    struct ckpt_sum sum[RANKS];
    i32 n;
};

static err fleet_new(struct fleet *f, const char *dir, i32 n) {
    *f = (struct fleet){.n = n};
    for (i32 r = 0; r < n; r++) TRY(ckpt_saver_new(dir, r, r == 0 ? "rank 0 on host a" : "rank 1 on host b", 0, &f->saver[r]));
    return 0;
}

static void fleet_free(struct fleet *f) {
    for (i32 r = f->n - 1; r >= 0; r--) ckpt_saver_free(f->saver[r]);
}

/* The saved content is that of the time of the call. */
static err begin(struct fleet *f, i32 k) {
    struct things t = make(k);
    struct ckpt_item item[4];
    items(&t, item);
    const struct ckpt_save save = {.number = k, .step = k, .item = item, .nitem = 4, .keep = 2, .pieces = pieces(f->n),
                                   .run = "{\"k\": 1}"};
    for (i32 r = 0; r < f->n; r++) TRY(ckpt_saver_begin(f->saver[r], &save));
    memset(&t, 99, sizeof t);
    return 0;
}

static err failed(const struct ckpt_sum *s) {
    if (s->why.code) err_put(&s->why);
    return -s->why.code;
}

static err sums(struct fleet *f) {
    for (i32 r = 0; r < f->n; r++) ckpt_saver_sum(f->saver[r], &f->sum[r]);
    for (i32 r = 0; r < f->n; r++) TRY(failed(&f->sum[r]));
    return 0;
}

static err commit(struct fleet *f) {
    struct ckpt_sum first;
    ckpt_saver_commit(f->saver[0], f->sum);
    ckpt_saver_sum(f->saver[0], &first);
    TRY(failed(&first));
    for (i32 r = 0; r < f->n; r++) ckpt_saver_done(f->saver[r]);
    return 0;
}

static err put(const char *dir, i32 k, i32 ranks) {
    struct fleet f;
    err e = fleet_new(&f, dir, ranks);
    if (e >= 0) e = begin(&f, k);
    if (e >= 0) e = sums(&f);
    if (e >= 0) e = commit(&f);
    fleet_free(&f);
    return e;
}

/* Loads the newest intact checkpoint into *got. */
static err get(const char *dir, struct things *got, struct str *passed, i64 *number) {
    struct ckpt_item item[4];
    struct ckpt *c;
    items(got, item);
    TRY(ckpt_newest(dir, passed, &c));
    *number = ckpt_number(c);
    err e = ckpt_take(c, item, 4);
    ckpt_close(c);
    return e;
}

static const char *file_in(const char *dir, i64 number, const char *name) {
    static char path[4300];
    snprintf(path, sizeof path, "%s/%012lld.ckpt/%s", dir, (long long)number, name);
    return path;
}

static void flip(const char *path, i64 at) {
    char *text;
    i64 n;
    T_OK(file_load(path, 1 << 20, &text, &n));
    text[at < 0 ? n + at : at] ^= 16;
    T_OK(file_write_all(path, text, n));
    mem_free(text);
}

static i32 entries(const char *dir) {
    i32 n = 0;
    DIR *d = opendir(dir);
    assert_non_null(d);
    for (const struct dirent *e = readdir(d); e; e = readdir(d)) n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

TEST(crc32c_is_castagnoli) {
    assert_int_equal(crc32c(0, "123456789", 9), 0xe3069283u);
    assert_int_equal(crc32c(crc32c(0, "12345", 5), "6789", 4), 0xe3069283u);
    assert_int_equal(crc32c(0, "", 0), 0);
}

TEST(any_number_of_shards_gives_every_bit) {
    for (i32 ranks = 1; ranks <= RANKS; ranks++) {
        struct things want = make(300 + ranks), got = make(0);
        i64 number;
        T_OK(put(dir_in("bits"), 300 + ranks, ranks));
        T_OK(get(dir_in("bits"), &got, NULL, &number));
        assert_int_equal(number, 300 + ranks);
        assert_memory_equal(&got, &want, sizeof want);
    }
}

TEST(two_are_kept_and_numbers_above_go) {
    char path[4096];
    i64 number;
    const char *dir = dir_in("keep");
    for (i32 k = 0; k < 50; k += 10) T_OK(put(dir, k, 1 + k % 3));
    T_OK(ckpt_find(dir, 0, path, &number));
    assert_int_equal(number, 40);
    T_OK(ckpt_find(dir, 1, path, &number));
    assert_int_equal(number, 30);
    T_FAILS(ckpt_find(dir, 2, path, &number), E705);
    T_OK(put(dir, 35, 2)); /* after a rollback: later ones are removed */
    T_OK(ckpt_find(dir, 0, path, &number));
    assert_int_equal(number, 35);
    T_OK(put(dir, 35, 3)); /* again: it was damaged */
    assert_int_equal(entries(dir), 2);
    T_OK(ckpt_clear(dir));
    T_FAILS(ckpt_find(dir, 0, path, &number), E705);
    assert_int_equal(entries(dir), 0);
}

TEST(damaged_ones_are_passed_over_by_name) {
    static const struct {
        const char *file, *says;
        i64 at; /* bit that flips; 0 = cut short, 1 = gone */
    } cases[] = {
        {"shard-001-of-003", "shard-001-of-003: the file is damaged: its CRC32C is ", 50},
        {"shard-000-of-003", "shard-000-of-003: the file is damaged: its CRC32C is ", -1},
        {"shard-002-of-003", "shard-002-of-003: the file has 20 bytes, 136 were written", 0},
        {"shard-002-of-003", "shard-002-of-003: cannot read the file: No such file", 1},
        {"MANIFEST", "MANIFEST: the manifest is damaged: its CRC32C is another one", 50},
        {"MANIFEST", "MANIFEST: the manifest is damaged: its CRC32C is another one", -5},
        {"MANIFEST", "MANIFEST: the manifest is damaged: its CRC32C is another one", 0},
        {"MANIFEST", "MANIFEST: cannot read the file: No such file", 1},
    };
    const struct things want = make(1);
    const char *dir = dir_in("damaged");
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct things got = make(9);
        struct str passed = {0};
        i64 number;
        T_OK(ckpt_clear(dir));
        T_OK(put(dir, 1, 2));
        T_OK(put(dir, 2, 3));
        const char *path = file_in(dir, 2, cases[i].file);
        if (cases[i].at == 1) assert_int_equal(unlink(path), 0);
        else if (cases[i].at == 0) assert_int_equal(truncate(path, 20), 0);
        else flip(path, cases[i].at);
        T_OK(get(dir, &got, &passed, &number));
        assert_int_equal(number, 1);
        assert_memory_equal(&got, &want, sizeof want);
        if (!strstr(str_text(&passed), cases[i].says)) fail_msg("%s", str_text(&passed));
        assert_non_null(strstr(str_text(&passed), "000000000002.ckpt/"));
        str_free(&passed);
    }
}

TEST(all_damaged_is_the_failure_of_the_newest) {
    struct things got = make(9), same = make(9);
    i64 number;
    const char *dir = dir_in("hopeless");
    T_OK(put(dir, 1, 2));
    T_OK(put(dir, 2, 2));
    flip(file_in(dir, 1, "shard-001-of-002"), 3);
    flip(file_in(dir, 2, "shard-000-of-002"), 3);
    T_FAILS(get(dir, &got, NULL, &number), E901);
    assert_non_null(strstr(err_last()->where, "000000000002.ckpt/shard-000-of-002"));
    assert_memory_equal(&got, &same, sizeof got);
}

TEST(no_checkpoint_is_said_so) {
    struct things got;
    i64 number;
    T_FAILS(get(dir_in("nowhere"), &got, NULL, &number), E705);
    T_OK(file_make_dir(dir_in("empty")));
    T_FAILS(get(dir_in("empty"), &got, NULL, &number), E705);
}

TEST(one_of_another_run_touches_nothing) {
    struct things got = make(7), same = make(7);
    struct ckpt_item item[4];
    struct ckpt *c;
    T_OK(put(dir_in("other"), 5, 2));
    T_OK(ckpt_newest(dir_in("other"), NULL, &c));
    items(&got, item);
    item[2].n = 1;
    T_FAILS(ckpt_take(c, item, 4), E901);
    items(&got, item);
    item[3].name = "absent";
    T_FAILS(ckpt_take(c, item, 4), E901);
    assert_memory_equal(&got, &same, sizeof got);
    ckpt_close(c);
}

static err write_file(const char *path, struct things *t, const char *schema) {
    struct meta meta = {"stretto.checkpoint", schema};
    struct tens tens[] = {{.name = "theta", .dtype = DTYPE_F32, .ndim = 1, .dim = {100}, .data = t->theta},
                          {.name = "best", .dtype = DTYPE_F64, .ndim = 1, .dim = {1}, .data = &t->best},
                          {.name = "counter", .dtype = DTYPE_I64, .ndim = 1, .dim = {2}, .data = t->counter},
                          {.name = "raw", .dtype = DTYPE_U8, .ndim = 1, .dim = {5}, .data = t->raw}};
    return st_write(path, tens, COUNT(tens), &meta, 1);
}

TEST(files_of_older_versions_are_read) {
    struct things want = make(8), got = make(0);
    char path[4200];
    i64 number;
    const char *dir = dir_in("old");
    T_OK(file_make_dir(dir));
    snprintf(path, sizeof path, "%s/000000000400.ckpt", dir);
    T_OK(write_file(path, &want, "1"));
    T_OK(get(dir, &got, NULL, &number));
    assert_int_equal(number, 400);
    assert_memory_equal(&got, &want, sizeof want);
    T_OK(put(dir, 400, 2)); /* in its place */
    T_OK(put(dir, 500, 2));
    T_OK(put(dir, 600, 2));
    assert_int_equal(entries(dir), 2);
}

TEST(models_and_newer_checkpoints_are_refused) {
    struct things t = make(1);
    char path[4096];
    struct meta model = {"stretto.schema", "1"};
    struct ckpt *c;
    snprintf(path, sizeof path, "%s/x.ckpt", t_dir());
    T_OK(write_file(path, &t, "9"));
    T_FAILS(ckpt_open(path, &c), E902);
    T_OK(st_write(path, NULL, 0, &model, 1));
    T_FAILS(ckpt_open(path, &c), E901);
}

/* Full disk and flipped bits at every phase: the failure is reported, the previous checkpoint stays, nothing else remains. */
TEST(what_goes_wrong_while_writing_leaves_the_one_before) {
    static const struct {
        const char *fault;
        i32 code;
        const char *says;
    } cases[] = {
        {"1:2:write=enospc", E703, "shard-001-of-003.tmp: no space left"}, {"2:2:rename=enospc", E703, "shard-002-of-003.tmp"},
        {"*:0:manifest=enospc", E703, "MANIFEST: no space left"},          {"1:2:write=bitflip", E901, "not what was written"},
        {"0:2:rename=bitflip", E901, "not what was written"},              {"0:2:manifest=bitflip", E901, "manifest is damaged"},
    };
    const char *dir = dir_in("faults");
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct things want = make(1), got = make(0);
        i64 number;
        T_OK(ckpt_clear(dir));
        T_OK(put(dir, 1, 3));
        setenv("STRETTO_FAULT", cases[i].fault, 1);
        err e = put(dir, 2, 3);
        unsetenv("STRETTO_FAULT");
        if (e != -cases[i].code || !strstr(err_last()->text, cases[i].says)) fail_msg("%s: %s", cases[i].fault, err_last()->text);
        assert_int_equal(entries(dir), 1);
        T_OK(get(dir, &got, NULL, &number));
        assert_int_equal(number, 1);
        assert_memory_equal(&got, &want, sizeof want);
        T_OK(put(dir, 2, 3));
        assert_int_equal(entries(dir), 2);
    }
}

TEST(a_shard_that_cannot_be_seen_is_named) {
    char path[4300];
    struct fleet f;
    const char *dir = dir_in("apart");
    T_OK(fleet_new(&f, dir, 2));
    T_OK(begin(&f, 7));
    T_OK(sums(&f));
    snprintf(path, sizeof path, "%s/000000000007.part/shard-001-of-002", dir);
    assert_int_equal(unlink(path), 0);
    T_FAILS(commit(&f), E701);
    assert_string_equal(err_last()->text, "rank 0 on host a does not see the part of the checkpoint that rank 1 on host b wrote "
                                          "into this folder");
    assert_non_null(strstr(err_last()->where, "000000000007.part/shard-001-of-002"));
    fleet_free(&f);
    assert_int_equal(entries(dir), 0);
}

TEST(one_is_in_flight_at_a_time_and_what_is_unfinished_goes) {
    struct fleet f;
    const char *dir = dir_in("flight");
    T_OK(fleet_new(&f, dir, 2));
    T_OK(begin(&f, 7));
    T_FAILS(begin(&f, 8), E1);
    fleet_free(&f);
    assert_int_equal(entries(dir), 0);
    char part[4200];
    snprintf(part, sizeof part, "%s/000000000009.part/shard-000-of-002", dir); /* left by a killed process */
    part[strlen(part) - 17] = 0;
    T_OK(file_make_dir(part));
    part[strlen(part)] = '/';
    T_OK(file_write_all(part, "x", 1));
    T_OK(ckpt_sweep(dir));
    assert_int_equal(entries(dir), 0);
}

TEST(faults_that_cannot_be_read_fail) {
    static const char *const wrong[] = {"1", "1:2", "1:2:nowhere", "x:2:write", "1:2:write:0", "1:2:write=flood",
                                        "1:2:slow", "1:2:slow(2", "1:2:slow(0.5)", "1:2:write(2)"};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        setenv("STRETTO_FAULT", wrong[i], 1);
        err e = put(dir_in("wrong"), 2, 1);
        unsetenv("STRETTO_FAULT");
        assert_int_equal(e, -E104);
    }
}

TEST(every_refused_allocation_ends_in_e601_without_leak) {
    struct things got;
    i64 live = mem_stats().live, number;
    err e = -E601;
    for (i64 n = 1; e == -E601; n++) {
        mem_fail_nth(n);
        e = put(dir_in("memory"), 3, 1);
        if (e == 0) e = get(dir_in("memory"), &got, NULL, &number);
        mem_fail_nth(0);
        assert_true(e == 0 || e == -E601);
        assert_int_equal(mem_stats().live, live);
    }
}

T_MAIN(cmocka_unit_test(crc32c_is_castagnoli), cmocka_unit_test(any_number_of_shards_gives_every_bit),
       cmocka_unit_test(two_are_kept_and_numbers_above_go), cmocka_unit_test(damaged_ones_are_passed_over_by_name),
       cmocka_unit_test(all_damaged_is_the_failure_of_the_newest), cmocka_unit_test(no_checkpoint_is_said_so),
       cmocka_unit_test(one_of_another_run_touches_nothing), cmocka_unit_test(files_of_older_versions_are_read),
       cmocka_unit_test(models_and_newer_checkpoints_are_refused),
       cmocka_unit_test(what_goes_wrong_while_writing_leaves_the_one_before),
       cmocka_unit_test(a_shard_that_cannot_be_seen_is_named),
       cmocka_unit_test(one_is_in_flight_at_a_time_and_what_is_unfinished_goes),
       cmocka_unit_test(faults_that_cannot_be_read_fail), cmocka_unit_test(every_refused_allocation_ends_in_e601_without_leak))
