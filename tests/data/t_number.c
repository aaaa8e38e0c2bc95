/* t_number.c - the number reader against the C library, which rounds exactly. */
#include "t.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "data/number.h"

/* Read text as it would stand in a row: followed by a comma. */
static const char *read_cell(const char *text, f64 *v) {
    static char row[128];
    memset(row, '\n', sizeof row);
    size_t n = strlen(text);
    memcpy(row, text, n);
    row[n] = ',';
    const char *end = number_read(row, row + n + 1, '.', v);
    return end ? text + (end - row) : NULL;
}

static void same_as_libc(const char *text) {
    f64 got = 0, want = strtod(text, NULL);
    const char *end = read_cell(text, &got);
    if (end != text + strlen(text) || memcmp(&got, &want, sizeof got) != 0) {
        print_error("\"%s\": got %.17g want %.17g\n", text, got, want);
        fail();
    }
}

TEST(number_equals_strtod_on_hard_cases) {
    static const char *const texts[] = {"0",
                                        "-0",
                                        "1",
                                        "-1.5",
                                        "0.1",
                                        "123456789012345678",
                                        "9007199254740993",
                                        "9007199254740992.5",
                                        "9007199254740993.0",
                                        "0.30531000137329102",
                                        "1e22",
                                        "1e23",
                                        "-1.7976931348623157e308",
                                        "4.9406564584124654e-324",
                                        "2.2250738585072014e-308",
                                        "1.00000000000000011102230246251565",
                                        "0.000000000000000001",
                                        "18446744073709551615",
                                        "18446744073709551616",
                                        "9999999999999999999",
                                        "12345678.12345678",
                                        "1.",
                                        ".5",
                                        "-.5",
                                        "+7",
                                        "+.5e-3",
                                        "1E5",
                                        "1e+05",
                                        "00012",
                                        "0.00000000",
                                        "8.5",
                                        "72057594037927945",
                                        "5e-324",
                                        "123456789.123456789",
                                        "1.8446744073709551615",
                                        "6929495644600919.5",
                                        "0.000000001234567890123456789",
                                        "0.00000000000123456789012345678",
                                        "-0.0012345678901234567",
                                        "0000000000000000000000012.5",
                                        "0.0000000000000000000000000000000000001"};
    for (size_t i = 0; i < COUNT(texts); i++) same_as_libc(texts[i]);
}

TEST(number_equals_strtod_on_random_digits) {
    char text[64];
    for (u64 i = 0; i < 300000; i++) {
        u32 w[4];
        rng_words(1, RNG_TEST, 0, i, w);
        int whole = (int)(w[2] % 11), fraction = (int)(w[3] % 10);
        u64 digits = (u64)w[0] << 32 | w[1];
        char all[32];
        snprintf(all, sizeof all, "%020llu", (unsigned long long)digits);
        snprintf(text, sizeof text, "%s%.*s.%.*s", w[2] & 4096 ? "-" : "", whole + 1, all + 1, fraction, all + 8);
        same_as_libc(text);
        f64 v;
        memcpy(&v, &digits, sizeof v);
        if (!isfinite(v)) continue;
        snprintf(text, sizeof text, "%.17g", v);
        same_as_libc(text);
        snprintf(text, sizeof text, "%.17g", fmod(fabs(v), 1000.0));
        same_as_libc(text);
        snprintf(text, sizeof text, "%.17f", (f64)digits * 0x1p-64);
        same_as_libc(text);
    }
}

TEST(number_division_rounds_halves_to_even) {
    assert_true(number_divide(90071992547409925u, 1) == 9007199254740992.0);  /* exactly between: the even one */
    assert_true(number_divide(90071992547409935u, 1) == 9007199254740994.0);
    assert_true(number_divide(18014398509481989u, 0) == 18014398509481988.0); /* whole numbers: the conversion rounds */
    assert_true(number_divide(1, 19) == 1e-19);
    assert_true(number_divide(UINT64_MAX, 19) == 1.8446744073709551615);
}

TEST(number_refuses_what_is_none) {
    static const char *const texts[] = {"", "-", ".", "abc", "-x", "e5", "0x10", "--1", "+-1"};
    f64 v;
    for (size_t i = 0; i < COUNT(texts); i++) {
        const char *end = read_cell(texts[i], &v);
        if (end == texts[i] + strlen(texts[i]) && *texts[i]) fail_msg("\"%s\" was read as %g", texts[i], v);
    }
    assert_null(read_cell("", &v));
}

TEST(number_stops_at_the_first_foreign_character) {
    f64 v;
    const char *text = "12.5kg";
    const char *end = read_cell(text, &v);
    assert_true(end == NULL || *end == 'k');
    assert_true(number_read("3,5;\n\n\n\n\n\n\n\n\n", NULL, ',', &v) != NULL);
    assert_true(v == 3.5);
}

T_MAIN(cmocka_unit_test(number_equals_strtod_on_hard_cases), cmocka_unit_test(number_equals_strtod_on_random_digits),
       cmocka_unit_test(number_division_rounds_halves_to_even), cmocka_unit_test(number_refuses_what_is_none),
       cmocka_unit_test(number_stops_at_the_first_foreign_character))
