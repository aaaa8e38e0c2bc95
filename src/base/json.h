/* json.h - reading and writing JSON: a wrapper of jansson, which no other file includes.
 *
 *     struct js *o = js_object();                          the creator of a value frees it with js_free
 *     js_put_i64(o, "rows", 144);                          js_put / js_push take ownership of their value
 *     js_text(o, &str, 2);
 *
 *     TRY(js_parse(text, n, "config.json", &o));           E104 "config.json:3:7: ..." for invalid JSON
 *     i64 rows = js_i64(js_get(o, "rows"), -1);            a missing value or one of another type gives the default
 *
 * Building reports failures only at the end: if memory is refused a value is NULL, NULL propagates, and js_text returns E601.
 * i64 values are exact; duplicate names are refused. */
#ifndef STRETTO_BASE_JSON_H
#define STRETTO_BASE_JSON_H

#include "base/str.h"

struct js; /* an object, array, text, number, true, false or null */

enum js_kind { JS_NONE, JS_OBJECT, JS_ARRAY, JS_TEXT, JS_INT, JS_REAL, JS_BOOL, JS_NULL };

err js_parse(const char *text, size_t n, const char *name, struct js **out); /* name: for error messages */
/* The same for JSON of other programs: of members with the same name the last one counts (YARN repeats "entry"). */
err js_parse_foreign(const char *text, size_t n, const char *name, struct js **out);
err js_load(const char *path, struct js **out);
void js_free(struct js *v); /* NULL is allowed */

enum js_kind js_kind(const struct js *v); /* JS_NONE for NULL */
const struct js *js_get(const struct js *object, const char *name); /* borrowed, or NULL */
i64 js_len(const struct js *v);                                     /* members of an object or array, else 0 */
const struct js *js_at(const struct js *array, i64 i);              /* borrowed, or NULL */
/* The i-th member of an object in the order of the file; false at the end. */
bool js_member(const struct js *object, i64 i, const char **name, const struct js **value);

const char *js_str(const struct js *v, const char *otherwise); /* borrowed */
i64 js_i64(const struct js *v, i64 otherwise);
f64 js_f64(const struct js *v, f64 otherwise); /* integers too; the texts "NaN", "Infinity", "-Infinity" */
bool js_bool(const struct js *v, bool otherwise);

struct js *js_object(void);
struct js *js_array(void);
struct js *js_new_text(const char *s); /* NULL gives null; invalid UTF-8 becomes '?' */
struct js *js_new_i64(i64 v);
struct js *js_new_f64(f64 v); /* non-finite values become text, since JSON has none */
struct js *js_new_bool(bool v);
void js_put(struct js *object, const char *name, struct js *value); /* takes value over */
void js_push(struct js *array, struct js *value);                   /* takes value over */
void js_put_text(struct js *object, const char *name, const char *s);
void js_put_i64(struct js *object, const char *name, i64 v);
void js_put_f64(struct js *object, const char *name, f64 v);
void js_put_bool(struct js *object, const char *name, bool v);

/* Appends as text; indent 0 = one line. Members keep their order of insertion. E601 if building failed. */
err js_text(const struct js *v, struct str *out, i32 indent);

#endif
