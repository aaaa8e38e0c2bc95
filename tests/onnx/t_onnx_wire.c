/* t_onnx_wire.c - fields written and read back; bytes that are no fields. */
#include <string.h>

#include "onnx/wire.h"
#include "t.h"

TEST(fields_read_back_as_written) {
    struct str s = {0}, inner = {0};
    struct wire_field f;
    wire_int(&s, 1, -3);
    wire_int(&s, 200, 300);
    wire_f32(&s, 2, 1.5F);
    wire_f64(&s, 3, -2.5);
    wire_int(&inner, 7, 1);
    wire_message(&s, 4, &inner);
    wire_text(&s, 5, "text");
    assert_false(s.failed);
    struct wire w = wire_of(s.s, (i64)s.len);
    assert_true(wire_next(&w, &f) && f.number == 1 && (i64)f.v == -3);
    assert_true(wire_next(&w, &f) && f.number == 200 && f.v == 300);
    assert_true(wire_next(&w, &f) && f.kind == WIRE_FIXED32 && f.v == 0x3fc00000);
    assert_true(wire_next(&w, &f) && f.kind == WIRE_FIXED64 && f.v == 0xc004000000000000ull);
    assert_true(wire_next(&w, &f) && f.number == 4 && f.n == 2 && f.p[0] == 7 << 3 && f.p[1] == 1);
    assert_true(wire_next(&w, &f) && f.n == 4 && memcmp(f.p, "text", 4) == 0);
    assert_false(wire_next(&w, &f));
    assert_false(w.bad);
    str_free(&s);
}

/* The encoding that the documentation of protocol buffers gives: field 1, the number 150. */
TEST(the_bytes_are_those_of_the_specification) {
    struct str s = {0};
    wire_int(&s, 1, 150);
    assert_int_equal(s.len, 3);
    assert_memory_equal(s.s, "\x08\x96\x01", 3);
    str_free(&s);
}

TEST(bytes_that_are_no_fields_are_bad) {
    static const struct {
        const char *bytes;
        i64 n;
    } bad[] = {{"\x0a\x05"
                "abc",
                5},                                                  /* a length beyond the end */
               {"\x08", 1},                                          /* no number behind the key */
               {"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 11}, /* more than 64 bits */
               {"\x0b", 1},                                          /* a group */
               {"\x00\x01", 2},                                      /* field 0 */
               {"\x0d\x01\x02", 3}};                                 /* half of a fixed number */
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct wire w = wire_of(bad[i].bytes, bad[i].n);
        struct wire_field f;
        while (wire_next(&w, &f)) {
        }
        assert_true(w.bad);
    }
}

TEST(packed_numbers_read_one_after_the_other) {
    struct wire w = wire_of("\x03\x8e\x02\x9e\xa7\x05", 6);
    i64 v;
    assert_true(wire_packed(&w, &v) && v == 3);
    assert_true(wire_packed(&w, &v) && v == 270);
    assert_true(wire_packed(&w, &v) && v == 86942);
    assert_false(wire_packed(&w, &v));
    assert_false(w.bad);
}

T_MAIN(cmocka_unit_test(fields_read_back_as_written), cmocka_unit_test(the_bytes_are_those_of_the_specification),
       cmocka_unit_test(bytes_that_are_no_fields_are_bad), cmocka_unit_test(packed_numbers_read_one_after_the_other))
