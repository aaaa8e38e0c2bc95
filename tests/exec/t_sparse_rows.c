/* t_sparse_rows.c - packed and unpacked rows are the same, over whatever was there before; a packet that makes
 * no sense is refused. */
#include "t.h"

#include <string.h>

#include "base/rng.h"
#include "exec/sparse_rows.h"

enum { LINES = 701 };
static f32 from[LINES * LINE_FLOATS], to[LINES * LINE_FLOATS];
static u8 of_from[LINES], of_to[LINES];
static unsigned char bytes[4 + LINES * LINE_FLOATS * 4];

/* About one line in `every`, 0 = none, MOST = all but one; what is not touched is zero. */
enum { MOST = 1000 };
static i64 fill(f32 *v, u8 *touched, u32 every, u32 seed) {
    i64 n = 0;
    memset(v, 0, LINES * LINE_FLOATS * sizeof *v);
    for (i32 i = 0; i < LINES; i++) {
        touched[i] = every == MOST ? i != LINES / 2 : every > 0 && rng_uniform(seed, RNG_TEST, every, (u64)i) * (f32)every < 1;
        n += touched[i];
        for (i32 j = 0; j < LINE_FLOATS && touched[i]; j++)
            v[i * LINE_FLOATS + j] = rng_uniform(seed, RNG_TEST, 1, (u64)(i * LINE_FLOATS + j));
    }
    return n;
}

TEST(touched_lines_arrive) {
    static const u32 every[] = {0, 1, 2, 9, 100, MOST};
    for (size_t a = 0; a < COUNT(every); a++)
        for (size_t b = 0; b < COUNT(every); b++) {
            const i64 count = fill(from, of_from, every[a], 1);
            fill(to, of_to, every[b], 2);
            const u32 n = sparse_pack(LINES, (struct sparse_rows){from, of_from}, bytes);
            assert_int_equal(n, lines_bytes(LINES, lines_sent(LINES, count)));
            assert_true(n <= sizeof bytes);
            if (every[a] == 0) assert_int_equal(n, 4);
            if (every[a] == 1 || every[a] == MOST) assert_int_equal(n, sizeof bytes);
            assert_true(sparse_unpack(LINES, (struct sparse_rows){to, of_to}, bytes, n));
            assert_memory_equal(to, from, sizeof from);
            for (i32 i = 0; i < LINES; i++) assert_true(of_to[i] == (every[a] == MOST || of_from[i]));
        }
}

TEST(touched_lines_that_make_no_sense_are_refused) {
    fill(from, of_from, 9, 1);
    fill(to, of_to, 0, 1);
    const u32 n = sparse_pack(LINES, (struct sparse_rows){from, of_from}, bytes), many = LINES + 1;
    const u16 outside = LINES;
    assert_false(sparse_unpack(LINES, (struct sparse_rows){to, of_to}, bytes, n - 2));
    memcpy(bytes + 4, &outside, sizeof outside);
    assert_false(sparse_unpack(LINES, (struct sparse_rows){to, of_to}, bytes, n));
    memcpy(bytes, &many, sizeof many);
    assert_false(sparse_unpack(LINES, (struct sparse_rows){to, of_to}, bytes, n));
}

T_MAIN(cmocka_unit_test(touched_lines_arrive), cmocka_unit_test(touched_lines_that_make_no_sense_are_refused))
