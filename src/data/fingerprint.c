/* fingerprint.c - see fingerprint.h: making, writing and reading; fingerprint_compare.c compares. */
#include "data/fingerprint.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "data/fingerprint_blocks.h"
#include "data/time.h"

enum { SCHEMA = 1, COLUMNS_MOST = 1 << 24, BLOCK_BYTES = 512, SHARE = 16 }; /* of a block as JSON; of --memory for all of them */
static const i64 step_most = (i64)1 << 40;
static const char *const part_names[FINGERPRINT_PARTS] = {"training", "validation", "test", "beyond"};

static u64 mix(u64 h, u64 w) {
    h = (h ^ w) * 0x9E3779B97F4A7C15u;
    return h ^ h >> 29;
}

static u64 bits_of(f64 v) {
    u64 w;
    memcpy(&w, &v, sizeof w);
    return w;
}

static u64 hash_text(const char *s) {
    u64 h = 1;
    for (; *s; s++) h = mix(h, (u8)*s);
    return h;
}

/* ------------------------------------------------------------------ blocks -------------------------------------------------- */

const char *fingerprint_part(i32 part) { return part_names[part]; }

static i64 part_start(const struct fingerprint *f, i32 part) {
    const i64 edge[] = {0, f->split.train, f->split.validation, f->split.test, f->rows};
    return edge[part];
}

static i64 part_blocks(const struct fingerprint *f, i32 part) {
    return (part_start(f, part + 1) - part_start(f, part) + f->step - 1) / f->step;
}

static i64 all_blocks(const struct fingerprint *f) {
    i64 n = 0;
    for (i32 k = 0; k < FINGERPRINT_PARTS; k++) n += part_blocks(f, k);
    return n;
}

struct print_range fingerprint_range(const struct fingerprint *f, i64 block) {
    i32 part = 0;
    while (part + 1 < FINGERPRINT_PARTS && block >= part_blocks(f, part)) block -= part_blocks(f, part++);
    const i64 lo = part_start(f, part) + block * f->step;
    return (struct print_range){lo, lmin(lo + f->step, part_start(f, part + 1)), part};
}

/* ------------------------------------------------------------------ hashing ------------------------------------------------- */

static struct print_block number_block(const struct series *s, i32 c, i64 lo, i64 hi) {
    const f32 *v = series_col(s, c);
    struct print_block b = {.hash = mix(1, bits_of(s->mean[c]))};
    f64 sum = 0;
    for (i64 i = lo; i < hi; i++) {
        const bool missing = isnan(v[i]), filled = series_filled(s, c, i);
        u32 word = 0;
        if (!missing) memcpy(&word, &v[i], sizeof word);
        b.hash = mix(b.hash, (u64)word | (u64)missing << 32 | (u64)filled << 33);
        b.missing += missing || filled;
        if (!missing && !filled) sum += (f64)v[i];
    }
    const i64 present = hi - lo - b.missing;
    b.mean = present > 0 ? s->mean[c] + sum / (f64)present : 0;
    return b;
}

static struct print_block time_block(const struct series *s, i64 lo, i64 hi) {
    struct print_block b = {.hash = 1};
    for (i64 i = lo; i < hi; i++) b.hash = mix(b.hash, (u64)s->time[i]);
    return b;
}

static struct print_block word_block(const struct series *s, i32 cat, const u64 *word, i64 lo, i64 hi) {
    struct print_block b = {.hash = 1};
    for (i64 k = 0; k < (hi - lo) * (s->panel ? s->ntarget : 1); k++) {
        const i32 code = series_code(s, cat, (i32)(k / (hi - lo)), lo + k % (hi - lo));
        b.hash = mix(b.hash, code < 0 ? 0 : word[code]);
        b.missing += code < 0;
    }
    return b;
}

/* The blocks of a column that lie within the series; others stay as they are. */
static err hash_column(const struct series *s, const struct fingerprint *f, i32 i, struct print_block *block) {
    const i32 c = i - (s->time != NULL), cat = c - s->ncol;
    u64 *word = NULL;
    if (cat >= 0) NEW(word, s->nword[cat] + 1);
    for (i32 w = 0; cat >= 0 && w < s->nword[cat]; w++) word[w] = hash_text(s->word[cat][w]);
    for (i64 b = 0; b < f->nblock; b++) {
        const struct print_range r = fingerprint_range(f, b);
        if (r.hi > s->nrow) continue;
        block[b] = c < 0     ? time_block(s, r.lo, r.hi)
                   : cat < 0 ? number_block(s, c, r.lo, r.hi)
                             : word_block(s, cat, word, r.lo, r.hi);
    }
    mem_free(word);
    return 0;
}

static const char *role_of(const struct series *s, i32 c) {
    if (c < 0) return "time";
    if (c < s->ntarget) return "target";
    if (c < series_first_ahead(s)) return "past";
    return c < s->ncol ? "known" : "category";
}

static const char *name_of(const struct series *s, i32 c) {
    if (c < 0) return "time";
    return c < s->ncol ? s->name[c] : s->cat_name[c - s->ncol];
}

err fingerprint_columns(const struct series *s, struct fingerprint *f) {
    f->ncolumn = (s->time != NULL) + s->ncol + s->ncat;
    TRY(arena_keep(&f->arena, &f->freq, s->freq.name));
    ARENA_NEW(&f->arena, f->column, f->ncolumn);
    for (i32 i = 0; i < f->ncolumn; i++) {
        struct print_column *p = &f->column[i];
        const i32 c = i - (s->time != NULL);
        p->role = role_of(s, c);
        TRY(arena_keep(&f->arena, &p->name, name_of(s, c)));
        ARENA_NEW(&f->arena, p->block, f->nblock + 1);
        TRY(hash_column(s, f, i, p->block));
    }
    return 0;
}

static err spans(const struct series *s, struct fingerprint *f) {
    for (i32 k = 0; k < FINGERPRINT_PARTS; k++) {
        const i64 lo = part_start(f, k), hi = part_start(f, k + 1);
        char first[32] = "", last[32] = "";
        if (hi > lo) row_label(s, lo, first);
        if (hi > lo) row_label(s, hi - 1, last);
        TRY(arena_keep(&f->arena, &f->first[k], first));
        TRY(arena_keep(&f->arena, &f->last[k], last));
    }
    return 0;
}

/* Blocks of all columns together. */
static i64 blocks_most(void) {
    const i64 limit = mem_limit();
    return limit ? lmin(FINGERPRINT_BLOCKS, lmax(FINGERPRINT_PARTS, limit / SHARE / BLOCK_BYTES)) : FINGERPRINT_BLOCKS;
}

err fingerprint_make(const struct series *s, const struct split *p, struct fingerprint *out) {
    const i64 columns = (s->time != NULL) + s->ncol + s->ncat;
    *out = (struct fingerprint){.rows = s->nrow, .step = 1, .split = *p};
    while (out->step < s->nrow && columns * all_blocks(out) > blocks_most()) out->step *= 2;
    out->nblock = all_blocks(out);
    err e = fingerprint_columns(s, out);
    if (e >= 0) e = spans(s, out);
    if (e < 0) fingerprint_free(out);
    return e;
}

void fingerprint_free(struct fingerprint *f) {
    arena_free(&f->arena);
    *f = (struct fingerprint){0};
}

/* ------------------------------------------------------------------ as JSON ------------------------------------------------- */

static struct js *block_json(const struct print_block *b) {
    char hex[20];
    struct js *a = js_array();
    snprintf(hex, sizeof hex, "%016llx", (unsigned long long)b->hash);
    js_push(a, js_new_text(hex));
    js_push(a, js_new_i64(b->missing));
    js_push(a, js_new_f64(b->mean));
    return a;
}

static struct js *column_json(const struct print_column *p, i64 n) {
    struct js *o = js_object(), *blocks = js_array();
    js_put_text(o, "name", p->name);
    js_put_text(o, "role", p->role);
    for (i64 b = 0; b < n; b++) js_push(blocks, block_json(&p->block[b]));
    js_put(o, "blocks", blocks);
    return o;
}

struct js *fingerprint_json(const struct fingerprint *f) {
    struct js *o = js_object(), *parts = js_array(), *columns = js_array();
    js_put_i64(o, "stretto.fingerprint", SCHEMA);
    js_put_i64(o, "rows_of_block", f->step);
    js_put_text(o, "frequency", f->freq);
    for (i32 k = 0; k < FINGERPRINT_PARTS; k++) {
        struct js *part = js_object();
        js_put_text(part, "name", part_names[k]);
        js_put_i64(part, "rows", part_start(f, k + 1) - part_start(f, k));
        js_put_text(part, "first", f->first[k]);
        js_put_text(part, "last", f->last[k]);
        js_push(parts, part);
    }
    js_put(o, "parts", parts);
    for (i32 i = 0; i < f->ncolumn; i++) js_push(columns, column_json(&f->column[i], f->nblock));
    js_put(o, "columns", columns);
    return o;
}

static err keep(struct fingerprint *f, const char **to, const struct js *text) {
    return arena_keep(&f->arena, to, js_str(text, ""));
}

static err unfit(void) { return FAIL(E901, "its fingerprint of the data is not readable"); }

static err read_parts(const struct js *parts, struct fingerprint *f) {
    i64 end[FINGERPRINT_PARTS], at = 0;
    for (i32 k = 0; k < FINGERPRINT_PARTS; k++) {
        const struct js *part = js_at(parts, k);
        const i64 rows = js_i64(js_get(part, "rows"), -1);
        if (rows < 0 || rows > INT64_MAX / 8 - at) return unfit();
        end[k] = at += rows;
        TRY(keep(f, &f->first[k], js_get(part, "first")));
        TRY(keep(f, &f->last[k], js_get(part, "last")));
    }
    f->split = (struct split){.train = end[0], .validation = end[1], .test = end[2]};
    f->rows = at;
    f->nblock = all_blocks(f);
    return 0;
}

static err read_column(const struct js *o, struct fingerprint *f, struct print_column *p) {
    const struct js *blocks = js_get(o, "blocks");
    if (js_len(blocks) != f->nblock) return unfit();
    ARENA_NEW(&f->arena, p->block, f->nblock + 1);
    TRY(keep(f, &p->name, js_get(o, "name")));
    TRY(keep(f, &p->role, js_get(o, "role")));
    for (i64 b = 0; b < f->nblock; b++) {
        const struct js *block = js_at(blocks, b);
        p->block[b] = (struct print_block){.hash = strtoull(js_str(js_at(block, 0), ""), NULL, 16),
                                           .missing = js_i64(js_at(block, 1), 0), .mean = js_f64(js_at(block, 2), 0)};
    }
    return 0;
}

static err read_all(const struct js *o, struct fingerprint *f) {
    const struct js *columns = js_get(o, "columns");
    const i64 schema = js_i64(js_get(o, "stretto.fingerprint"), 0), n = js_len(columns);
    if (schema > SCHEMA) return FAIL(E902, "a newer version of stretto wrote its fingerprint of the data");
    f->step = js_i64(js_get(o, "rows_of_block"), 0);
    if (schema < 1 || f->step < 1 || f->step > step_most || n < 1 || n > COLUMNS_MOST) return unfit();
    TRY(read_parts(js_get(o, "parts"), f));
    TRY(keep(f, &f->freq, js_get(o, "frequency")));
    ARENA_NEW(&f->arena, f->column, n);
    for (; f->ncolumn < n; f->ncolumn++) TRY(read_column(js_at(columns, f->ncolumn), f, &f->column[f->ncolumn]));
    return 0;
}

err fingerprint_read(const struct js *o, struct fingerprint *out) {
    *out = (struct fingerprint){0};
    const err e = read_all(o, out);
    if (e < 0) fingerprint_free(out);
    return e;
}
