/* arrow_message.c - the messages of an Arrow IPC stream.
 *
 *     | FF FF FF FF | bytes of the metadata | metadata, a FlatBuffer | padding to 8 | body |        bytes 0: the stream ends
 *
 * A file ("ARROW1" in its first bytes) is such a stream between a magic of 8 bytes and a footer, which is not needed here. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "data/arrow.h"

enum { PREFIX = 8, MESSAGE_HEADER_TYPE = 1, MESSAGE_HEADER = 2, MESSAGE_BODY = 3 };
static const u8 marker[4] = {0xFF, 0xFF, 0xFF, 0xFF};

bool arrow_head(const char *head, i64 n, i64 *first) {
    i32 bytes = 0;
    *first = n >= PREFIX && !memcmp(head, "ARROW1\0", PREFIX) ? PREFIX : 0;
    if (*first) return true;
    if (n < PREFIX || memcmp(head, marker, 4) != 0) return false;
    memcpy(&bytes, head + 4, 4);
    return bytes >= 0 && bytes <= ARROW_META_MAX && bytes % 8 == 0;
}

err arrow_damaged(const struct arrow_message *m, const char *why) {
    return FAIL_AT(E202, m->path, "write the file again   (pyarrow.ipc.new_stream, Spark, DuckDB, polars)",
                   "the Arrow stream is damaged or cut off: message %lld: %s", (long long)m->number, why);
}

err arrow_room(struct arrow_room *r, i64 bytes) {
    if (bytes <= r->cap) return 0;
    mem_free(r->p);
    r->cap = 0;
    NEW(r->p, bytes);
    r->cap = bytes;
    return 0;
}

/* The metadata of a message lie in memory; finds its header. */
static err open_header(struct arrow_message *m) {
    struct flat_table message;
    if (!flat_root(&m->flat, &message)) return arrow_damaged(m, "its metadata are no FlatBuffer");
    m->header_kind = flat_number(&message, MESSAGE_HEADER_TYPE, 1, ARROW_NO_HEADER);
    m->bytes = flat_number(&message, MESSAGE_BODY, 8, 0);
    if (!flat_child(&message, MESSAGE_HEADER, &m->header) || m->flat.bad) return arrow_damaged(m, "its metadata hold no header");
    if (m->bytes < 0 || m->bytes > m->file->size - m->body) return arrow_damaged(m, "its body is cut off");
    m->next = m->body + m->bytes;
    return 0;
}

err arrow_next(struct arrow *a, struct arrow_message *m) {
    u8 head[PREFIX];
    i32 bytes;
    const i64 at = m->next, left = m->file->size - at;
    m->number++;
    m->next = -1;
    m->header_kind = ARROW_NO_HEADER;
    if (left == 0) return 0; /* a stream may end without its mark */
    if (left < PREFIX) return arrow_damaged(m, "its first bytes are cut off");
    TRY(file_read_at(m->file, at, head, PREFIX));
    if (memcmp(head, marker, 4) != 0) return arrow_damaged(m, "it does not begin with FF FF FF FF");
    memcpy(&bytes, head + 4, 4);
    if (bytes == 0) return 0;
    if (bytes < 0 || bytes > ARROW_META_MAX || bytes > left - PREFIX) return arrow_damaged(m, "its metadata are cut off");
    TRY(arrow_room(&a->meta, bytes));
    TRY(file_read_at(m->file, at + PREFIX, a->meta.p, bytes));
    m->flat = (struct flat){a->meta.p, bytes, false};
    m->body = at + PREFIX + bytes;
    return open_header(m);
}
