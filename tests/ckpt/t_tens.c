/* t_tens.c - sizes and names of element types. */
#include "t.h"
#include "ckpt/safetensors.h"

TEST(every_type_has_a_size_and_a_name) {
    for (i32 d = 0; d < DTYPE_N; d++) {
        assert_true(dtype_size((enum dtype)d) >= 1 && dtype_size((enum dtype)d) <= 8);
        assert_non_null(dtype_name((enum dtype)d));
    }
    assert_string_equal(dtype_name(DTYPE_BF16), "BF16");
    assert_int_equal(dtype_size(DTYPE_BF16), 2);
}

TEST(count_is_the_product_of_the_shape) {
    struct tens t = {"a", DTYPE_F32, 3, {2, 3, 4}, NULL}, scalar = {"s", DTYPE_F32, 0, {0}, NULL},
                none = {"n", DTYPE_F32, 2, {3, 0}, NULL};
    assert_int_equal(tens_count(&t), 24);
    assert_int_equal(tens_count(&scalar), 1);
    assert_int_equal(tens_count(&none), 0);
}

T_MAIN(cmocka_unit_test(every_type_has_a_size_and_a_name), cmocka_unit_test(count_is_the_product_of_the_shape))
