/* ts.c - the reader of .ts files, the sequences of sktime and of the UEA and UCR archives, as a table in long form.
 *
 *     @problemName Motions          -->  sequence  channel1  channel2  class
 *     @dimensions 2                      1         0.1       5         run
 *     @classLabel true run walk          1         0.2       6         run
 *     @data                              2         0.3       8         walk
 *     0.1,0.2:5,6:run
 *     0.3:8:walk                   a line is a sequence: channels between colons, ? is missing, the label is last
 *
 * Lines that begin with # are comments.  Columns: the number of the sequence, its channels, "class" (@classLabel) or "target"
 * (@targetLabel); table.id and table.target name the first and the last. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/input.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/zfile.h"
#include "data/folder.h"
#include "data/reader.h"

enum { HEAD = 1 << 16, CHANNELS_MAX = 1 << 16, CLASSES_MAX = 1 << 20 };
enum ts_label { TS_BARE, TS_CLASS, TS_NUMBER };

struct ts {
    struct table *t;
    i64 line;     /* of the file, from 1 */
    i32 nchannel; /* 0 = not known yet */
    i32 declared; /* by @dimensions; 0 = not */
    enum ts_label label;
    struct vocab words; /* of the labels: those that the header names come first */
    bool listed;        /* the header names all */
    i64 nsequence, row_cap, sequence_cap, label_cap;
    i64 *cap;    /* [nchannel] of the numbers */
    f64 *number; /* [rows] labels that are numbers */
    i32 *sequence, *class;
};

/* ------------------------------------------------------------------ messages ------------------------------------------------ */

static err bad(const struct ts *f, i32 field, enum err_code code, const char *fix, const char *text) {
    char where[256];
    file_where(f->t->path, f->line, field, where);
    return FAIL_AT(code, where, fix, "%s", text);
}

/* ------------------------------------------------------------------ header -------------------------------------------------- */

/* The word at *p, ended by blanks; *n = 0 at the end of the line. */
static const char *word_at(const char **p, const char *end, i64 *n) {
    const char *s = *p;
    while (s < end && (*s == ' ' || *s == '\t')) s++;
    *p = s;
    while (*p < end && **p != ' ' && **p != '\t') ++*p;
    *n = *p - s;
    return s;
}

static bool is_word(const char *s, i64 n, const char *word) {
    return n == (i64)strlen(word) && strncasecmp(s, word, (size_t)n) == 0;
}

static err take_labels(struct ts *f, const char *p, const char *end, enum ts_label kind) {
    i64 n;
    const char *s = word_at(&p, end, &n);
    if (!is_word(s, n, "true")) return 0;
    f->label = kind;
    for (i32 code; kind == TS_CLASS && (s = word_at(&p, end, &n), n > 0);) {
        if (f->words.n == CLASSES_MAX) return bad(f, 0, E202, "fewer classes", "@classLabel names more than 1048576 classes");
        TRY(vocab_code(&f->words, s, n, &code));
        f->listed = true;
    }
    return 0;
}

static err take_header(struct ts *f, const char *p, const char *end, bool *data) {
    i64 n, value, m;
    const char *s = word_at(&p, end, &n);
    const char *at = p, *v = word_at(&at, end, &m);
    *data = is_word(s, n, "@data");
    if (is_word(s, n, "@timestamps") && is_word(v, m, "true"))
        return bad(f, 0, E202, "values at equal distances and @timeStamps false   or   a table with --id and --time",
                   "the values have time stamps, which the format .ts leaves to readers");
    if (is_word(s, n, "@univariate") && is_word(v, m, "true") && f->declared == 0) f->declared = 1;
    if (is_word(s, n, "@dimensions") || is_word(s, n, "@dimension")) {
        if (!str_to_i64(v, (size_t)m, &value) || value < 1 || value > CHANNELS_MAX)
            return bad(f, 0, E103, "@dimensions with the number of channels", "@dimensions is no number from 1 to 65536");
        f->declared = (i32)value;
    }
    if (is_word(s, n, "@classlabel")) return take_labels(f, p, end, TS_CLASS);
    return is_word(s, n, "@targetlabel") ? take_labels(f, p, end, TS_NUMBER) : 0;
}

/* ------------------------------------------------------------------ sequences ----------------------------------------------- */

/* Channels of a line; the label is not one. */
static i32 count_channels(const struct ts *f, const char *p, const char *end) {
    i32 n = 1;
    for (; p < end && n <= CHANNELS_MAX; p++) n += *p == ':';
    return n - (f->label != TS_BARE);
}

static err set_channels(struct ts *f, const char *p, const char *end) {
    f->nchannel = f->declared > 0 ? f->declared : count_channels(f, p, end);
    if (f->nchannel < 1) return bad(f, 0, E203, "values, a colon, the label", "the line holds a label and no values");
    if (f->nchannel > CHANNELS_MAX) return bad(f, 0, E203, "at most 65536 channels", "the line has more than 65536 channels");
    f->t->ncol = f->nchannel + 1 + (f->label != TS_BARE);
    NEW(f->t->col, f->t->ncol);
    NEW(f->cap, f->nchannel);
    return 0;
}

static err check_channels(const struct ts *f, const char *p, const char *end) {
    const i32 n = count_channels(f, p, end);
    char text[160];
    if (n == f->nchannel) return 0;
    snprintf(text, sizeof text, "the line has %d channel%s, %s %d", n, n == 1 ? "" : "s",
             f->declared > 0 ? "the header declares" : "the lines before it have", f->nchannel);
    return bad(f, 0, E203, "the same number of channels in every line, each ended by a colon", text);
}

static err take_value(const struct ts *f, i32 channel, const char *s, i64 n, f64 *out) {
    char text[160];
    *out = (f64)NAN;
    while (n > 0 && (*s == ' ' || *s == '\t')) s++, n--;
    while (n > 0 && (s[n - 1] == ' ' || s[n - 1] == '\t')) n--;
    if (n == 1 && *s == '?') return 0;
    if (n > 0 && *s == '(')
        return bad(f, channel + 1, E202, "values at equal distances   or   a table with --id and --time",
                   "a value has a time stamp, as (time,value)");
    if (n == 0 || !str_to_f64(s, (size_t)n, '.', out)) {
        snprintf(text, sizeof text, "\"%.*s\" is no number", (int)lmin(n, 60), s);
        return bad(f, channel + 1, E204, "a number, or ? for a missing value", text);
    }
    if (fabs(*out) > (f64)FLT_MAX)
        return bad(f, channel + 1, E208, "a number, or ? for a missing value", "the value is larger than 32 bits hold");
    return 0;
}

static err take_channel(struct ts *f, i32 c, const char *p, const char *end, i64 *steps) {
    const i64 row = f->t->nrow;
    i64 n = 0;
    char text[160];
    for (; p <= end; n++) {
        const char *comma = memchr(p, ',', (size_t)(end - p));
        if (!comma) comma = end;
        GROW(f->t->col[c + 1].number, row + n, f->cap[c]);
        TRY(take_value(f, c, p, comma - p, &f->t->col[c + 1].number[row + n]));
        f->t->col[c + 1].missing += isnan(f->t->col[c + 1].number[row + n]);
        p = comma + 1;
    }
    if (c == 0) *steps = n;
    if (n == *steps) return 0;
    snprintf(text, sizeof text, "channel %d has %lld values, the first has %lld", c + 1, (long long)n, (long long)*steps);
    return bad(f, c + 1, E203, "channels of equal length in a line, ? where one lacks values", text);
}

static err take_label(struct ts *f, const char *s, i64 n, i32 *class, f64 *number) {
    char text[200];
    const i32 known = f->words.n;
    while (n > 0 && (*s == ' ' || *s == '\t')) s++, n--;
    while (n > 0 && (s[n - 1] == ' ' || s[n - 1] == '\t')) n--;
    if (f->label == TS_NUMBER) return take_value(f, f->nchannel, s, n, number);
    *class = -1;
    if (n == 0 || (n == 1 && *s == '?')) return 0;
    TRY(vocab_code(&f->words, s, n, class));
    if (!f->listed || *class < known) return 0;
    snprintf(text, sizeof text, "the class \"%.*s\" is not among those that @classLabel names", (int)lmin(n, 60), s);
    return bad(f, f->nchannel + 1, E204, "one of these classes   or   this class in the line @classLabel", text);
}

/* What all rows of a sequence have in common. */
static err take_rows(struct ts *f, i64 steps, i32 class, f64 number) {
    struct table *t = f->t;
    for (i64 i = 0; i < steps; i++, t->nrow++) {
        GROW(t->line, t->nrow, f->row_cap);
        GROW(f->sequence, t->nrow, f->sequence_cap);
        if (f->label == TS_CLASS) GROW(f->class, t->nrow, f->label_cap);
        if (f->label == TS_NUMBER) GROW(f->number, t->nrow, f->label_cap);
        t->line[t->nrow] = f->line;
        f->sequence[t->nrow] = (i32)f->nsequence;
        if (f->label == TS_CLASS) f->class[t->nrow] = class;
        if (f->label == TS_NUMBER) f->number[t->nrow] = number;
    }
    f->nsequence++;
    return 0;
}

static err take_sequence(struct ts *f, const char *p, const char *end) {
    i64 steps = 0;
    i32 class = -1;
    f64 number = (f64)NAN;
    if (f->nchannel == 0) TRY(set_channels(f, p, end));
    TRY(check_channels(f, p, end));
    if (f->nsequence == INT32_MAX - 1) return bad(f, 0, E202, "a smaller file", "there are too many sequences");
    for (i32 c = 0; c < f->nchannel; c++) {
        const char *colon = memchr(p, ':', (size_t)(end - p));
        if (!colon) colon = end;
        if (colon == p) return bad(f, c + 1, E203, "values between the colons", "a channel has no value: the sequence is empty");
        TRY(take_channel(f, c, p, colon, &steps));
        p = colon < end ? colon + 1 : end;
    }
    if (f->label != TS_BARE) TRY(take_label(f, p, end - p, &class, &number));
    return take_rows(f, steps, class, number);
}

/* ------------------------------------------------------------------ columns ------------------------------------------------- */

static err name_channels(struct ts *f) {
    for (i32 c = 0; c < f->nchannel; c++) {
        struct column *to = &f->t->col[c + 1];
        char name[24];
        to->field = c + 1;
        to->type = COL_NUMBER;
        snprintf(name, sizeof name, "channel%d", c + 1);
        TRY(arena_keep(&f->t->names, &to->name, name));
    }
    return 0;
}

static err number_sequences(struct ts *f) {
    struct column *to = &f->t->col[0];
    to->name = f->t->id = "sequence";
    to->type = COL_CATEGORY;
    to->code = f->sequence;
    f->sequence = NULL;
    to->nword = (i32)f->nsequence;
    ARENA_NEW(&f->t->names, to->word, to->nword);
    for (i32 i = 0; i < to->nword; i++) {
        char name[24];
        snprintf(name, sizeof name, "%d", i + 1);
        TRY(arena_keep(&f->t->names, &to->word[i], name));
    }
    return 0;
}

static err take_target(struct ts *f) {
    struct column *to = &f->t->col[f->nchannel + 1];
    if (f->label == TS_BARE) return 0;
    to->field = f->nchannel + 1;
    to->name = f->t->target = f->label == TS_CLASS ? "class" : "target";
    to->type = f->label == TS_CLASS ? COL_CATEGORY : COL_NUMBER;
    to->code = f->class;
    to->number = f->number;
    f->class = NULL;
    f->number = NULL;
    for (i64 i = 0; i < f->t->nrow; i++) to->missing += to->code ? to->code[i] < 0 : isnan(to->number[i]);
    to->nword = f->words.n;
    ARENA_NEW(&f->t->names, to->word, to->nword);
    for (i32 i = 0; i < to->nword; i++) TRY(arena_keep(&f->t->names, &to->word[i], vocab_word(&f->words, i)));
    return 0;
}

/* ------------------------------------------------------------------ the file ------------------------------------------------ */

static err take_text(struct ts *f, const char *p, const char *end) {
    bool data = false;
    for (const char *next; p < end; p = next) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        next = stop ? stop + 1 : end;
        if (!stop) stop = end;
        while (stop > p && (stop[-1] == '\r' || stop[-1] == ' ' || stop[-1] == '\t')) stop--;
        while (p < stop && (*p == ' ' || *p == '\t')) p++;
        f->line++;
        if (p == stop || *p == '#') continue;
        if (memchr(p, 0, (size_t)(stop - p))) return bad(f, 0, E202, "save the file again as text", "the line holds a zero byte");
        if (data)
            TRY(take_sequence(f, p, stop));
        else
            TRY(take_header(f, p, stop, &data));
    }
    if (f->nsequence == 0)
        return FAIL_AT(E201, f->t->path, "a line for each sequence behind @data", "the file holds no sequence");
    TRY(name_channels(f));
    TRY(number_sequences(f));
    return take_target(f);
}

static err load(struct ts *f, const char *path) {
    char *text;
    i64 size;
    NEW(f->t, 1);
    f->t->has_header = true;
    f->t->sep = ',';
    f->t->decimal = '.';
    TRY(arena_keep(&f->t->names, &f->t->path, input_label(path)));
    TRY(zfile_load(path, &text, &size));
    const err e = take_text(f, text, text + size);
    mem_free(text);
    return e;
}

static err read(const char *path, const struct read_options *o, struct table **out) {
    struct ts f = {0};
    (void)o;
    const err e = load(&f, path);
    vocab_free(&f.words);
    mem_free(f.cap);
    mem_free(f.number);
    mem_free(f.sequence);
    mem_free(f.class);
    if (e < 0)
        table_free(f.t);
    else
        *out = f.t;
    return e;
}

/* The first line that is no comment is one of the header. */
static bool is_header(const char *p, const char *end) {
    static const char *const keys[] = {"@problemname", "@timestamps",  "@missing",      "@univariate", "@dimensions",
                                       "@dimension",   "@equallength", "@serieslength", "@classlabel", "@targetlabel"};
    while (p < end) {
        const char *stop = memchr(p, '\n', (size_t)(end - p)), *at = p;
        i64 n;
        if (!stop) return false;
        const char *s = word_at(&at, stop, &n);
        while (n > 0 && s[n - 1] == '\r') n--;
        for (size_t i = 0; i < COUNT(keys); i++)
            if (is_word(s, n, keys[i])) return true;
        if (n > 0 && *s != '#') return false;
        p = stop + 1;
    }
    return false;
}

static bool is(const char *path) {
    const struct err_record before = *err_last();
    char *head = mem_alloc(HEAD);
    i64 n = 0;
    bool mine = head && !folder_is(path) && zfile_head(path, head, HEAD, &n) >= 0 && is_header(head, head + n);
    mem_free(head);
    err_put(&before); /* the next reader reports it */
    return mine;
}

extern const struct reader reader_ts;
const struct reader reader_ts = {
    .name = "ts",
    .help = "sequences as sktime and the UEA archive write them (.ts); .gz, .zst",
    .is = is,
    .read = read,
};
