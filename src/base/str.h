/* str.h - a text buffer with a size limit, locale-independent number parsing, and nearest-word search.
 *
 * A str starts as {0} and ends with str_free. Appending reports no errors: if memory is refused or the limit is reached, the
 * buffer keeps its content and `failed` is set. Check once at the end with str_ok. */
#ifndef STRETTO_BASE_STR_H
#define STRETTO_BASE_STR_H

#include <stdarg.h>

#include "base/err.h"

struct str {
    char *s;      /* NUL-terminated after the first append; NULL before */
    size_t len, cap;
    bool failed;
};

void str_add(struct str *b, const char *text);
void str_addn(struct str *b, const char *text, size_t n);
void str_addf(struct str *b, const char *fmt, ...) PRINTF_LIKE(2, 3); /* independent of the locale */
void str_add_csv(struct str *b, const char *text); /* a field of a CSV file: quoted where it must be */
void str_add_lines(struct str *b, const char *front, const char *text); /* every line of text with `front` before it */
void str_free(struct str *b);
err str_ok(const struct str *b);          /* 0 or E601 */
const char *str_text(const struct str *b); /* "" when empty */

/* Parses all of s[0..n) as a number, independent of the locale; decimal is '.' or ','. false = not a number. Accepts inf and
 * nan; the caller decides about them. */
bool str_to_f64(const char *s, size_t n, char decimal, f64 *out);
bool str_to_i64(const char *s, size_t n, i64 *out);

/* snprintf and vsnprintf, independent of the locale. */
int str_print(char *out, size_t size, const char *fmt, ...) PRINTF_LIKE(3, 4);
int str_print_args(char *out, size_t size, const char *fmt, va_list ap);
/* The shortest decimal text that reads back as the same f64 / f32; returns the length. */
int str_from_f64(char out[32], f64 v);
int str_from_f32(char out[32], f32 v);

bool str_time(const char *text, f64 *seconds); /* "90", "10m", "1h30m" */
bool str_size(const char *text, i64 *bytes);   /* "4096", "512M", "8G", "1.5G" */

/* Iterates over a comma-separated list, "\," being a literal comma: for (const char *p = text; str_list_next(&p, item, sizeof
 * item);) ... */
bool str_list_next(const char **cursor, char *item, size_t size);
void str_list_add(struct str *list, const char *item); /* appends an item and escapes its commas */

/* Bytes of the UTF-8 character at s, of which `left` bytes can be read up to a NUL; 0 = not UTF-8 (overlong, surrogate, cut). */
i32 str_utf8(const char *s, size_t left);
i32 str_columns(const char *s); /* characters of UTF-8 text, as a terminal counts them */
/* Index of the word nearest to `word` (edit distance, case counts half), or -1 if none is close. */
i32 str_nearest(const char *word, const char *const *words, i32 n);

#endif
