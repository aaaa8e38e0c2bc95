/* csv_folder.c - opens the text tables of a folder as one text (csv_parts.c).
 *
 * The first file tells separator and header.  A file with another header is refused with the place of the first difference; the
 * others lose theirs. */
#include <string.h>

#include "base/mem.h"
#include "data/csv.h"
#include "data/folder.h"

enum { PIECE = 1 << 16 };

const char *const csv_endings[] = {".csv", ".csv.gz", ".csv.zst", ".tsv",  ".tsv.gz", ".tsv.zst",
                                   ".txt", ".txt.gz", ".txt.zst", "part-", NULL};

/* Opens the files and leaves out those without a byte. */
static err open_files(struct csv *c) {
    struct csv_source *s = &c->src;
    const char **file;
    i32 n;
    TRY(folder_list(&c->memory, s->path, csv_endings, &file, &n));
    ARENA_NEW(&c->memory, s->part, n);
    for (i32 k = 0; k < n; k++) {
        struct csv_source *one = &s->part[s->npart].src;
        *one = (struct csv_source){.path = file[k], .name = file[k], .file.fd = -1};
        s->npart++;
        TRY(csv_open(one));
        file_close(&one->file);
        if (one->size > 0) continue;
        mem_free(one->mem);
        s->npart--;
    }
    return s->npart ? 0 : FAIL_AT(E201, s->name, NULL, "the files of the folder are empty");
}

/* The place of each file in the text. */
static err lay_out(struct csv *c) {
    c->src.size = 0;
    for (i32 k = 0; k < c->src.npart; k++) {
        struct csv_part *p = &c->src.part[k];
        char last = '\n', mark[3];
        if (k > 0 && p->from == 0 && p->src.size >= 3) {
            TRY(csv_read_part(&p->src, 0, 3, mark));
            p->from = memcmp(mark, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0; /* byte order mark */
        }
        p->at = c->src.size;
        p->size = p->src.size - p->from;
        if (p->size > 0) TRY(csv_read_part(&p->src, p->src.size - 1, 1, &last));
        p->size += last != '\n';
        c->src.size += p->size;
    }
    return 0;
}

/* What the first file tells: separator, header. */
static err sniff_first(struct csv *c, struct read_options *own, struct table *t) {
    struct csv_part *part = c->src.part;
    struct csv first = {.o = own, .t = t, .src = {.name = part->src.name, .size = part->size, .part = part, .npart = 1}};
    const err e = csv_sniff_names(&first);
    own->sep = first.sep;
    own->header = t->has_header;
    vocab_free(&first.index);
    arena_free(&first.memory);
    return e;
}

/* A file and its first record. */
struct head {
    char *text;
    i64 size; /* of the text */
    char **cell;
    i32 *len;
    i32 n;
    i64 after; /* first byte after the record, in the file */
    i64 lines; /* up to there */
};

static err read_head(struct csv *c, const struct csv_source *s, char sep, i32 most, struct head *h) {
    i64 n = lmin(s->size, PIECE);
    ARENA_NEW(&c->memory, h->cell, most + 1);
    ARENA_NEW(&c->memory, h->len, most + 1);
    for (;; n = lmin(s->size, n * 16)) {
        mem_free(h->text);
        NEW(h->text, n + 1);
        TRY(csv_read_part(s, 0, n, h->text));
        char *p = h->text, *const end = p + n;
        if (n >= 3 && memcmp(p, "\xEF\xBB\xBF", 3) == 0) p += 3;
        while (p < end && csv_blank_at(p, end)) p += 1 + (*p == '\r');
        i32 fields;
        const char *next = p < end ? csv_count_fields(p, end, sep, &fields) : end;
        if (next == end && n < s->size && n < CSV_LINE_MAX) continue; /* the record may go on */
        h->after = next - h->text;
        for (const char *q = h->text; q < next; q++) h->lines += *q == '\n';
        if (p < end) csv_split_record(p, end, sep, h->cell, h->len, most + 1, &h->n);
        return 0;
    }
}

static bool same_cell(const struct head *a, const struct head *b, i32 f) {
    return a->len[f] == b->len[f] && memcmp(a->cell[f], b->cell[f], (size_t)a->len[f]) == 0;
}

/* The header of a file against that of the first. */
static err agree(const struct csv *c, const struct csv_source *s, const struct head *first, const struct head *h) {
    static const char fix[] = "the same header in every file   or   one file of them all   (when only the first has a header)";
    const char *other = c->src.part[0].src.name;
    char where[256], is[80], was[80];
    i32 f = 0;
    while (f < first->n && f < h->n && same_cell(first, h, f)) f++;
    if (f == first->n && f == h->n) return 0;
    file_where(s->name, lmax(h->lines, 1), f + 1, where);
    if (f == first->n || f == h->n)
        return FAIL_AT(E202, where, fix, "the header has %d column%s, that of %s has %d", h->n, h->n == 1 ? "" : "s", other,
                       first->n);
    csv_clean(is, sizeof is, h->cell[f], h->len[f]);
    csv_clean(was, sizeof was, first->cell[f], first->len[f]);
    return FAIL_AT(E202, where, fix, "column %d of the header is \"%s\" here and \"%s\" in %s", f + 1, is, was, other);
}

static err skip_headers(struct csv *c, char sep) {
    struct head first = {0};
    const i32 most = CSV_FIELDS_MAX / 64;
    err e = read_head(c, &c->src.part[0].src, sep, most, &first);
    for (i32 k = 1; k < c->src.npart && e >= 0; k++) {
        struct csv_part *p = &c->src.part[k];
        struct head h = {0};
        e = read_head(c, &p->src, sep, most, &h);
        if (e >= 0) e = agree(c, &p->src, &first, &h);
        p->from = h.after;
        p->lines = h.lines;
        mem_free(h.text);
    }
    mem_free(first.text);
    return e;
}

err csv_open_parts(struct csv *c, struct read_options *own) {
    struct table *t;
    if (own->rows)
        return FAIL_AT(E106, "--orient", "a column for each series", "--orient rows reads one file, and %s is a folder",
                       c->src.name);
    TRY(open_files(c));
    TRY(lay_out(c));
    NEW(t, 1);
    err e = sniff_first(c, own, t);
    table_free(t);
    if (e >= 0 && own->header) e = skip_headers(c, own->sep);
    return e < 0 ? e : lay_out(c);
}
