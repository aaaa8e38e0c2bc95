/* csv_sniff.c - infers the dialect of a text table from its first MiB: separator, decimal mark, header, kind of every field. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "data/csv.h"
#include "data/names.h"

enum { SAMPLE_ROWS = 1000, SAMPLE_CELLS = 200000, SEP_ROWS = 200 };

/* The separator for which most records have the same number of fields as the first, and more than one. */
static char find_sep(const char *p, const char *end, bool cut) {
    static const char candidates[] = "\t;|,";
    char best = ',';
    i64 most = 0;
    for (const char *sep = candidates; *sep; sep++) {
        i32 first = 0, n;
        i64 agree = 0;
        const char *q = p;
        for (i32 row = 0; row < SEP_ROWS && q < end; row++) {
            if (csv_blank_at(q, end)) {
                q += 1 + (*q == '\r');
                continue;
            }
            q = csv_count_fields(q, end, *sep, &n);
            if (cut && q == end) break;
            if (!first) first = n;
            agree += n == first && n > 1;
        }
        if (agree > most) most = agree, best = *sep;
    }
    return best;
}

static bool is_time(const char *s, i32 n) {
    bool unused;
    return n > 0 && time_guess(&s, &n, 1, false, &unused) != TIME_NONE;
}

/* Splits the head into cells; limits the rows, so that wide tables stay cheap. */
static err take_sample(struct csv *c, struct csv_sample *s) {
    char *p = s->text, *end = s->text + s->size;
    while (p < end && csv_blank_at(p, end)) p += 1 + (*p == '\r');
    if (p == end) return FAIL_AT(E201, c->src.name, NULL, "the file is empty");
    csv_count_fields(p, end, c->sep, &s->nfield);
    if (s->nfield > CSV_FIELDS_MAX)
        return FAIL_AT(E202, c->src.name, NULL, "the first line has %d fields: this is no text table", s->nfield);
    i32 most = imin(SAMPLE_ROWS, SAMPLE_CELLS / s->nfield + 2);
    ARENA_NEW(&s->memory, s->cell, (i64)most * s->nfield);
    ARENA_NEW(&s->memory, s->len, (i64)most * s->nfield);
    while (p < end && s->rows < most) {
        if (csv_blank_at(p, end)) {
            p += 1 + (*p == '\r');
            continue;
        }
        i32 n;
        char **cell = csv_cells(s, s->rows);
        char *next = csv_split_record(p, end, c->sep, cell, csv_lens(s, s->rows), s->nfield, &n);
        if (next == end && s->cut) {
            if (s->rows == 0)
                return FAIL_AT(E202, c->src.name, NULL, "no line ends within the first %lld bytes: this is no text table",
                               (long long)s->size);
            break;
        }
        for (i32 f = n; f < s->nfield; f++) cell[f] = end; /* short row: empty cells, reported later */
        s->rows++;
        p = next;
    }
    return 0;
}

/* Field names: from the header, else numbers from 1. */
static err name_fields(struct csv *c, const struct csv_sample *s, bool header) {
    ARENA_NEW(&c->t->names, c->name, s->nfield);
    for (i32 f = 0; f < s->nfield; f++) {
        char text[300];
        i32 n = header ? imin(csv_lens(s, 0)[f], 255) : 0;
        if (n > 0) csv_clean(text, sizeof text, csv_cells(s, 0)[f], n); /* names must be typeable, so no line feeds */
        else snprintf(text, sizeof text, header ? "column%d" : "%d", f + 1);
        TRY(name_new(&c->index, &c->t->names, f, text, &c->name[f]));
    }
    return 0;
}

/* Collects the present cells of a field in the sample. */
static i32 field_cells(const struct csv *c, const struct csv_sample *s, i32 f, bool header, const char **cell, i32 *len) {
    i32 n = 0;
    for (i32 r = header; r < s->rows; r++) {
        cell[n] = csv_cells(s, r)[f];
        len[n] = csv_lens(s, r)[f];
        n += !csv_is_missing(c, cell[n], len[n]);
    }
    return n;
}

/* Line of the present cell k of a field, where no cell goes over lines. */
static i64 cell_line(const struct csv *c, const struct csv_sample *s, i32 f, i32 k) {
    const bool header = c->t->has_header;
    i32 r = header;
    for (; r < s->rows - 1; r++)
        if (!csv_is_missing(c, csv_cells(s, r)[f], csv_lens(s, r)[f]) && k-- == 0) break;
    return c->data_line + r - header;
}

static err ambiguous_time(const struct csv *c, i32 f, const char **cell, const i32 *len, i32 n) {
    char where[256], text[60], fix[TIME_ADVICE];
    csv_where(c, c->data_line, f + 1, where);
    csv_clean(text, sizeof text, cell[0], len[0]);
    time_advice(cell, len, n, fix);
    return FAIL_AT(E205, where, fix,
                   "\"%s\" in time column \"%s\": day or month first? No row settles it", text, c->name[f]);
}

/* Error for the unreadable time at cell `bad` of n present ones; n may be 0. */
static err unknown_time(const struct csv *c, i32 f, const char **cell, const i32 *len, i32 n, i32 bad) {
    static const char row[] = "--time-format row   (rows are the time)";
    char where[256], text[60], known[TIME_ADVICE], fix[TIME_ADVICE + 80];
    csv_where(c, c->data_line + bad, f + 1, where);
    csv_clean(text, sizeof text, n ? cell[bad] : "", n ? len[bad] : 0);
    const bool told = time_advice(cell, len, n, known) > 0;
    snprintf(fix, sizeof fix, "%s   or   %s", told ? known : row,
             told ? row : "--time-format '%Y-%m-%d %H:%M'   (spelt like the cells)");
    return FAIL_AT(E205, where, fix, "\"%s\" in time column \"%s\" is not in a known date or time format", text, c->name[f]);
}

static struct time_parser custom_time(const struct csv *c) {
    return (struct time_parser){.kind = TIME_CUSTOM, .format = c->o->time_format};
}

/* Types a column that the user named as (part of) the time. */
static err type_time(struct csv *c, i32 f, const char **cell, i32 *len, i32 n, bool alone) {
    struct csv_field *field = &c->field[f];
    bool ambiguous;
    field->kind = FIELD_TIME;
    i32 numbers = 0;
    while (numbers < n && csv_is_number(c, cell[numbers], len[numbers])) numbers++;
    if (!alone && numbers == n) {
        field->kind = FIELD_NUMBER; /* year, month, day, hour: combined by series_build */
        return 0;
    }
    if (c->o->time_format) {
        field->time = custom_time(c);
        return 0;
    }
    field->time.kind = time_guess(cell, len, n, alone, &ambiguous);
    if (field->time.kind != TIME_NONE && !ambiguous) return 0;
    if (ambiguous) return ambiguous_time(c, f, cell, len, n);
    i32 bad = 0; /* the first cell that is not a time, else the first cell */
    while (bad < n && is_time(cell[bad], len[bad])) bad++;
    return unknown_time(c, f, cell, len, n, bad == n ? 0 : bad);
}

/* With --time-format but no --time: the first column in that format. */
static bool is_custom(const struct csv *c, const char **cell, const i32 *len, i32 n, bool numbers) {
    const struct time_parser p = custom_time(c);
    const i32 times = time_count(&p, cell, len, n);
    return n > 0 && (numbers ? times == n : 3 * times >= 2 * n);
}

/* How much cells look like times: 4 a known form, 3 a layout reads them, 2 numbers of a known form, 1 other texts, 0 numbers. */
static i32 like_times(const struct csv *c, const char **cell, const i32 *len, i32 n, bool *ambiguous) {
    char unused[TIME_ADVICE];
    i32 numbers = 0;
    for (i32 i = 0; i < n; i++) numbers += csv_is_number(c, cell[i], len[i]);
    if (2 * numbers > n) return time_guess(cell, len, n, true, ambiguous) != TIME_NONE ? 2 : 0;
    if (time_guess_most(cell, len, n, ambiguous) != TIME_NONE) return 4;
    return time_advice(cell, len, n, unused) > 0 ? 3 : 1;
}

/* Refuses a --time-format that no column has: names the first cell of the column that looks most like a time. */
static err unused_layout(const struct csv *c, const struct csv_sample *s, bool header, const char **cell, i32 *len) {
    char where[256], text[60], fix[TIME_ADVICE];
    i32 best = -1, most = -1;
    bool ambiguous = false, either = false;
    for (i32 f = 0; f < c->nfield && most < 4; f++) {
        if (c->field[f].kind == FIELD_SKIP) continue;
        const i32 n = field_cells(c, s, f, header, cell, len), like = n > 0 ? like_times(c, cell, len, n, &ambiguous) : -1;
        if (like > most) most = like, best = f, either = ambiguous;
    }
    if (best < 0) return 0;
    const i32 n = field_cells(c, s, best, header, cell, len);
    const struct time_parser p = custom_time(c);
    i64 unused;
    i32 bad = 0;
    while (bad < n - 1 && time_parse(&p, cell[bad], (size_t)len[bad], &unused)) bad++;
    csv_where(c, cell_line(c, s, best, bad), best + 1, where);
    csv_clean(text, sizeof text, cell[bad], len[bad]);
    if (most % 2 == 0 && most > 0 && !either) snprintf(fix, sizeof fix, "--time-format auto");
    else if (most < 3 || time_advice(cell, len, n, fix) == 0)
        snprintf(fix, sizeof fix, "--time-format row   (rows are the time)   or   --time-format auto");
    return FAIL_AT(E205, where, fix, "\"%s\" in column \"%s\" does not fit --time-format '%s', nor does any other column", text,
                   c->name[best], c->o->time_format);
}

static err type_field(struct csv *c, const struct csv_sample *s, i32 f, bool header, bool *have_time, const char **cell,
                      i32 *len) {
    struct csv_field *field = &c->field[f];
    const struct read_options *o = c->o;
    bool by_row = o->time_format && !strcmp(o->time_format, "row");
    i32 n = field_cells(c, s, f, header, cell, len), numbers = 0;
    if (field->kind == FIELD_TIME && !by_row) /* marked by mark_fields */
        return type_time(c, f, cell, len, n, !strchr(o->time, ','));
    if (field->kind == FIELD_TEXT) return 0;
    field->kind = FIELD_NUMBER;
    for (i32 i = 0; i < n; i++) numbers += csv_is_number(c, cell[i], len[i]);
    const bool look = !(o->time && *o->time) && !by_row && !*have_time;
    if (look && o->time_format && is_custom(c, cell, len, n, 2 * numbers > n)) {
        *field = (struct csv_field){.kind = FIELD_TIME, .time = custom_time(c)};
        *have_time = true;
        return 0;
    }
    const enum csv_spaced spaced = 2 * numbers > n ? csv_spaced(cell, len, n) : SPACED_NUMBER;
    field->either = spaced == SPACED_EITHER;
    if (spaced == SPACED_CODE) field->kind = FIELD_TEXT;
    if (n == 0 || 2 * numbers > n) return 0;
    bool ambiguous = false;
    enum time_kind kind = look && (!o->time_format || o->guess_time) ? time_guess_most(cell, len, n, &ambiguous) : TIME_NONE;
    if (ambiguous) return ambiguous_time(c, f, cell, len, n);
    field->kind = kind == TIME_NONE || kind == TIME_CLOCK ? FIELD_TEXT : FIELD_TIME;
    field->time.kind = kind;
    if (field->kind == FIELD_TIME) *have_time = true;
    return 0;
}

/* Marks the fields that the user assigned: ignored, category, time. */
static err mark_fields(struct csv *c) {
    const struct {
        const char *list, *flag;
        enum csv_kind kind;
    } lists[] = {{c->o->cat, "--cat", FIELD_TEXT},
                 {c->o->id, "--id", FIELD_TEXT},
                 {c->o->time, "--time", FIELD_TIME},
                 {c->o->ignore, "--ignore", FIELD_SKIP}};
    for (i32 f = 0; f < c->nfield; f++) c->field[f].kind = FIELD_NUMBER;
    for (size_t i = 0; i < COUNT(lists); i++) {
        const char *list = lists[i].list;
        char name[256];
        while (name_next(&list, name)) {
            i32 f = vocab_find(&c->index, name, (i64)strlen(name));
            if (f < 0) TRY(name_need(c->src.name, c->name, c->nfield, name, lists[i].flag, &f));
            c->field[f].kind = lists[i].kind;
        }
    }
    return 0;
}

/* Finds the start of the data: after blank lines and the header. */
static void skip_header(struct csv *c, const char *head, i64 n, bool header) {
    const char *p = head, *end = head + n;
    i64 line = 1;
    while (p < end && csv_blank_at(p, end)) {
        p += 1 + (*p == '\r');
        line++;
    }
    if (header) {
        i32 unused;
        const char *next = csv_count_fields(p, end, c->sep, &unused);
        for (; p < next; p++) line += *p == '\n';
    }
    c->data_from += p - head;
    c->data_line = line;
}

/* Keeps cells that the parser reads, spread over the sample. */
static err keep_seen(struct csv *c, struct csv_field *field, const char **cell, const i32 *len, i32 n) {
    i64 t;
    ARENA_NEW(&c->memory, field->seen, CSV_SEEN);
    for (i32 i = 0, k = 0; i < n && k < CSV_SEEN; i += imax(1, n / CSV_SEEN)) {
        i32 zone;
        if (!time_parse(&field->time, cell[i], (size_t)len[i], &t)) continue;
        field->zoned |= time_offset(&field->time, cell[i], len[i], &zone);
        char *text;
        ARENA_NEW(&c->memory, text, len[i] + 1);
        memcpy(text, cell[i], (size_t)len[i]);
        field->seen[k++] = text;
    }
    return 0;
}

/* Separator and header are known: names, and where the data begin. */
static err sniff_names(struct csv *c, struct csv_sample *s, const char *head) {
    TRY(take_sample(c, s));
    c->nfield = s->nfield;
    TRY(csv_find_mark(c, s->cell, s->len, s->rows, s->nfield));
    TRY(csv_find_header(c, s, &c->t->has_header));
    TRY(name_fields(c, s, c->t->has_header));
    skip_header(c, head, s->size, c->t->has_header);
    return 0;
}

static err sniff_fields(struct csv *c, struct csv_sample *s) {
    const bool header = c->t->has_header;
    bool have_time = false;
    if (header && s->rows == 1 && !s->cut) return FAIL_AT(E201, c->src.name, NULL, "the file holds a header only, no rows");
    c->t->sep = c->sep;
    c->t->decimal = c->mark;
    ARENA_NEW(&c->memory, c->field, c->nfield);
    TRY(mark_fields(c));
    const char **cell;
    i32 *len;
    ARENA_NEW(&s->memory, cell, s->rows + 1);
    ARENA_NEW(&s->memory, len, s->rows + 1);
    for (i32 f = 0; f < c->nfield; f++) {
        struct csv_field *field = &c->field[f];
        if (field->kind != FIELD_SKIP) TRY(type_field(c, s, f, header, &have_time, cell, len));
        if (field->kind != FIELD_TIME) continue;
        const i32 n = field_cells(c, s, f, header, cell, len);
        field->order = (i32)time_order(field->time.kind, cell, len, n);
        TRY(keep_seen(c, field, cell, len, n));
    }
    const char *layout = c->o->time_format;
    if (layout && !c->o->guess_time && strcmp(layout, "row") != 0 && !have_time && !(c->o->time && *c->o->time))
        TRY(unused_layout(c, s, header, cell, len));
    return csv_doubt(c, s->cell, s->len);
}

/* Validates the encoding of the head, for the column names; cells are validated when parsed. */
static err is_utf8(const struct csv *c, const char *head, i64 n) {
    struct csv_chunk k = {.from = 0, .bad_byte = -1};
    while (n < c->src.size && n > 0 && head[n - 1] != '\n') n--; /* not within a character */
    csv_check_text(&k, head, n);
    return k.bad_byte >= 0 ? csv_fail_text(c, &k, head, 1) : 0;
}

static err sniff(struct csv *c, struct csv_buffer *b, struct csv_sample *s, bool fields) {
    char *head;
    const i64 n = lmin(c->src.size, CSV_HEAD);
    TRY(csv_read(&c->src, b, 0, n, &head));
    TRY(csv_fail_first_bytes(c, head, n));
    TRY(is_utf8(c, head, n));
    if (n >= 3 && !memcmp(head, "\xEF\xBB\xBF", 3)) c->data_from = 3; /* byte order mark */
    TRY(missing_add(&c->na, &c->t->names, c->o->na));
    TRY(missing_add(&c->na, &c->t->names, c->o->more_na));
    head += c->data_from;
    s->size = n - c->data_from;
    s->cut = n < c->src.size;
    c->sep = c->o->sep ? c->o->sep : find_sep(head, head + s->size, s->cut);
    if (c->o->rows) {
        TRY(csv_turn(c));
        s->size = lmin(c->src.size, CSV_HEAD);
        s->cut = s->size < c->src.size;
        head = c->src.mem;
    }
    ARENA_NEW(&s->memory, s->text, s->size + 1);
    memcpy(s->text, head, (size_t)s->size);
    TRY(sniff_names(c, s, head));
    return fields ? sniff_fields(c, s) : 0;
}

static err sniff_head(struct csv *c, bool fields) {
    struct csv_buffer b = {0};
    struct csv_sample s = {.rows = 0};
    const err e = sniff(c, &b, &s, fields);
    arena_free(&s.memory);
    csv_buffer_free(&b);
    return e;
}

err csv_sniff(struct csv *c) { return sniff_head(c, true); }

err csv_sniff_names(struct csv *c) { return sniff_head(c, false); }
