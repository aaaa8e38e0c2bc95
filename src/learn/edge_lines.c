/* edge_lines.c - counts and parses the lines of an edge list; see edge_lines.h. */
#include "learn/edge_lines.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"
#include "data/number.h"

enum { NAME_MOST = 4096 };

static inline bool is_blank(char c) { return c == ' ' || c == '\t' || c == ',' || c == '\r'; }
static inline bool is_word(char c) { return (u8)c > ' ' ? c != ',' : c != '\n' && !is_blank(c); }

const char *edge_word(const char **p, i64 *n) {
    const char *s = *p;
    while (is_blank(*s)) s++;
    const char *const first = s;
    while (is_word(*s)) s++;
    *p = s;
    *n = s - first;
    return *n > 0 ? first : NULL;
}

static inline const char *next_line(const char *p, const char *end) {
    const char *lf = memchr(p, '\n', (size_t)(end - p));
    return lf ? lf + 1 : end;
}

/* At the first word of an edge; NULL: the line is blank or a comment. */
static inline const char *edge_of_line(const char *p) {
    while (is_blank(*p)) p++;
    return *p == '\n' || *p == '#' || *p == '%' ? NULL : p;
}

static bool is_heading(const char *word, i64 n, const char *const *heads) {
    for (; *heads; heads++)
        if ((i64)strlen(*heads) == n && strncasecmp(word, *heads, (size_t)n) == 0) return true;
    return false;
}

i32 edge_columns(const char **p, const char *end, i64 *lines) {
    static const char *const from[] = {"from", "source", "src", "fromnodeid", NULL};
    static const char *const to[] = {"to", "target", "dst", "destination", "tonodeid", NULL};
    i64 line = 0;
    *lines = 0;
    for (const char *s = *p; s < end; s = next_line(s, end)) {
        const char *at = edge_of_line(s), *word[2] = {NULL, NULL};
        i64 n[2] = {0, 0}, k;
        i32 columns = 0;
        line++;
        if (!at) continue;
        for (const char *w = edge_word(&at, &k); w; w = edge_word(&at, &k), columns++)
            if (columns < 2) word[columns] = w, n[columns] = k;
        if (columns >= 2 && is_heading(word[0], n[0], from) && is_heading(word[1], n[1], to)) {
            *p = next_line(s, end);
            *lines = line;
        }
        return columns;
    }
    return 0;
}

void edge_chunk_count(struct edge_chunk *c) {
    c->lines = c->edges = 0;
    for (const char *p = c->p; p < c->end; p = next_line(p, c->end)) {
        c->edges += edge_of_line(p) != NULL;
        c->lines++;
    }
}

/* ------------------------------------------------------------------ errors -------------------------------------------------- */

static err failed(const struct edge_text *t, i64 line, i32 column, enum err_code code, const char *fix, const char *text) {
    char where[256];
    if (column) snprintf(where, sizeof where, "%.200s:%lld:%d", t->name, (long long)line, column);
    else snprintf(where, sizeof where, "%.200s:%lld", t->name, (long long)line);
    return FAIL_AT(code, where, fix, "%s", text);
}

static err bad_columns(const struct edge_text *t, i64 line, i32 n) {
    char text[160];
    if (n == 1) snprintf(text, sizeof text, "an edge needs two nodes, this line has one word");
    else snprintf(text, sizeof text, "this line has %d columns, the first edge has %d", n, t->columns);
    return failed(t, line, 0, E203, "two columns, FROM and TO, and a third one with the weights where edges have some", text);
}

static err bad_weight(const struct edge_text *t, i64 line, const char *word, i64 n, const char *why) {
    char text[160], column[96];
    snprintf(text, sizeof text, "the weight \"%.*s\" %s", (int)lmin(n, 40), word, why);
    snprintf(column, sizeof column, "a number of at least 0   or   two columns alone: cut -f 1,2");
    return failed(t, line, 3, E204, column, text);
}

static err unknown_node(const struct edge_text *t, i64 line, i32 column, const char *word, i64 n) {
    char text[300];
    snprintf(text, sizeof text, "the node \"%.*s\" is not in the node list %.120s", (int)lmin(n, 80), word, t->list_name);
    return failed(t, line, column, E103, "no --node-list   or   a line for this node in it", text);
}

/* ------------------------------------------------------------------ parsing ------------------------------------------------- */

/* An integer below 2^32 as it would be printed: no sign, no zero in front. */
static inline bool number(const char **p, u32 *out) {
    const char *s = *p;
    u64 v = 0;
    i32 n = 0;
    for (; (u8)(*s - '0') < 10 && n < 11; s++, n++) v = v * 10 + (u64)(*s - '0');
    if (n == 0 || is_word(*s) || v > UINT32_MAX || (n > 1 && **p == '0')) return false;
    *p = s;
    *out = (u32)v;
    return true;
}

static err node(const struct edge_text *t, struct edge_chunk *c, const char *word, i64 n, i32 column, i64 line, u32 *out) {
    i32 code;
    if (n > NAME_MOST) return failed(t, line, column, E202, "a list of edges, one a line", "this name has more than 4096 bytes");
    if (memchr(word, 0, (size_t)n)) return failed(t, line, column, E202, "a list of edges as text", "there is a zero byte here");
    if (t->names == EDGES_WORDS) TRY(vocab_code(&c->words, word, n, &code));
    else if ((code = vocab_find(t->list, word, n)) < 0) return unknown_node(t, line, column, word, n);
    *out = (u32)code;
    return 0;
}

static err weight(const struct edge_text *t, const char *word, i64 n, i64 line, f64 *out) {
    const char *const end = number_read(word, word + n, '.', out);
    if (end != word + n && !str_to_f64(word, (size_t)n, '.', out)) return bad_weight(t, line, word, n, "is not a number");
    if (!isfinite(*out)) return bad_weight(t, line, word, n, "is not finite");
    return *out < 0 ? bad_weight(t, line, word, n, "is negative") : 0;
}

/* Words of a line that is not two integers and its end. */
static err general_line(const struct edge_text *t, struct edge_chunk *c, const char *p, i64 line, i64 e) {
    const char *word[3];
    i64 n[3], k;
    i32 columns = 0;
    for (const char *w = edge_word(&p, &k); w; w = edge_word(&p, &k), columns++)
        if (columns < 3) word[columns] = w, n[columns] = k;
    if (columns != t->columns || columns < 2 || columns > 3) return bad_columns(t, line, columns);
    if (t->names == EDGES_NUMBERS) {
        const char *a = word[0], *b = word[1];
        c->other = c->other || !number(&a, &t->from[e]) || !number(&b, &t->to[e]);
    } else {
        TRY(node(t, c, word[0], n[0], 1, line, &t->from[e]));
        TRY(node(t, c, word[1], n[1], 2, line, &t->to[e]));
    }
    return columns == 3 ? weight(t, word[2], n[2], line, &t->weight[e]) : 0;
}

/* "12 34\n" in one go; returns the end of the line, NULL = any other line. */
static inline const char *plain_line(const char *p, u32 *from, u32 *to) {
    if (!number(&p, from) || !is_blank(*p)) return NULL;
    while (is_blank(*p)) p++;
    if (!number(&p, to)) return NULL;
    if (*p == '\r') p++;
    return *p == '\n' ? p + 1 : NULL;
}

err edge_chunk_parse(const struct edge_text *t, struct edge_chunk *c) {
    const bool plain = t->names == EDGES_NUMBERS && t->columns == 2;
    i64 line = c->line0, e = c->edge0;
    u32 most = 0;
    c->other = false;
    for (const char *p = c->p, *next; p < c->end && !c->other; p = next) {
        line++;
        const char *const at = edge_of_line(p);
        next = at && plain ? plain_line(at, &t->from[e], &t->to[e]) : NULL;
        if (!next) {
            next = next_line(p, c->end);
            if (!at) continue;
            TRY(general_line(t, c, at, line, e));
        }
        most = t->from[e] > most ? t->from[e] : most;
        most = t->to[e] > most ? t->to[e] : most;
        e++;
    }
    c->most = most;
    return 0;
}
