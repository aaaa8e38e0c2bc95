/* sparse.c - gradients of large embeddings go as the rows that the batch has touched: exact, and far fewer bytes. */
#include "exec/codec.h"
#include "exec/sparse_rows.h"

static i64 rows_of(const struct plan_message *m) { return (m->hi - m->lo) / LINE_FLOATS; }

static bool takes(const struct plan *p, const struct plan_message *m) {
    (void)p;
    return m->sparse;
}

static i64 room(const struct plan *p, const struct plan_message *m) {
    (void)p;
    return lines_bytes(rows_of(m), rows_of(m));
}

static struct sparse_rows range(const struct coded *c) {
    return (struct sparse_rows){(f32 *)(void *)c->data + c->m->lo, c->marks + c->m->lo / LINE_FLOATS};
}

static u32 encode(const struct coded *c, unsigned char *out) { return sparse_pack(rows_of(c->m), range(c), out); }

static bool decode(const struct coded *c, const unsigned char *in, u32 bytes) {
    return sparse_unpack(rows_of(c->m), range(c), in, bytes);
}

extern const struct codec codec_sparse;
const struct codec codec_sparse = {
    .name = "sparse",
    .help = "rows of an embedding's gradient that the batch has touched",
    .takes = takes,
    .room = room,
    .encode = encode,
    .decode = decode,
    .fewer = true,
};
