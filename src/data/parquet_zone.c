/* parquet_zone.c - names of time zones in a Parquet file.  The format says "UTC or local"; Arrow C++, polars and pandas add the
 * schema of the table, as an Arrow message in base64 under the key ARROW:schema. */
#include <string.h>

#include "base/mem.h"
#include "data/parquet.h"

enum { PREFIX = 8, MESSAGE_HEADER = 2, SCHEMA_FIELDS = 1 };
enum { FIELD_NAME, FIELD_TYPE_KIND = 2, FIELD_TYPE, TYPE_TIMESTAMP = 10, TIMESTAMP_ZONE = 1 };

/* Returns the number of bytes. */
static i64 from_base64(const char *s, i64 n, u8 *out) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    u32 bits = 0;
    i64 fill = 0, have = 0;
    for (i64 i = 0; i < n && s[i] && s[i] != '='; i++) {
        const char *at = strchr(digits, s[i]);
        if (!at) return 0;
        bits = bits << 6 | (u32)(at - digits);
        have += 6;
        if (have < 8) continue;
        have -= 8;
        out[fill++] = (u8)(bits >> have);
    }
    return fill;
}

static void take_zone(const struct flat_table *field, struct arrow_field *f) {
    struct flat_table type;
    const char *name = "", *zone = "";
    i64 n = 0, k = 0;
    flat_text(field, FIELD_NAME, &name, &k);
    if (f->type.kind != ARROW_TIME || k != (i64)strlen(f->name) || memcmp(name, f->name, (size_t)k) != 0) return;
    if (flat_number(field, FIELD_TYPE_KIND, 1, 0) != TYPE_TIMESTAMP || !flat_child(field, FIELD_TYPE, &type)) return;
    if (flat_text(&type, TIMESTAMP_ZONE, &zone, &n)) arrow_set_zone(&f->type, zone, n);
}

static void take_zones(struct flat *all, struct parquet_meta *m) {
    struct flat_table message, schema, field;
    i64 at = 0, n = 0;
    if (!flat_root(all, &message) || !flat_child(&message, MESSAGE_HEADER, &schema)) return;
    if (!flat_vector(&schema, SCHEMA_FIELDS, 4, &at, &n) || n != m->nfield) return;
    for (i64 i = 0; i < n && flat_table_at(all, at + 4 * i, &field); i++) take_zone(&field, &m->field[i]);
}

err parquet_zones(struct parquet_meta *m, const char *text, i64 n) {
    u8 *bytes;
    NEW(bytes, n + PREFIX);
    const i64 size = from_base64(text, n, bytes) - PREFIX; /* a marker and the size, then the message */
    struct flat all = {bytes + PREFIX, size, false};
    if (size > 0) take_zones(&all, m);
    mem_free(bytes);
    return 0;
}
