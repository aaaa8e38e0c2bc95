/* features.c - from templates and words to attributes of tokens; see features.h. */
#include "learn/crf/features.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "learn/crf/kernel.h"

/* The different keys of one template, and the key of each token. */
struct keys {
    i32 n, width;
    i32 *key;          /* [n][width] word codes; -1 - k: k lines beyond the sentence (k odd: before it) */
    i64 cap;
    i32 *count;        /* [n] */
    i64 count_cap;
    i32 *slot;         /* [slots] number of the key + 1, 0 = free */
    i32 slots;
    i32 *of_token;     /* [ntoken] */
    i32 *attribute;    /* [n] -1 = left out */
};

struct extraction {
    const struct templates *t;
    const struct token_set *s;
    i64 ntoken;
    struct keys *keys; /* [t->n] */
    i32 nworker;
    struct err_record *failed; /* [nworker] */
};

static void keys_free(struct keys *k) {
    mem_free(k->key);
    mem_free(k->count);
    mem_free(k->slot);
    mem_free(k->of_token);
    mem_free(k->attribute);
}

static void extraction_free(struct extraction *x) {
    for (i32 i = 0; x->keys && i < x->t->n; i++) keys_free(&x->keys[i]);
    mem_free(x->keys);
    mem_free(x->failed);
}

/* ------------------------------------------------------------------ keys ---------------------------------------------------- */

static u32 hash_of(const i32 *key, i32 width) {
    u64 h = 0x9E3779B97F4A7C15u;
    for (i32 i = 0; i < width; i++) {
        h = (h ^ (u32)key[i]) * 0xff51afd7ed558ccdu;
        h ^= h >> 32;
    }
    return (u32)(h ^ h >> 29);
}

static err more_slots(struct keys *k) {
    const i32 slots = k->slots ? 2 * k->slots : 1024;
    i32 *slot;
    NEW(slot, slots);
    for (i32 i = 0; i < k->n; i++) {
        u32 at = hash_of(k->key + (i64)i * k->width, k->width) & ((u32)slots - 1);
        while (slot[at]) at = (at + 1) & ((u32)slots - 1);
        slot[at] = i + 1;
    }
    mem_free(k->slot);
    k->slot = slot;
    k->slots = slots;
    return 0;
}

static err key_code(struct keys *k, const i32 *key, i32 *code) {
    const size_t bytes = sizeof *key * (size_t)k->width;
    if (2 * k->n >= k->slots) TRY(more_slots(k));
    const u32 mask = (u32)k->slots - 1;
    u32 at = hash_of(key, k->width) & mask;
    for (; k->slot[at]; at = (at + 1) & mask) {
        *code = k->slot[at] - 1;
        if (memcmp(k->key + (i64)*code * k->width, key, bytes) == 0) return 0;
    }
    GROW(k->key, (i64)(k->n + 1) * k->width, k->cap);
    GROW(k->count, k->n, k->count_cap);
    memcpy(k->key + (i64)k->n * k->width, key, bytes);
    k->count[k->n] = 0;
    k->slot[at] = k->n + 1;
    *code = k->n++;
    return 0;
}

static err extract(struct extraction *x, i32 i) {
    const struct template_line *line = &x->t->line[i];
    const struct token_set *s = x->s;
    struct keys *k = &x->keys[i];
    i32 key[TEMPLATE_MACROS] = {0};
    k->width = imax(1, line->n);
    NEW(k->of_token, x->ntoken);
    for (i32 j = 0; j < s->nsentence && s->first[j] < x->ntoken; j++)
        for (i64 t = s->first[j]; t < s->first[j + 1]; t++) {
            for (i32 m = 0; m < line->n; m++) {
                const i64 at = t + line->macro[m].row;
                if (at < s->first[j]) key[m] = -(i32)(2 * (s->first[j] - at));
                else if (at >= s->first[j + 1]) key[m] = -(i32)(2 * (at - s->first[j + 1] + 1) + 1);
                else key[m] = token_input(s, line->macro[m].column)->code[at];
            }
            TRY(key_code(k, key, &k->of_token[t]));
            k->count[k->of_token[t]]++;
        }
    return 0;
}

static void extract_some(void *arg, i32 worker) {
    struct extraction *x = arg;
    for (i32 i = worker; i < x->t->n; i += x->nworker)
        if (extract(x, i) < 0) {
            x->failed[worker] = *err_last();
            return;
        }
}

static err extract_all(struct extraction *x, struct pool *pool) {
    x->nworker = pool_size(pool);
    NEW(x->keys, x->t->n);
    NEW(x->failed, x->nworker);
    pool_run(pool, extract_some, x);
    for (i32 w = 0; w < x->nworker; w++)
        if (x->failed[w].code) {
            err_put(&x->failed[w]);
            return -x->failed[w].code;
        }
    for (i32 i = 0; i < x->t->n; i++) NEW(x->keys[i].attribute, x->keys[i].n);
    return 0;
}

/* ------------------------------------------------------------------ attributes ---------------------------------------------- */

static void spell(const struct extraction *x, i32 i, i32 k, struct str *out) {
    const struct template_line *line = &x->t->line[i];
    const i32 *key = x->keys[i].key + (i64)k * x->keys[i].width;
    out->len = 0;
    for (i32 m = 0; m < line->n; m++) {
        str_addn(out, line->macro[m].text, (size_t)line->macro[m].length);
        if (key[m] >= 0) str_add(out, vocab_word(&token_input(x->s, line->macro[m].column)->word, key[m]));
        else str_addf(out, "_B%c%d", -key[m] & 1 ? '+' : '-', -key[m] / 2);
    }
    str_addn(out, line->tail, (size_t)line->tail_length);
}

/* The attributes of each token, in the order of the templates. */
static err index_tokens(const struct extraction *x, struct features *out) {
    i64 n = 0;
    *out = (struct features){.ntoken = x->ntoken};
    NEW(out->at, x->ntoken + 1);
    for (i64 t = 0; t < x->ntoken; t++) {
        out->at[t] = n;
        for (i32 i = 0; i < x->t->n; i++) n += x->keys[i].attribute[x->keys[i].of_token[t]] >= 0;
    }
    out->at[x->ntoken] = n;
    NEW(out->attribute, n + CRF_AHEAD);
    n = 0;
    for (i64 t = 0; t < x->ntoken; t++)
        for (i32 i = 0; i < x->t->n; i++) {
            const i32 a = x->keys[i].attribute[x->keys[i].of_token[t]];
            if (a >= 0) out->attribute[n++] = a;
        }
    return 0;
}

struct counted {
    i32 id, count;
};

static int by_count(const void *a, const void *b) {
    const struct counted *x = a, *y = b;
    return x->count != y->count ? (x->count > y->count ? -1 : 1) : x->id < y->id ? -1 : 1;
}

/* Numbers the attributes that are kept, most frequent first: rows that are used together then share cache lines.
 * to [all->n]: the number of each, -1 = left out. */
static err number_kept(const struct vocab *all, struct counted *c, i32 cutoff, struct vocab *words, i32 *to) {
    i32 code;
    qsort(c, (size_t)all->n, sizeof *c, by_count);
    for (i32 i = 0; i < all->n; i++) {
        const char *word = vocab_word(all, c[i].id);
        to[c[i].id] = c[i].count >= cutoff ? words->n : -1;
        if (c[i].count >= cutoff) TRY(vocab_code(words, word, (i64)strlen(word), &code));
    }
    return 0;
}

static err keep(struct extraction *x, const struct vocab *all, struct counted *c, i32 cutoff, struct vocab *words) {
    i32 *to;
    NEW(to, all->n);
    const err e = number_kept(all, c, cutoff, words, to);
    for (i32 i = 0; i < x->t->n; i++)
        for (i32 k = 0; k < x->keys[i].n; k++) x->keys[i].attribute[k] = to[x->keys[i].attribute[k]];
    mem_free(to);
    return e;
}

static err count_all(struct extraction *x, struct str *text, struct vocab *all, i64 **count, i64 *cap) {
    for (i32 i = 0; i < x->t->n; i++)
        for (i32 k = 0; k < x->keys[i].n; k++) {
            const i32 before = all->n;
            i32 code;
            spell(x, i, k, text);
            TRY(str_ok(text));
            TRY(vocab_code(all, str_text(text), (i64)text->len, &code));
            GROW(*count, code, *cap);
            if (code == before) (*count)[code] = 0;
            (*count)[code] += x->keys[i].count[k];
            x->keys[i].attribute[k] = code;
        }
    return 0;
}

static err choose(struct extraction *x, i32 cutoff, struct vocab *words, i64 *seen) {
    struct vocab all = {0};
    struct str text = {0};
    struct counted *c = NULL;
    i64 *count = NULL, cap = 0;
    err e = count_all(x, &text, &all, &count, &cap);
    if (e >= 0) e = mem_new((void **)&c, all.n, sizeof *c);
    for (i32 i = 0; e >= 0 && i < all.n; i++) c[i] = (struct counted){i, (i32)lmin(count[i], INT32_MAX)};
    if (e >= 0) e = keep(x, &all, c, cutoff, words);
    *seen = all.n;
    vocab_free(&all);
    str_free(&text);
    mem_free(count);
    mem_free(c);
    return e;
}

/* ------------------------------------------------------------------ items --------------------------------------------------- */

/* The attributes are the items of the file; of: [item_word.n] number of each, -1 = left out. */
static err index_items(const struct token_set *s, i64 ntoken, const i32 *of, struct features *out) {
    i64 n = 0;
    *out = (struct features){.ntoken = ntoken};
    NEW(out->at, ntoken + 1);
    NEW(out->attribute, s->item_at[ntoken] + CRF_AHEAD);
    for (i64 t = 0; t < ntoken; t++) {
        out->at[t] = n;
        for (i64 i = s->item_at[t]; i < s->item_at[t + 1]; i++)
            if (of[s->item[i]] >= 0) out->attribute[n++] = of[s->item[i]];
    }
    out->at[ntoken] = n;
    return 0;
}

static err collect_items(const struct token_set *s, i64 ntoken, i32 cutoff, struct vocab *words, i64 *seen,
                         struct features *out) {
    struct arena a = {0};
    struct counted *c;
    i32 *of;
    ARENA_NEW(&a, c, s->item_word.n + 1);
    ARENA_NEW(&a, of, s->item_word.n + 1);
    *seen = 0;
    for (i32 i = 0; i < s->item_word.n; i++) c[i].id = i;
    for (i64 i = 0; i < s->item_at[ntoken]; i++) *seen += c[s->item[i]].count++ == 0;
    err e = number_kept(&s->item_word, c, imax(1, cutoff), words, of);
    if (e >= 0) e = index_items(s, ntoken, of, out);
    arena_free(&a);
    return e;
}

static err map_items(const struct token_set *s, const struct vocab *words, struct features *out) {
    i32 *of;
    NEW(of, s->item_word.n + 1);
    for (i32 i = 0; i < s->item_word.n; i++) {
        const char *word = vocab_word(&s->item_word, i);
        of[i] = vocab_find(words, word, (i64)strlen(word));
    }
    const err e = index_items(s, s->ntoken, of, out);
    mem_free(of);
    return e;
}

/* ------------------------------------------------------------------ all of it ----------------------------------------------- */

err features_collect(const struct templates *t, const struct token_set *s, i64 ntoken, i32 cutoff, struct pool *pool,
                     struct vocab *words, i64 *seen, struct features *out) {
    struct extraction x = {.t = t, .s = s, .ntoken = ntoken};
    *out = (struct features){0};
    if (s->items) return collect_items(s, ntoken, cutoff, words, seen, out);
    err e = extract_all(&x, pool);
    if (e >= 0) e = choose(&x, cutoff, words, seen);
    if (e >= 0) e = index_tokens(&x, out);
    extraction_free(&x);
    return e;
}

static err look_up(struct extraction *x, const struct vocab *words) {
    struct str text = {0};
    for (i32 i = 0; i < x->t->n; i++)
        for (i32 k = 0; k < x->keys[i].n; k++) {
            spell(x, i, k, &text);
            x->keys[i].attribute[k] = vocab_find(words, str_text(&text), (i64)text.len);
        }
    const err e = str_ok(&text);
    str_free(&text);
    return e;
}

err features_map(const struct templates *t, const struct token_set *s, struct pool *pool, const struct vocab *words,
                 struct features *out) {
    struct extraction x = {.t = t, .s = s, .ntoken = s->ntoken};
    *out = (struct features){0};
    if (s->items) return map_items(s, words, out);
    err e = extract_all(&x, pool);
    if (e >= 0) e = look_up(&x, words);
    if (e >= 0) e = index_tokens(&x, out);
    extraction_free(&x);
    return e;
}

void features_free(struct features *f) {
    mem_free(f->at);
    mem_free(f->attribute);
    *f = (struct features){0};
}
