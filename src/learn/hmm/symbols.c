/* symbols.c - reads the words of one long sequence; see symbols.h. */
#include "learn/hmm/symbols.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/input.h"
#include "base/mem.h"
#include "base/zfile.h"
#include "data/first_bytes.h"

enum { PIECE = 1 << 22, WORD_MAX = 1 << 16, KNOWN = 1 << 12, KEY = 8 };

/* Words of up to 8 bytes that were seen lately, found by their bytes as a number. */
struct known {
    u64 key;
    i32 row;
};

struct reading {
    const struct hmm *h;
    const char *path;
    struct hmm_symbols *to;
    struct known *known; /* [KNOWN] */
    struct workload *work;
};

static bool is_space(u8 c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

static err add(struct hmm_symbols *s, i32 row) {
    if (s->n == s->cap) TRY(mem_grow(&s->at, s->n, &s->cap, (size_t)s->bytes));
    if (s->bytes == 1) ((u8 *)s->at)[s->n++] = (u8)row;
    else if (s->bytes == 2) ((u16 *)s->at)[s->n++] = (u16)row;
    else ((i32 *)s->at)[s->n++] = row;
    return 0;
}

static i32 row_of(const struct reading *r, const char *word, i64 n) {
    const i32 code = vocab_find(&r->h->word, word, n);
    if (code >= 0) return code;
    if (r->to->unknown == 0) snprintf(r->to->first, sizeof r->to->first, "%.*s", (int)lmin(n, 60), word);
    return r->h->W - 1;
}

static i32 cached_row(const struct reading *r, const char *word, i64 n) {
    u64 key = 0;
    if (n > KEY) return row_of(r, word, n);
    memcpy(&key, word, (size_t)n);
    struct known *k = &r->known[(key * 0x9e3779b97f4a7c15u) >> 52];
    if (k->key != key) *k = (struct known){key, row_of(r, word, n)};
    return k->row;
}

static err no_text(const struct reading *r, const char *why) {
    return FAIL_AT(E202, input_label(r->path), "a text with words separated by blanks or line ends", "%s after %lld words", why,
                   (long long)r->to->n);
}

/* All words of a text that ends with a space; a word may not hold a NUL. */
static err take(struct reading *r, const char *p, const char *end) {
    while (p < end) {
        if (is_space((u8)*p)) {
            p++;
            continue;
        }
        const char *word = p;
        while (!is_space((u8)*p)) p++;
        if (p - word > WORD_MAX || memchr(word, 0, (size_t)(p - word))) return no_text(r, "this is no text");
        const i32 row = cached_row(r, word, p - word);
        r->to->unknown += row == r->h->W - 1;
        TRY(add(r->to, row));
    }
    return 0;
}

/* Pieces of the file; a word that a piece cuts goes to the front of the next one. */
static err take_pieces(struct reading *r, struct file_in *f, char *buf) {
    i64 fill = 0, got = 1;
    while (got > 0) {
        if (fill >= PIECE - 1) return no_text(r, "there is no blank");
        TRY(file_read_some(f, buf + fill, PIECE - 1 - fill, &got));
        fill += got;
        if (got == 0) buf[fill++] = '\n';
        i64 whole = fill;
        while (whole > 0 && !is_space((u8)buf[whole - 1])) whole--;
        TRY(take(r, buf, buf + whole));
        memmove(buf, buf + whole, (size_t)(fill - whole));
        fill -= whole;
        TRY(workload_advance(r->work, (f64)got));
    }
    return 0;
}

static err take_packed(struct reading *r) {
    char *text;
    i64 n;
    TRY(zfile_load(r->path, &text, &n));
    text[n] = '\n'; /* in place of the NUL */
    const err e = take(r, text, text + n + 1);
    mem_free(text);
    return e;
}

static err take_file(struct reading *r, struct file_in *f, const struct resources *use) {
    char head[FIRST_BYTES], *buf;
    const i64 n = lmax(0, lmin(f->size, FIRST_BYTES));
    if (n > 0) TRY(file_read_at(f, 0, head, n));
    if (n >= 4 && zfile_kind(head, 4) != Z_PLAIN) return take_packed(r);
    TRY(first_bytes_check(input_label(r->path), head, n, "a text of words", "write the data as text"));
    struct workload work = workload_start("reading", use->events, use->stop);
    work.all = (f64)lmax(1, f->size);
    r->work = &work;
    NEW(buf, PIECE);
    const err e = take_pieces(r, f, buf);
    mem_free(buf);
    workload_end(&work);
    return e;
}

err hmm_symbols_read(const struct hmm *h, const char *path, const struct resources *use, struct hmm_symbols *out) {
    struct reading r = {.h = h, .path = path, .to = out};
    struct file_in f;
    *out = (struct hmm_symbols){.bytes = h->W <= 256 ? 1 : h->W <= 65536 ? 2 : 4};
    TRY(file_open(path, &f));
    err e = mem_new((void **)&r.known, KNOWN, sizeof *r.known);
    if (e >= 0) e = take_file(&r, &f, use);
    mem_free(r.known);
    file_close(&f);
    if (e >= 0 && out->n == 0)
        e = FAIL_AT(E201, input_label(path), "a file with words separated by blanks or line ends", "the file is empty");
    if (e < 0) hmm_symbols_free(out);
    return e;
}

void hmm_symbols_free(struct hmm_symbols *s) {
    mem_free(s->at);
    *s = (struct hmm_symbols){0};
}
