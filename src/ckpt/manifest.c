/* manifest.c - see manifest.h. Treats the file as untrusted: shard names are generated, never read from it. */
#include "ckpt/manifest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "ckpt/crc32c.h"

/* TAIL: length of the checksum field at the end */
enum { MOST_TENSORS = 4096, MOST_PIECES = 1 << 20, MOST_BYTES = 64 << 20, TAIL = 22 };
static const char tail_format[] = ",\"crc32c\":\"%08x\"}\n";

void shard_name(i32 shard, i32 of, char out[SHARD_NAME]) { snprintf(out, SHARD_NAME, "shard-%03d-of-%03d", shard, of); }

err shard_path(const char *folder, i32 shard, i32 of, char path[4096]) {
    char name[SHARD_NAME];
    shard_name(shard, of, name);
    return snprintf(path, 4096, "%s/%s", folder, name) < 4096 ? 0 : FAIL(E702, "the path of the run folder is too long");
}

void manifest_free(struct manifest *m) {
    arena_free(&m->arena);
    *m = (struct manifest){0};
}

const struct manifest_tensor *manifest_find(const struct manifest *m, const char *name) {
    for (i32 i = 0; i < m->ntensor; i++)
        if (strcmp(m->tensor[i].name, name) == 0) return &m->tensor[i];
    return NULL;
}

/* ------------------------------------------------------------------ making -------------------------------------------------- */

static err copy_text(struct arena *a, const char *text, const char **out) {
    *out = arena_strdup(a, text);
    return *out ? 0 : -E601;
}

static err lay_out(struct manifest *m, const struct ckpt_item *item, i32 nitem, const struct ckpt_pieces *p) {
    struct manifest_piece *room;
    ARENA_NEW(&m->arena, m->shard, p->shards);
    ARENA_NEW(&m->arena, m->tensor, nitem + 1);
    ARENA_NEW(&m->arena, room, p->n + 1);
    m->nshard = p->shards;
    i32 k = 0;
    for (i32 i = 0; i < nitem; i++) {
        struct manifest_tensor *t = &m->tensor[m->ntensor++];
        *t = (struct manifest_tensor){.dtype = item[i].dtype, .n = item[i].n, .piece = room + k};
        TRY(copy_text(&m->arena, item[i].name, &t->name));
        i64 at = 0;
        for (; k < p->n && p->piece[k].item == i; k++, t->npiece++) {
            const struct ckpt_piece *c = &p->piece[k];
            i64 *bytes = &m->shard[c->shard].bytes;
            if (c->lo != at || c->hi < at) return FAIL(E1, "pieces of \"%s\" do not follow each other", t->name);
            room[k] = (struct manifest_piece){c->lo, c->hi, *bytes, c->shard};
            *bytes += (c->hi - c->lo) * (i64)dtype_size(t->dtype);
            at = c->hi;
        }
        if (at != t->n) return FAIL(E1, "pieces of \"%s\" end at %lld of %lld", t->name, (long long)at, (long long)t->n);
    }
    return k == p->n ? 0 : FAIL(E1, "pieces are not in the order of the items");
}

err manifest_new(i64 number, const struct ckpt_item *item, i32 nitem, const struct ckpt_pieces *p, const char *run,
                 struct manifest *out) {
    *out = (struct manifest){.number = number};
    err e = lay_out(out, item, nitem, p);
    if (e >= 0 && run) e = copy_text(&out->arena, run, &out->run);
    if (e < 0) manifest_free(out);
    return e;
}

/* ------------------------------------------------------------------ writing ------------------------------------------------- */

static struct js *shard_json(const struct manifest_shard *s) {
    char crc[16];
    struct js *o = js_object();
    snprintf(crc, sizeof crc, "%08x", s->crc);
    js_put_i64(o, "bytes", s->bytes);
    js_put_text(o, "crc32c", crc);
    return o;
}

static struct js *tensor_json(const struct manifest_tensor *t) {
    struct js *o = js_object(), *pieces = js_array();
    js_put_text(o, "name", t->name);
    js_put_text(o, "dtype", dtype_name(t->dtype));
    js_put_i64(o, "count", t->n);
    for (i32 k = 0; k < t->npiece; k++) {
        const struct manifest_piece *p = &t->piece[k];
        const i64 four[] = {p->lo, p->hi, p->shard, p->at};
        struct js *a = js_array();
        for (size_t i = 0; i < COUNT(four); i++) js_push(a, js_new_i64(four[i]));
        js_push(pieces, a);
    }
    js_put(o, "pieces", pieces);
    return o;
}

static err put_run(struct js *o, const char *run) {
    struct js *v;
    if (!run) return 0;
    TRY(js_parse(run, strlen(run), "run", &v));
    js_put(o, "run", v);
    return 0;
}

err manifest_text(const struct manifest *m, struct str *out) {
    struct js *o = js_object(), *shards = js_array(), *tensors = js_array();
    js_put_i64(o, "stretto.checkpoint", CKPT_SCHEMA);
    js_put_i64(o, "number", m->number);
    js_put_i64(o, "world", m->nshard);
    err e = put_run(o, m->run);
    for (i32 i = 0; i < m->nshard; i++) js_push(shards, shard_json(&m->shard[i]));
    for (i32 i = 0; i < m->ntensor; i++) js_push(tensors, tensor_json(&m->tensor[i]));
    js_put(o, "shards", shards);
    js_put(o, "tensors", tensors);
    if (e >= 0) e = js_text(o, out, 0);
    js_free(o);
    TRY(e);
    while (out->len && out->s[out->len - 1] != '}') out->len--;
    out->len--;
    str_addf(out, tail_format, crc32c(0, out->s, (i64)out->len));
    return str_ok(out);
}

/* ------------------------------------------------------------------ reading ------------------------------------------------- */

static err bad(const char *path, const char *what) {
    return FAIL_AT(E901, path, "an older checkpoint of the same folder, or a copy", "the manifest is damaged: %s", what);
}

/* Verifies the checksum at the end against the bytes before it. */
static bool sum_holds(const char *text, i64 n) {
    char want[TAIL + 1];
    if (n < TAIL) return false;
    snprintf(want, sizeof want, tail_format, crc32c(0, text, n - TAIL));
    return memcmp(text + n - TAIL, want, TAIL) == 0;
}

static bool read_shards(const struct js *a, struct manifest *m) {
    for (i32 i = 0; i < m->nshard; i++) {
        const char *crc = js_str(js_get(js_at(a, i), "crc32c"), "");
        m->shard[i].bytes = js_i64(js_get(js_at(a, i), "bytes"), -1);
        if (m->shard[i].bytes < 0 || strlen(crc) != 8 || strspn(crc, "0123456789abcdef") != 8) return false;
        m->shard[i].crc = (u32)strtoul(crc, NULL, 16);
    }
    return true;
}

/* Compares counts and offsets by division: products of untrusted numbers may overflow. */
static bool read_pieces(const struct js *a, const struct manifest *m, struct manifest_tensor *t) {
    const i64 size = (i64)dtype_size(t->dtype);
    i64 at = 0;
    for (i32 k = 0; k < t->npiece; k++) {
        const struct js *four = js_at(a, k);
        struct manifest_piece *p = &t->piece[k];
        const i64 shard = js_i64(js_at(four, 2), -1);
        *p = (struct manifest_piece){js_i64(js_at(four, 0), -1), js_i64(js_at(four, 1), -1), js_i64(js_at(four, 3), -1),
                                     (i32)shard};
        if (js_len(four) != 4 || shard < 0 || shard >= m->nshard || p->lo != at || p->hi < at || p->at < 0) return false;
        const i64 bytes = m->shard[shard].bytes;
        if (p->at > bytes || p->hi - p->lo > (bytes - p->at) / size) return false;
        at = p->hi;
    }
    return at == t->n;
}

static err read_tensor(const struct js *o, struct manifest *m, i64 *pieces, bool *good) {
    struct manifest_tensor *t = &m->tensor[m->ntensor];
    const struct js *a = js_get(o, "pieces");
    const char *name = js_str(js_get(o, "name"), NULL);
    *pieces += js_len(a);
    *good = name && !manifest_find(m, name) && *pieces <= MOST_PIECES && dtype_find(js_str(js_get(o, "dtype"), ""), &t->dtype);
    if (!*good) return 0;
    t->n = js_i64(js_get(o, "count"), -1);
    t->npiece = (i32)js_len(a);
    TRY(copy_text(&m->arena, name, &t->name));
    ARENA_NEW(&m->arena, t->piece, t->npiece + 1);
    *good = t->n >= 0 && read_pieces(a, m, t);
    m->ntensor++;
    return 0;
}

static err read_all(const char *path, const struct js *o, struct manifest *m) {
    const struct js *shards = js_get(o, "shards"), *tensors = js_get(o, "tensors");
    const i64 schema = js_i64(js_get(o, "stretto.checkpoint"), -1);
    i64 pieces = 0;
    bool good = true;
    if (schema > CKPT_SCHEMA)
        return FAIL_AT(E902, path, "continue with the version of stretto that started the run",
                       "the checkpoint has schema %lld, this version of stretto reads schema 1 to %d", (long long)schema,
                       CKPT_SCHEMA);
    m->number = js_i64(js_get(o, "number"), -1);
    if (schema != CKPT_SCHEMA || m->number < 0) return bad(path, "it is none of stretto");
    if (js_len(shards) < 1 || js_len(shards) > SHARDS_MOST || js_len(shards) != js_i64(js_get(o, "world"), -1))
        return bad(path, "its list of shards");
    if (js_len(tensors) > MOST_TENSORS) return bad(path, "its list of tensors");
    m->nshard = (i32)js_len(shards);
    ARENA_NEW(&m->arena, m->shard, m->nshard);
    ARENA_NEW(&m->arena, m->tensor, js_len(tensors) + 1);
    if (!read_shards(shards, m)) return bad(path, "its list of shards");
    for (i64 i = 0; i < js_len(tensors) && good; i++) TRY(read_tensor(js_at(tensors, i), m, &pieces, &good));
    return good ? 0 : bad(path, "the pieces of its tensors");
}

err manifest_load(const char *path, struct manifest *out) {
    char *text;
    i64 n;
    struct js *o = NULL;
    *out = (struct manifest){0};
    TRY(file_load(path, MOST_BYTES, &text, &n));
    err e = sum_holds(text, n) ? 0 : bad(path, "its CRC32C is another one");
    if (e >= 0) e = js_parse(text, (size_t)n, path, &o) < 0 ? bad(path, "it is no JSON") : 0;
    if (e >= 0) e = read_all(path, o, out);
    js_free(o);
    mem_free(text);
    if (e < 0) manifest_free(out);
    return e;
}
