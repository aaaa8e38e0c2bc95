/* t_isa.c - STRETTO_ISA names an unknown instruction set: kern_init fails, kern_best still works. */
#define _GNU_SOURCE
#include "t.h"

#include "kern/kern.h"

#include <stdlib.h>
#include <string.h>

TEST(kern_unknown_isa_is_an_error_that_lists_the_known_ones) {
    setenv("STRETTO_ISA", "mmx", 1);
    T_FAILS(kern_init(), E103);
    assert_non_null(strstr(err_last()->text, "\"mmx\""));
    assert_non_null(strstr(err_last()->fix, "ref, base"));
    assert_string_equal(err_last()->where, "STRETTO_ISA");
    assert_non_null(kern_best());
    assert_non_null(kern_best()->cell[CELL_LSTM].fwd);
}

T_MAIN(cmocka_unit_test(kern_unknown_isa_is_an_error_that_lists_the_known_ones))
