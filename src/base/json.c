/* json.c - see json.h. The only file that includes jansson.h; struct js is json_t. */
#include "base/json.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"

static json_t *in(struct js *v) { return (json_t *)(void *)v; }
static const json_t *in_const(const struct js *v) { return (const json_t *)(const void *)v; }
static struct js *out(json_t *v) { return (struct js *)(void *)v; }

/* Reports a parser error with its position. */
static err not_json(const char *name, const json_error_t *why) {
    char where[256];
    snprintf(where, sizeof where, "%.200s:%d:%d", name, why->line, why->column);
    return FAIL_AT(E104, where, NULL, "not JSON: %s", why->text);
}

err js_parse(const char *text, size_t n, const char *name, struct js **to) {
    json_error_t why;
    *to = out(json_loadb(text, n, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &why));
    return *to ? 0 : not_json(name, &why);
}

err js_parse_foreign(const char *text, size_t n, const char *name, struct js **to) {
    json_error_t why;
    *to = out(json_loadb(text, n, JSON_DECODE_ANY, &why));
    return *to ? 0 : not_json(name, &why);
}

void js_free(struct js *v) { json_decref(in(v)); }

enum js_kind js_kind(const struct js *v) {
    if (!v) return JS_NONE;
    switch (json_typeof(in_const(v))) {
    case JSON_OBJECT: return JS_OBJECT;
    case JSON_ARRAY: return JS_ARRAY;
    case JSON_STRING: return JS_TEXT;
    case JSON_INTEGER: return JS_INT;
    case JSON_REAL: return JS_REAL;
    case JSON_TRUE:
    case JSON_FALSE: return JS_BOOL;
    default: return JS_NULL;
    }
}

const struct js *js_get(const struct js *object, const char *name) { return out(json_object_get(in_const(object), name)); }

i64 js_len(const struct js *v) {
    enum js_kind k = js_kind(v);
    return k == JS_OBJECT ? (i64)json_object_size(in_const(v)) : k == JS_ARRAY ? (i64)json_array_size(in_const(v)) : 0;
}

const struct js *js_at(const struct js *array, i64 i) { return i < 0 ? NULL : out(json_array_get(in_const(array), (size_t)i)); }

/* Iterates from the start for each i: quadratic, but free of hidden state. */
bool js_member(const struct js *object, i64 i, const char **name, const struct js **value) {
    json_t *o = (json_t *)(uintptr_t)object;
    if (js_kind(object) != JS_OBJECT) return false;
    void *it = json_object_iter(o);
    for (; it && i > 0; i--) it = json_object_iter_next(o, it);
    if (!it) return false;
    *name = json_object_iter_key(it);
    *value = out(json_object_iter_value(it));
    return true;
}

const char *js_str(const struct js *v, const char *otherwise) {
    const char *s = v ? json_string_value(in_const(v)) : NULL;
    return s ? s : otherwise;
}

i64 js_i64(const struct js *v, i64 otherwise) { return js_kind(v) == JS_INT ? (i64)json_integer_value(in_const(v)) : otherwise; }

f64 js_f64(const struct js *v, f64 otherwise) {
    enum js_kind k = js_kind(v);
    if (k == JS_INT || k == JS_REAL) return json_number_value(in_const(v));
    const char *s = js_str(v, "");
    return !strcmp(s, "NaN")         ? (f64)NAN
           : !strcmp(s, "Infinity")  ? (f64)INFINITY
           : !strcmp(s, "-Infinity") ? (f64)-INFINITY
                                     : otherwise;
}

bool js_bool(const struct js *v, bool otherwise) { return js_kind(v) == JS_BOOL ? json_is_true(in_const(v)) : otherwise; }

struct js *js_object(void) { return out(json_object()); }
struct js *js_array(void) { return out(json_array()); }
struct js *js_new_i64(i64 v) { return out(json_integer(v)); }
struct js *js_new_bool(bool v) { return out(json_boolean(v)); }

struct js *js_new_text(const char *s) {
    if (!s) return out(json_null());
    json_t *v = json_string(s);
    if (v) return out(v);
    char *clean = mem_strdup(s); /* invalid UTF-8, or out of memory */
    if (!clean) return NULL;
    for (char *c = clean; *c; c++)
        if ((u8)*c >= 0x80) *c = '?';
    v = json_string(clean);
    mem_free(clean);
    return out(v);
}

struct js *js_new_f64(f64 v) {
    if (isfinite(v)) return out(json_real(v));
    return js_new_text(isnan(v) ? "NaN" : v > 0 ? "Infinity" : "-Infinity");
}

/* A member that could not be allocated marks its object; js_text finds the mark and reports E601. */
static const char lost_mark[] = "\x01lost";

void js_put(struct js *object, const char *name, struct js *value) {
    if (json_object_set_new(in(object), name, in(value)) != 0 && object) json_object_set_new(in(object), lost_mark, json_true());
}

void js_push(struct js *array, struct js *value) {
    if (json_array_append_new(in(array), in(value)) != 0 && array) json_array_append_new(in(array), json_string(lost_mark));
}

void js_put_text(struct js *object, const char *name, const char *s) { js_put(object, name, js_new_text(s)); }
void js_put_i64(struct js *object, const char *name, i64 v) { js_put(object, name, js_new_i64(v)); }
void js_put_f64(struct js *object, const char *name, f64 v) { js_put(object, name, js_new_f64(v)); }
void js_put_bool(struct js *object, const char *name, bool v) { js_put(object, name, js_new_bool(v)); }

static int append(const char *piece, size_t n, void *to) {
    str_addn(to, piece, n);
    return 0;
}

err js_text(const struct js *v, struct str *to, i32 indent) {
    size_t from = to->len;
    size_t flags = JSON_ENCODE_ANY | JSON_REAL_PRECISION(17) | (indent > 0 ? JSON_INDENT((size_t)imin(indent, 31)) : 0);
    if (!v || json_dump_callback(in_const(v), append, to, flags) != 0) return FAIL(E601, "no memory for a JSON text");
    if (to->s && strstr(to->s + from, "\\u0001lost")) return FAIL(E601, "no memory for a JSON text");
    return str_ok(to);
}
