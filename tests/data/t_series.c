#include "t.h"
TEST(x) {}
T_MAIN(cmocka_unit_test(x))
