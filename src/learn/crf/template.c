/* template.c - reads CRF++ templates; see template.h. */
#include "learn/crf/template.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "data/first_bytes.h"
#include "data/table.h"

struct place {
    const char *name;
    i32 line, ncolumn;
};

static err wrong(const struct place *p, const char *fix, const char *text) {
    char where[256];
    file_where(p->name, p->line, 0, where);
    return FAIL_AT(E103, where, fix, "%s", text);
}

/* Reads a number and the character after it. */
static const char *number(const char *at, const char *end, char after, i32 *out) {
    const char *from = at;
    i64 v;
    while (at < end && *at != after && at - from < 12) at++;
    if (at == end || *at != after || !str_to_i64(from, (size_t)(at - from), &v) || v < -INT32_MAX || v > INT32_MAX) return NULL;
    *out = (i32)v;
    return at + 1;
}

static err macro(const struct place *p, const char **at, const char *end, struct template_macro *m) {
    const char *q = number(*at + 3, end, ',', &m->row);
    char text[160];
    if (q) q = number(q, end, ']', &m->column);
    if (!q) return wrong(p, "%x[-1,0]", "a macro has the form %x[row,column]");
    if (m->row < -TEMPLATE_REACH || m->row > TEMPLATE_REACH)
        return wrong(p, "%x[-1,0]", "a macro reaches at most 1000 lines back or on");
    if (m->column < 0 || m->column >= p->ncolumn) {
        snprintf(text, sizeof text, "%%x[%d,%d] asks for column %d, the data have the input columns 0 to %d", m->row, m->column,
                 m->column, p->ncolumn - 1);
        return wrong(p, "a column that the data have, counted from 0 without the tag", text);
    }
    *at = q;
    return 0;
}

static err unigram(const struct place *p, const char *at, const char *end, struct template_line *out) {
    const char *text = at;
    *out = (struct template_line){0};
    while (at < end) {
        if (end - at < 3 || memcmp(at, "%x[", 3) != 0) {
            at++;
            continue;
        }
        if (out->n == TEMPLATE_MACROS) return wrong(p, "two lines", "a template has at most 16 macros");
        struct template_macro *m = &out->macro[out->n++];
        m->text = text;
        m->length = (i32)(at - text);
        TRY(macro(p, &at, end, m));
        text = at;
    }
    out->tail = text;
    out->tail_length = (i32)(end - text);
    return 0;
}

static err line(const struct place *p, const char *at, const char *end, struct templates *t) {
    while (end > at && (end[-1] == '\r' || end[-1] == ' ' || end[-1] == '\t')) end--;
    if (at == end || *at == '#') return 0;
    if (*at == 'B') {
        if (memchr(at, '%', (size_t)(end - at))) return wrong(p, "B", "only the template B without macros is supported");
        t->bigram = true;
        return 0;
    }
    if (*at != 'U') return wrong(p, "U00:%x[0,0]", "a template begins with U or B");
    if (t->n == TEMPLATE_LINES) return wrong(p, "fewer lines", "there are more than 4096 templates");
    return unigram(p, at, end, &t->line[t->n++]);
}

static i32 count_lines(const char *text) {
    i32 n = 1;
    for (; *text; text++) n += *text == '\n';
    return n;
}

static err parse(struct templates *t, const char *name, i32 ncolumn) {
    struct place p = {name, 0, ncolumn};
    const char *at = t->text;
    NEW(t->line, imin(TEMPLATE_LINES, count_lines(t->text)));
    while (*at) {
        const char *end = at + strcspn(at, "\n");
        p.line++;
        TRY(line(&p, at, end, t));
        at = *end ? end + 1 : end;
    }
    return t->n > 0 ? 0 : wrong(&p, "U00:%x[0,0]", "the file has no template that begins with U");
}

err templates_parse(char *text, const char *name, i32 ncolumn, struct templates *out) {
    *out = (struct templates){.text = text};
    const err e = parse(out, name, ncolumn);
    if (e < 0) templates_free(out);
    return e;
}

/* Words at -2 .. 2 with pairs; two lines on, columns beside the words also in triples: the template of the CoNLL-2000 task. */
static void built_in(struct str *b, i32 ncolumn) {
    i32 id = 0;
    for (i32 c = 0; c < ncolumn; c++) {
        for (i32 r = -2; r <= 2; r++) str_addf(b, "U%02d:%%x[%d,%d]\n", id++, r, c);
        for (i32 r = c == 0 ? -1 : -2; r <= (c == 0 ? 0 : 1); r++)
            str_addf(b, "U%02d:%%x[%d,%d]/%%x[%d,%d]\n", id++, r, c, r + 1, c);
        for (i32 r = -2; c > 0 && r <= 0; r++)
            str_addf(b, "U%02d:%%x[%d,%d]/%%x[%d,%d]/%%x[%d,%d]\n", id++, r, c, r + 1, c, r + 2, c);
    }
    str_add(b, "B\n");
}

err templates_load(const char *path, i32 ncolumn, struct templates *out) {
    struct str b = {0};
    char *text;
    i64 n;
    *out = (struct templates){0};
    if (path && *path) {
        TRY(file_load(path, 1 << 24, &text, &n));
        const err e = first_bytes_check(path, text, n, "a list of templates", "write the data as text");
        if (e < 0) mem_free(text);
        TRY(e);
        const char *slash = strrchr(path, '/');
        return templates_parse(text, slash ? slash + 1 : path, ncolumn, out);
    }
    built_in(&b, ncolumn);
    if (str_ok(&b) < 0) {
        str_free(&b);
        return -E601;
    }
    text = mem_strdup(b.s);
    str_free(&b);
    return text ? templates_parse(text, "built-in template", ncolumn, out) : -E601;
}

void templates_free(struct templates *t) {
    mem_free(t->text);
    mem_free(t->line);
    *t = (struct templates){0};
}
