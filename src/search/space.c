/* space.c - see space.h. */
#include "search/space.h"

#include <string.h>

#include "base/rng.h"

static const struct row {
    enum opt_id id;
    enum dim_kind kind;
    f64 least, most;
    const char *words;
    enum opt_id when;
    const char *when_words, *first;
} rows[] = {
#define DIM(field, KIND, least, most, words, when, when_words, first)                                                            \
    {OPT_##field, DIM_##KIND, least, most, words, when, when_words, first},
#include "search/space.def"
};

/* ------------------------------------------------------------------ dimensions ---------------------------------------------- */

/* The next of the words separated by blanks; false at the end. */
static bool next_word(const char **at, char out[SPACE_TEXT]) {
    const char *p = *at + strspn(*at, " ");
    const size_t n = strcspn(p, " ");
    if (n == 0) return false;
    str_print(out, SPACE_TEXT, "%.*s", (int)n, p);
    *at = p + n;
    return true;
}

static bool has_word(const char *words, const char *text) {
    char word[SPACE_TEXT];
    while (next_word(&words, word))
        if (strcmp(word, text) == 0) return true;
    return false;
}

static f64 number(const char *text) {
    f64 v;
    return str_to_f64(text, strlen(text), '.', &v) ? v : (f64)NAN;
}

static bool is_integer(enum opt_id id) { return opt_info(id)->type == OPT_INT; }

/* The nearest value of the option's type and range, with as many digits as its text has. */
static f64 rounded(enum opt_id id, f64 v) {
    const struct opt_info *info = opt_info(id);
    char text[32];
    v = dmax(info->least, dmin(info->most, v));
    if (is_integer(id)) return round(v);
    str_print(text, sizeof text, "%.3g", v);
    return number(text);
}

static void read_words(const struct row *r, const char *usual, struct dim *d) {
    const char *at = r->words;
    char word[SPACE_TEXT];
    d->standard = -1;
    while (d->nword < SPACE_WORDS && next_word(&at, word)) {
        const bool same = strcmp(word, usual) == 0 || number(word) == number(usual);
        if (same) d->standard = d->nword;
        if (strcmp(word, r->first) == 0 && !same) d->first = d->nword;
        memcpy(d->word[d->nword++], word, sizeof word);
    }
}

/* False if there is nothing to vary: the default has no number, or the range holds one value. */
static bool read_range(const struct row *r, i32 columns, struct dim *d) {
    const f64 unit = r->kind == DIM_FACTOR ? d->usual : r->kind == DIM_SHARE ? columns : 1;
    if (!(unit > 0)) return false;
    d->least = rounded(r->id, r->least * unit);
    d->most = rounded(r->id, r->most * unit);
    const f64 first = number(r->first);
    if (!isnan(first)) d->first = rounded(r->id, r->kind == DIM_RANGE ? first : first * unit);
    if (d->first == d->usual) d->first = (f64)NAN;
    return d->most > d->least;
}

void space_make(const struct options *o, space_fixed *fixed, const void *self, i32 columns, struct space *out) {
    *out = (struct space){.o = o};
    for (size_t i = 0; i < COUNT(rows) && out->n < SPACE_MOST; i++) {
        const struct row *r = &rows[i];
        const char *usual = o->meta[r->id].text;
        struct dim d = {.id = r->id, .kind = r->kind, .when = r->when, .when_words = r->when_words, .standard = -1,
                        .usual = number(usual), .first = (f64)NAN};
        if (fixed(self, r->id)) continue;
        if (r->kind == DIM_CHOICE) read_words(r, usual, &d);
        else if (!read_range(r, columns, &d)) continue;
        out->dim[out->n++] = d;
    }
}

/* ------------------------------------------------------------------ points -------------------------------------------------- */

struct point point_origin(void) {
    struct point p;
    for (i32 i = 0; i < SPACE_MOST; i++) p.v[i] = (f64)NAN;
    return p;
}

bool point_equal(const struct space *s, const struct point *a, const struct point *b) {
    for (i32 i = 0; i < s->n; i++) {
        const f64 x = point_acts(s, a, i) ? a->v[i] : (f64)NAN, y = point_acts(s, b, i) ? b->v[i] : (f64)NAN;
        if (isnan(x) != isnan(y) || (!isnan(x) && x != y)) return false;
    }
    return true;
}

bool point_is_origin(const struct space *s, const struct point *p) {
    const struct point o = point_origin();
    return point_equal(s, p, &o);
}

void point_text(const struct space *s, const struct point *p, i32 dim, char out[SPACE_TEXT]) {
    const struct dim *d = &s->dim[dim];
    const f64 v = p->v[dim];
    out[0] = 0;
    if (isnan(v)) return;
    if (d->kind == DIM_CHOICE) memcpy(out, d->word[(i32)v], SPACE_TEXT);
    else str_print(out, SPACE_TEXT, is_integer(d->id) ? "%.0f" : "%.3g", v);
}

bool point_acts(const struct space *s, const struct point *p, i32 dim) {
    const struct dim *d = &s->dim[dim];
    char text[SPACE_TEXT];
    if (d->when == OPT_COUNT) return true;
    for (i32 i = 0; i < s->n; i++) {
        if (s->dim[i].id != d->when || isnan(p->v[i])) continue;
        point_text(s, p, i, text);
        return has_word(d->when_words, text);
    }
    return has_word(d->when_words, s->o->meta[d->when].text);
}

err point_set(const struct space *s, const struct point *p, const char *origin, struct options *o) {
    const struct opt_from from = {.rank = OPT_RANK_FILE, .origin = origin};
    char text[SPACE_TEXT];
    for (i32 i = 0; i < s->n; i++) {
        if (isnan(p->v[i]) || !point_acts(s, p, i)) continue;
        point_text(s, p, i, text);
        TRY(opt_set_id(o, s->dim[i].id, text, &from));
    }
    return 0;
}

void point_label(const struct space *s, const struct point *p, struct str *out) {
    char text[SPACE_TEXT];
    const char *between = "";
    for (i32 i = 0; i < s->n; i++) {
        if (isnan(p->v[i]) || !point_acts(s, p, i)) continue;
        point_text(s, p, i, text);
        str_addf(out, "%s%s %s", between, opt_info(s->dim[i].id)->name, text);
        between = ", ";
    }
    if (!*between) str_add(out, "the defaults");
}

struct js *point_json(const struct space *s, const struct point *p) {
    struct js *o = js_object();
    char text[SPACE_TEXT];
    for (i32 i = 0; i < s->n; i++) {
        if (isnan(p->v[i]) || !point_acts(s, p, i)) continue;
        point_text(s, p, i, text);
        js_put_text(o, opt_info(s->dim[i].id)->name, text);
    }
    return o;
}

static bool read_value(const struct dim *d, const char *text, f64 *out) {
    *out = number(text);
    if (d->kind != DIM_CHOICE) return *out >= d->least && *out <= d->most;
    for (i32 w = 0; w < d->nword; w++) {
        *out = w;
        if (strcmp(d->word[w], text) == 0) return true;
    }
    return false;
}

bool point_read(const struct space *s, const struct js *from, struct point *out) {
    const char *name;
    const struct js *value;
    *out = point_origin();
    for (i64 k = 0; js_member(from, k, &name, &value); k++) {
        i32 i = 0;
        while (i < s->n && strcmp(opt_info(s->dim[i].id)->name, name) != 0) i++;
        if (i == s->n || !read_value(&s->dim[i], js_str(value, ""), &out->v[i])) return false;
    }
    return true;
}

/* ------------------------------------------------------------------ draws --------------------------------------------------- */

f64 dice_uniform(struct dice *d) {
    u32 w[4];
    rng_words(d->seed, RNG_SEARCH, d->trial, d->at++, w);
    return (f64)w[0] / 4294967296.0;
}

i32 dice_below(struct dice *d, i32 n) { return imin(n - 1, (i32)(dice_uniform(d) * n)); }

f64 dim_draw(const struct dim *d, struct dice *dice) {
    if (d->kind != DIM_CHOICE) return rounded(d->id, d->least * pow(d->most / d->least, dice_uniform(dice)));
    const i32 others = d->nword - (d->standard >= 0);
    const i32 k = dice_below(dice, others);
    return d->standard >= 0 && k >= d->standard ? k + 1 : k;
}

f64 dim_move(const struct dim *d, f64 v, struct dice *dice) {
    if (isnan(v)) v = d->kind == DIM_CHOICE ? d->standard : d->usual;
    if (!(v >= 0)) return dim_draw(d, dice);
    if (d->kind == DIM_CHOICE && isnan(number(d->word[(i32)v]))) return dim_draw(d, dice);
    const f64 u = dice_uniform(dice), sign = dice_uniform(dice) < 0.5 ? -1 : 1;
    if (d->kind == DIM_CHOICE) return dmax(0, dmin(d->nword - 1, v + sign));
    if (!(v > 0)) return dim_draw(d, dice);
    return rounded(d->id, dmax(d->least, dmin(d->most, v * pow(d->most / d->least, sign * 0.25 * u))));
}
