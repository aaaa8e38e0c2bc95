/* t.h - common header of all test files: cmocka and a few helpers.
 *
 * A test file holds void tests named subject_behaviour_condition(void **state) and a main with T_MAIN(...). */
#ifndef STRETTO_TESTS_T_H
#define STRETTO_TESTS_T_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above first */
#include <cmocka.h>

#include "base/err.h"

#define TEST(name) static void name(void **state __attribute__((unused)))

/* Fails with the library's error record when the call failed. */
#define T_OK(call) t_ok((call), #call, __FILE__, __LINE__)
/* Fails unless the call failed with code. */
#define T_FAILS(call, code) t_fails((call), (code), #call, __FILE__, __LINE__)
void t_ok(err e, const char *call, const char *file, int line);
void t_fails(err e, int code, const char *call, const char *file, int line);

/* Largest |a-b| relative to the largest |b|; prints the first place where it exceeds tol and fails. */
void t_near(const char *what, const f32 *got, const f32 *want, i64 n, f64 tol);
void t_near64(const char *what, const f32 *got, const f64 *want, i64 n, f64 tol);

/* Full path of a file under shared/ (environment STRETTO_SHARED), or skips the test in plain words when it is absent. */
const char *t_shared(const char *name);

/* An emulated machine asks for fewer cases (environment STRETTO_TEST_FEW, set by ./check arm). */
bool t_few(void);

/* A new folder under the system's temporary folder, removed at exit.  t_file writes text into a file there, returns its path. */
const char *t_dir(void);
const char *t_file(const char *name, const char *text);
/* Takes a locale whose decimal sign is a comma, made in t_dir(): most machines have none.  False where that cannot be. */
bool t_comma_locale(void);

void t_begin(void); /* keeps tests away from the user's wisdom file */

#define T_MAIN(...)                                                                                                              \
    int main(void) {                                                                                                             \
        t_begin();                                                                                                               \
        const struct CMUnitTest tests[] = {__VA_ARGS__};                                                                         \
        return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;                                                                \
    }

#endif
