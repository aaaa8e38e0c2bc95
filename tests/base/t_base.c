/* t_base.c - errors, memory, arena, text, random numbers, cuts. */
#include "t.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/cut.h"
#include "base/rng.h"
#include "base/str.h"

TEST(err_record_keeps_place_and_fix) {
    err e = FAIL_AT(E204, "a.csv:3:2", "--na x", "\"%s\" is not a number", "x");
    assert_int_equal(e, -204);
    assert_int_equal(err_exit_status(e), 3);
    assert_string_equal(err_last()->where, "a.csv:3:2");
    assert_string_equal(err_last()->text, "\"x\" is not a number");
}

TEST(err_quotes_no_codes_of_a_terminal) {
    FAIL_AT(E402, "a\033[2J.plan:1:1", "cat a\007", "found \033[2Jplan\r\x7f, \xc3\xa4\n\tfine");
    assert_string_equal(err_last()->where, "a?[2J.plan:1:1");
    assert_string_equal(err_last()->fix, "cat a?");
    assert_string_equal(err_last()->text, "found ?[2Jplan??, \xc3\xa4\n\tfine");
}

TEST(err_table_has_no_duplicates) {
    for (i32 i = 0; i < err_count(); i++)
        for (i32 j = 0; j < i; j++) assert_int_not_equal(err_at(i)->code, err_at(j)->code);
}

TEST(mem_counts_and_fails_nth) {
    i64 before = mem_stats().live;
    mem_fail_nth(2);
    void *a = mem_alloc(100), *b = mem_alloc(100);
    assert_non_null(a);
    assert_null(b);
    assert_int_equal(err_last()->code, 601);
    mem_free(a);
    assert_int_equal(mem_stats().live, before);
}

/* Bytes of this process that lie in memory. */
static i64 resident(void) {
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f || fscanf(f, "%*s %ld", &pages) != 1) pages = 0;
    if (f) fclose(f);
    return pages * sysconf(_SC_PAGESIZE);
}

/* An array that grows by hundreds of elements at a time, as the sets of 10,000 ranks. */
TEST(mem_grow_has_room_for_any_element) {
    i64 cap = 0;
    char *at = NULL;
    T_OK(mem_grow((void **)&at, 64, &cap, 1));
    assert_true(cap > 64);
    T_OK(mem_grow((void **)&at, 1000, &cap, 1));
    assert_true(cap > 1000);
    mem_free(at);
}

TEST(mem_zero_clears_small_and_large_blocks) {
    for (i64 n = 100; n <= 100 << 18; n <<= 9) {
        char *p = mem_alloc((size_t)n);
        assert_non_null(p);
        memset(p, 7, (size_t)n);
        mem_zero(p);
        for (i64 i = 0; i < n; i++) assert_int_equal(p[i], 0);
        memset(p, 7, (size_t)n);
        mem_free(p);
    }
}

TEST(mem_takes_no_pages_that_nothing_touches) {
#if defined(__SANITIZE_ADDRESS__)
    print_message("skipped: large blocks are of the heap under AddressSanitizer\n");
    skip();
#endif
    const i64 n = (i64)256 << 20, before = resident();
    char *p = mem_alloc((size_t)n);
    assert_non_null(p);
    assert_int_equal((uintptr_t)p % 64, 0);
    p[n / 2] = 1;
    assert_true(before > 0 && resident() - before < n / 8);
    mem_free(p);
    assert_true(resident() - before < n / 8);
}

TEST(mem_release_gives_whole_pages_back_and_keeps_the_rest) {
#if defined(__SANITIZE_ADDRESS__)
    print_message("skipped: large blocks are of the heap under AddressSanitizer\n");
    skip();
#endif
    const i64 n = (i64)64 << 20, lo = n / 4 + 5, hi = n / 2 + 7;
    char *p = mem_alloc((size_t)n);
    assert_non_null(p);
    memset(p, 7, (size_t)n);
    const i64 before = resident();
    mem_release(p, (size_t)lo, (size_t)hi);
    assert_true(before - resident() > (hi - lo) * 9 / 10);
    for (i64 i = 0; i < n; i++)
        if (p[i] != 7) assert_true(p[i] == 0 && i >= lo && i < hi);
    assert_int_equal(p[n / 3], 0);
    mem_release(p, 100, 200); /* less than a page */
    assert_int_equal(p[150], 7);
    mem_free(p);
}

TEST(arena_gives_zeroed_aligned_blocks) {
    struct arena a = {0};
    for (i32 i = 1; i < 3000; i += 97) {
        char *p = arena_new(&a, (size_t)i * 100);
        assert_int_equal((uintptr_t)p % 64, 0);
        for (i32 k = 0; k < i * 100; k++) assert_int_equal(p[k], 0);
        memset(p, 1, (size_t)i * 100);
    }
    arena_free(&a);
}

static err many_in(struct arena *a, i64 n) {
    i64 *x;
    ARENA_NEW(a, x, n);
    x[0] = x[n - 1] = 1;
    return 0;
}

TEST(arena_refuses_what_no_size_can_hold) {
    struct arena a = {0};
    T_OK(many_in(&a, 9));
    T_FAILS(many_in(&a, -1), E601);
    T_FAILS(many_in(&a, ((i64)1 << 61) + 1), E601); /* would overflow to 8 bytes */
    arena_free(&a);
}

TEST(str_numbers_are_exact_and_whole) {
    f64 v;
    assert_true(str_to_f64("1,5", 3, ',', &v) && v == 1.5);
    assert_false(str_to_f64("1.5", 3, ',', &v));
    assert_false(str_to_f64("1.5x", 4, '.', &v));
    assert_false(str_to_f64("", 0, '.', &v));
    char text[32];
    str_from_f64(text, 0.1);
    assert_string_equal(text, "0.1");
}

TEST(str_writes_points_whatever_the_locale) {
    char text[32], single[32], plain[32];
    struct str s = {0};
    const bool comma = t_comma_locale();
    snprintf(plain, sizeof plain, "%.1f", 0.5);
    const int n = str_from_f64(text, 0.5) + str_from_f32(single, 0.25f);
    str_addf(&s, "%.2f", 1.5);
    setlocale(LC_NUMERIC, "C");
    if (!comma) skip(); /* another C library has other locales */
    assert_string_equal(plain, "0,5");
    assert_string_equal(text, "0.5");
    assert_string_equal(single, "0.25");
    assert_string_equal(str_text(&s), "1.50");
    assert_int_equal(n, 7);
    str_free(&s);
}

TEST(str_nearest_prefers_same_letters) {
    const char *words[] = {"HUFL", "OT", "date"};
    assert_int_equal(str_nearest("ot", words, 3), 1);
    assert_int_equal(str_nearest("completely", words, 3), -1);
    static const char *const swapped[] = {"states", "steps"};
    assert_int_equal(str_nearest("stpes", swapped, 2), 1);
}

TEST(rng_shuffle_is_a_bijection) {
    enum { N = 1000 };
    for (u32 epoch = 0; epoch < 3; epoch++) {
        u8 seen[N] = {0};
        i64 fixed = 0;
        for (i64 i = 0; i < N; i++) {
            i64 v = rng_shuffle(7, epoch, N, i);
            assert_in_range(v, 0, N - 1);
            assert_false(seen[v]);
            seen[v] = 1;
            fixed += v == i;
        }
        assert_true(fixed < 20);
    }
    assert_int_equal(rng_shuffle(1, 0, 1, 0), 0);
}

/* Items of a row; the last of three parts counts twice, parts of one item more than three are not allowed. */
static f64 weigh(const void *item, i32 lo, i32 hi, i32 part) {
    const f64 *w = item;
    f64 sum = 0;
    for (i32 i = lo; i < hi; i++) sum += w[i];
    return hi - lo > 3 ? (f64)INFINITY : part == 2 ? 2 * sum : sum;
}

static f64 longest_of(const f64 *w, i32 a, i32 b, i32 n) {
    return fmax(weigh(w, 0, a, 0), fmax(weigh(w, a, b, 1), weigh(w, b, n, 2)));
}

TEST(cut_is_the_best_of_all) {
    for (u64 seed = 0; seed < 200; seed++) {
        f64 w[9], best = (f64)INFINITY, longest[2];
        i32 border[2][4];
        const i32 n = 1 + (i32)(seed % 9);
        for (i32 i = 0; i < n; i++) w[i] = (f64)(i32)(4 * rng_uniform(seed, 0, 0, (u64)i)); /* small: many equal cuts */
        for (i32 b = 0; b <= n; b++)
            for (i32 a = 0; a <= b; a++) best = fmin(best, longest_of(w, a, b, n));
        for (i32 late = 0; late < 2; late++) {
            const struct cut c = {.items = n, .parts = 3, .cost = weigh, .self = w, .late = late};
            T_OK(cut_row(&c, border[late], &longest[late]));
            assert_true(longest[late] == best && border[late][0] == 0 && border[late][3] == n);
            assert_true(longest_of(w, border[late][1], border[late][2], n) == best);
        }
        assert_true(border[1][2] <= border[0][2]); /* the longest last part, the shortest */
    }
    f64 w[12] = {0}, longest;
    i32 border[4];
    T_OK(cut_row(&(struct cut){.items = 12, .parts = 3, .cost = weigh, .self = w}, border, &longest));
    assert_true(isinf(longest)); /* three parts of at most three */
}

T_MAIN(cmocka_unit_test(cut_is_the_best_of_all), cmocka_unit_test(err_record_keeps_place_and_fix),
       cmocka_unit_test(err_quotes_no_codes_of_a_terminal),
       cmocka_unit_test(err_table_has_no_duplicates), cmocka_unit_test(mem_counts_and_fails_nth),
       cmocka_unit_test(mem_grow_has_room_for_any_element),
       cmocka_unit_test(mem_zero_clears_small_and_large_blocks), cmocka_unit_test(mem_takes_no_pages_that_nothing_touches),
       cmocka_unit_test(mem_release_gives_whole_pages_back_and_keeps_the_rest),
       cmocka_unit_test(arena_gives_zeroed_aligned_blocks), cmocka_unit_test(arena_refuses_what_no_size_can_hold),
       cmocka_unit_test(str_numbers_are_exact_and_whole), cmocka_unit_test(str_writes_points_whatever_the_locale),
       cmocka_unit_test(str_nearest_prefers_same_letters), cmocka_unit_test(rng_shuffle_is_a_bijection))
