/* features.c - features of a token as numbers of words: the word, its affixes, characters and pattern, the other columns. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "learn/tagger/tagger.h"

const char *feature_kind_name(enum feature_kind kind) {
    static const char *const name[FEATURE_KINDS] = {"word", "prefix", "suffix", "first", "last", "pattern", "column"};
    return name[kind];
}

/* The bytes of a UTF-8 character from `at` on, at most those that are left. */
static i32 character(const char *at, i32 left) {
    i32 n = 1;
    while (n < left && ((u8)at[n] & 0xc0) == 0x80) n++;
    return n;
}

/* Offset behind the first n characters of a word, or of the n last ones; -1 where it has fewer. */
static i32 skip(const char *word, i32 bytes, i32 n) {
    i32 at = 0;
    for (; n > 0 && at < bytes; n--) at += character(word + at, bytes - at);
    return n > 0 ? -1 : at;
}

static i32 skip_back(const char *word, i32 bytes, i32 n) {
    for (; n > 0 && bytes > 0; n--)
        do bytes--;
        while (bytes > 0 && ((u8)word[bytes] & 0xc0) == 0x80);
    return n > 0 ? -1 : bytes;
}

static void put(char out[FEATURE_TEXT], const char *text, i32 bytes) {
    if (bytes > FEATURE_TEXT - 1) bytes = FEATURE_TEXT - 1;
    memcpy(out, text, (size_t)bytes);
    out[bytes] = 0;
}

/* Xx-d of "Mid-1990s": runs of capital letters, small ones, digits; other characters stay. */
static void pattern(char out[FEATURE_TEXT], const char *word) {
    i32 n = 0;
    for (const u8 *p = (const u8 *)word; *p && n < FEATURE_TEXT - 1; p++) {
        const char c = (char)(isupper(*p) ? 'X' : islower(*p) ? 'x' : isdigit(*p) ? 'd' : *p >= 0x80 ? 'u' : *p);
        if (n == 0 || out[n - 1] != c) out[n++] = c;
    }
    out[n] = 0;
}

/* The text of a feature of a word; "" where the word is too short. */
static void text_of(const struct tag_feature *f, const char *word, char out[FEATURE_TEXT]) {
    const i32 bytes = (i32)strlen(word);
    i32 at = 0, end = bytes;
    switch (f->kind) {
    case FEATURE_PREFIX: end = skip(word, bytes, f->n); break;
    case FEATURE_SUFFIX: at = skip_back(word, bytes, f->n); break;
    case FEATURE_FIRST: at = skip(word, bytes, f->n), end = skip(word, bytes, f->n + 1); break;
    case FEATURE_LAST: at = skip_back(word, bytes, f->n + 1), end = skip_back(word, bytes, f->n); break;
    case FEATURE_PATTERN: pattern(out, word); return;
    case FEATURE_WORD:
    case FEATURE_COLUMN:
    case FEATURE_KINDS: break;
    }
    if (at < 0 || end < 0) out[0] = 0;
    else put(out, word + at, end - at);
}

/* Words that the features keep must be seen so often in the training sentences. */
static i32 least_count(enum feature_kind kind) { return kind == FEATURE_PREFIX || kind == FEATURE_SUFFIX ? 3 : 1; }

static err add(struct tagger *t, enum feature_kind kind, i32 column, i32 n, i32 width) {
    if (t->nfeature == TAGGER_FEATURES) return FAIL(E214, "a file with more than %d columns", t->ncol);
    t->feature[t->nfeature++] = (struct tag_feature){.kind = kind, .column = column, .n = n, .width = width};
    return 0;
}

static err list(struct tagger *t) {
    enum { WORD = 100, AFFIX = 24, LETTER = 8, OTHER = 32, PATTERN = 16, PREFIXES = 3, SUFFIXES = 4, ENDS = 3 };
    TRY(add(t, FEATURE_WORD, 0, 0, WORD));
    for (i32 c = 1; c < t->ncol; c++) TRY(add(t, FEATURE_COLUMN, c, 0, OTHER));
    for (i32 n = 2; n <= PREFIXES; n++) TRY(add(t, FEATURE_PREFIX, 0, n, AFFIX));
    for (i32 n = 2; n <= SUFFIXES; n++) TRY(add(t, FEATURE_SUFFIX, 0, n, AFFIX));
    for (i32 n = 0; n < ENDS; n++) TRY(add(t, FEATURE_FIRST, 0, n, LETTER));
    for (i32 n = 0; n < ENDS; n++) TRY(add(t, FEATURE_LAST, 0, n, LETTER));
    return add(t, FEATURE_PATTERN, 0, 0, PATTERN);
}

/* Number in `all` of the feature of each word of a column: *out [words of the column], on the heap. */
static err of_column(const struct tag_feature *f, const struct vocab *column, struct vocab *all, i32 **out) {
    i32 *code;
    TRY(mem_new((void **)&code, column->n + 1, sizeof *code));
    *out = code;
    for (i32 w = 0; w < column->n; w++) {
        char text[FEATURE_TEXT];
        text_of(f, vocab_word(column, w), text);
        TRY(vocab_code(all, text, (i64)strlen(text), &code[w]));
    }
    return 0;
}

static err keep_frequent(struct tag_feature *f, const struct token_set *s, i64 from, i64 to, const struct vocab *all,
                         const i32 *code) {
    const struct token_column *c = token_input(s, f->column);
    i64 *count;
    err e = 0;
    NEW(count, all->n + 1);
    for (i64 k = s->first[from]; k < s->first[to]; k++) count[code[c->code[k]]]++;
    for (i32 w = 0; w < all->n && e >= 0; w++) {
        i32 at;
        const char *word = vocab_word(all, w);
        if (*word && count[w] >= least_count(f->kind)) e = vocab_code(&f->words, word, (i64)strlen(word), &at);
    }
    mem_free(count);
    return e;
}

static err learn_words(struct tag_feature *f, const struct token_set *s, i64 from, i64 to) {
    struct vocab all = {0};
    i32 *code = NULL;
    err e = of_column(f, &token_input(s, f->column)->word, &all, &code);
    if (e >= 0) e = keep_frequent(f, s, from, to, &all, code);
    mem_free(code);
    vocab_free(&all);
    return e;
}

err features_choose(struct tagger *t, const struct token_set *s, i64 from, i64 to) {
    TRY(list(t));
    for (i32 k = 0; k < t->nfeature; k++) TRY(learn_words(&t->feature[k], s, from, to));
    return 0;
}

static err ids_of(const struct tag_feature *f, const struct token_set *s, i32 *ids) {
    const struct token_column *c = token_input(s, f->column);
    i32 *id;
    TRY(mem_new((void **)&id, c->word.n + 1, sizeof *id));
    for (i32 w = 0; w < c->word.n; w++) {
        char text[FEATURE_TEXT];
        text_of(f, vocab_word(&c->word, w), text);
        id[w] = vocab_find(&f->words, text, (i64)strlen(text)) + 1;
    }
    for (i64 k = 0; k < s->ntoken; k++) ids[k] = id[c->code[k]];
    mem_free(id);
    return 0;
}

err features_ids(const struct tagger *t, const struct token_set *s, i32 **out) {
    i32 *ids;
    *out = NULL;
    NEW(ids, s->ntoken * t->nfeature + 1);
    for (i32 k = 0; k < t->nfeature; k++) {
        const err e = ids_of(&t->feature[k], s, ids + k * s->ntoken);
        if (e >= 0) continue;
        mem_free(ids);
        return e;
    }
    *out = ids;
    return 0;
}
