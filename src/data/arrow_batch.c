/* arrow_batch.c - record batches: the lists of their nodes and buffers, and the buffers of one column.
 *
 *     nodes   | rows, nulls | .. one for each field, depth first       buffers | offset, bytes | .. valid, offsets, data of each
 *     body    | valid bits | numbers | valid bits | offsets of words | bytes of words | ..
 *     packed  a buffer is | bytes when unpacked, -1 = as they are | a zstd frame |                                           */
#include <string.h>

#include "base/mem.h"
#include "base/zfile.h"
#include "data/arrow.h"

enum { BATCH_ROWS, BATCH_NODES, BATCH_BUFFERS, BATCH_COMPRESSION };
enum { PAIR = 16, HALF = 8, CODEC_ZSTD = 1 }; /* nodes and buffers are pairs of i64 */

struct piece {
    i64 at, bytes; /* in the file */
};

static i64 pair(const struct arrow_batch *b, i64 list, i64 i, i32 which) {
    return flat_number_at(&b->m->flat, list + PAIR * i + HALF * which, 8);
}

err arrow_batch(struct arrow_message *m, const struct flat_table *header, i64 nodes, i64 buffers, struct arrow_batch *b) {
    struct flat_table codec;
    i64 nnode = 0, nbuffer = 0;
    *b = (struct arrow_batch){.m = m, .rows = flat_number(header, BATCH_ROWS, 8, 0)};
    flat_vector(header, BATCH_NODES, PAIR, &b->node, &nnode);
    flat_vector(header, BATCH_BUFFERS, PAIR, &b->buffer, &nbuffer);
    b->packed = flat_child(header, BATCH_COMPRESSION, &codec);
    if (b->packed && flat_number(&codec, 0, 1, 0) != CODEC_ZSTD)
        return FAIL_AT(E202, m->path, "write it with compression \"zstd\" or none   (pyarrow.ipc.IpcWriteOptions)",
                       "the buffers of this Arrow stream are compressed with LZ4, which this program does not read");
    if (m->flat.bad || nnode != nodes || nbuffer != buffers) return arrow_damaged(m, "its columns are not those of the schema");
    for (i64 i = 0; i < nbuffer; i++) {
        const i64 at = pair(b, b->buffer, i, 0), bytes = pair(b, b->buffer, i, 1);
        if (at < 0 || bytes < 0 || bytes > m->bytes || at > m->bytes - bytes)
            return arrow_damaged(m, "a buffer lies outside its body");
    }
    return b->rows >= 0 ? 0 : arrow_damaged(m, "its number of rows is negative");
}

static struct piece piece(const struct arrow_batch *b, i64 buffer) {
    return (struct piece){b->m->body + pair(b, b->buffer, buffer, 0), pair(b, b->buffer, buffer, 1)};
}

/* Bytes that a buffer can hold at most. */
static i64 room_of(const struct arrow_batch *b, i64 buffer) {
    const i64 bytes = piece(b, buffer).bytes;
    return !b->packed ? bytes : bytes > INT64_MAX / ARROW_RATIO ? INT64_MAX : bytes * ARROW_RATIO;
}

static i64 bits(i64 rows) { return rows / 8 + (rows % 8 != 0); }

/* Bytes that the rows need in the buffer of numbers, or of offsets. */
static i64 need_of(const struct arrow_type *t, i64 rows) {
    if (t->kind == ARROW_BOOL) return bits(rows);
    if (t->kind == ARROW_TEXT) return rows ? t->bytes * (rows + 1) : 0;
    return t->bytes * rows;
}

err arrow_check(const struct arrow_batch *b, const struct arrow_type *t, i64 node, i64 buffer) {
    const i64 rows = pair(b, b->node, node, 0), nulls = pair(b, b->node, node, 1);
    if (rows != b->rows || nulls < 0 || nulls > rows)
        return arrow_damaged(b->m, "a column has another number of rows than its batch");
    if (t->kind == ARROW_NULL) return 0;
    if (rows > INT64_MAX / 32 || need_of(t, rows) > room_of(b, buffer + 1) || (nulls > 0 && bits(rows) > room_of(b, buffer)))
        return arrow_damaged(b->m, "a buffer is shorter than its rows");
    return 0;
}

/* Unpacks a buffer of the file that lies in a->packed. */
static err unpack(struct arrow *a, const struct arrow_batch *b, i64 bytes, struct arrow_room *to, i64 *size) {
    i64 whole;
    if (bytes < HALF) return arrow_damaged(b->m, "a compressed buffer has no size");
    memcpy(&whole, a->packed.p, HALF);
    bytes -= HALF;
    if (whole < -1 || whole / ARROW_RATIO > bytes)
        return arrow_damaged(b->m, "a compressed buffer has an impossible size");
    *size = whole < 0 ? bytes : whole;
    TRY(arrow_room(to, *size));
    if (whole < 0) memcpy(to->p, a->packed.p + HALF, (size_t)bytes);
    else if (whole > 0 && !zfile_unpack(a->packed.p + HALF, bytes, to->p, whole))
        return arrow_damaged(b->m, "a compressed buffer cannot be unpacked");
    return 0;
}

/* Reads a buffer of at least `need` bytes. */
static err load(struct arrow *a, const struct arrow_batch *b, i64 buffer, i64 need, i32 slot, i64 *size) {
    const struct piece p = piece(b, buffer);
    struct arrow_room *to = &a->room[slot];
    const bool packed = b->packed && p.bytes > 0;
    struct arrow_room *read = packed ? &a->packed : to;
    *size = p.bytes;
    TRY(arrow_room(read, p.bytes));
    if (p.bytes) TRY(file_read_at(b->m->file, p.at, read->p, p.bytes));
    if (packed) TRY(unpack(a, b, p.bytes, to, size));
    return *size < need ? arrow_damaged(b->m, "a buffer is shorter than its rows") : 0;
}

err arrow_load(struct arrow *a, const struct arrow_batch *b, const struct arrow_type *t, i64 node, i64 buffer,
               struct arrow_cells *c) {
    i64 size;
    *c = (struct arrow_cells){.rows = b->rows, .nulls = pair(b, b->node, node, 1)};
    if (t->kind == ARROW_NULL) c->nulls = b->rows;
    if (t->kind == ARROW_NULL || b->rows == 0) return 0;
    if (c->nulls > 0) {
        TRY(load(a, b, buffer, bits(b->rows), 0, &size));
        c->valid = a->room[0].p;
    }
    TRY(load(a, b, buffer + 1, need_of(t, b->rows), 1, &c->bytes));
    c->data = a->room[1].p;
    if (t->kind != ARROW_TEXT) return 0;
    c->offset = c->data;
    TRY(load(a, b, buffer + 2, 0, 2, &c->bytes));
    c->data = a->room[2].p;
    return 0;
}

static i64 offset(const struct arrow_cells *c, i32 bytes, i64 i) {
    i32 small;
    i64 large;
    if (bytes == 4) {
        memcpy(&small, c->offset + 4 * i, 4);
        return small;
    }
    memcpy(&large, c->offset + 8 * i, 8);
    return large;
}

bool arrow_word(const struct arrow_cells *c, const struct arrow_type *t, i64 i, const char **s, i64 *n) {
    const i64 from = offset(c, t->bytes, i), to = offset(c, t->bytes, i + 1);
    if (from < 0 || to < from || to > c->bytes) return false;
    *s = to > from ? (const char *)c->data + from : "";
    *n = to - from;
    return true;
}
