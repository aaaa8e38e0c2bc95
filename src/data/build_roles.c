/* build_roles.c - decides which column is the time, a target or an input, from the options and the cells. */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/str.h"
#include "data/build.h"
#include "data/mend.h"
#include "data/names.h"

enum role {
    ROLE_NONE = NO_ROLE,
    ROLE_TIME,
    ROLE_ID,
    ROLE_TARGET,
    ROLE_PAST,
    ROLE_KNOWN,
    ROLE_STATIC,
    ROLE_CAT,
    ROLE_IGNORE,
    ROLE_PUT
};
static const char *const role_flag[] = {"", "--time", "--id", "--target", "--past", "--known", "--static", "--cat", "--ignore"};

enum { SWAPPED_LEAST = 3, ROWS_WIDE = 8 }; /* columns named by times; numbers in a row, and times as many as rows */

static err one_of(const char *flag, const char *word, const char *const *words, i32 n, i32 *out) {
    for (i32 i = 0; i < n; i++)
        if (!strcmp(word, words[i])) {
            *out = i;
            return 0;
        }
    char list[200];
    name_list(words, n, list, sizeof list);
    return FAIL_AT(E103, NULL, NULL, "%s %s: one of %s is needed", flag, word, list);
}

static err read_policies(struct build *b) {
    static const char *const gaps[] = {"error", "mask", "interpolate", "zero"}, *const dups[] = {"error", "mean", "first",
                                                                                                 "last"};
    i32 g = 0, d = 0;
    TRY(one_of("--gaps", text_or(b->o->gaps, "error"), gaps, 4, &g));
    TRY(one_of("--dups", text_or(b->o->dups, "error"), dups, 4, &d));
    b->gaps = (enum gaps)g;
    b->dups = (enum dups)d;
    return 0;
}

/* True for a number with thousands separators: 1,465 or 12.024,51. */
static bool thousands(const char *w) {
    size_t n = strspn(w, "-+0123456789.,' ");
    const char *mark = strpbrk(w, ",.'");
    return mark && w[n] == 0 && strspn(mark + 1, "0123456789") >= 3;
}

/* Removes them: 1465, 12024.51. The last separator is the decimal mark, unless there is only one kind and three digits follow. */
static void without_thousands(const char *w, char out[48]) {
    const char *last = w, *first = strpbrk(w, ",.'");
    for (const char *p = w; (p = strpbrk(p, ",.'")); p++) last = p;
    const bool decimal = *last != *first || strspn(last + 1, "0123456789") != 3;
    i32 n = 0;
    for (const char *p = w; *p && n < 46; p++) {
        if (strchr("-+0123456789", *p)) out[n++] = *p;
        if (p == last && decimal) out[n++] = '.';
    }
    out[n] = 0;
}

/* Length of the number in a word with a unit (8,39 kWh); 0 = no such word. */
static i32 before_unit(const char *w) {
    size_t n = strspn(w, "-+0123456789.,");
    const char *unit = w + n + strspn(w + n, " ");
    return strcspn(w, "0123456789") < n && *unit && strlen(unit) <= 8 && !strpbrk(unit, "0123456789") ? (i32)n : 0;
}

enum { SIGN_FIX = 600 };

/* For a number with a currency or per cent sign: a command that removes the signs. */
static bool without_sign(const struct build *b, const char *w, char fix[SIGN_FIX]) {
    const bool sign = strpbrk(w, "$%") || strstr(w, "€") || strstr(w, "£");
    if (!sign || b->t->records || strspn(w, "-+0123456789., $%€£") != strlen(w) || !strpbrk(w, "0123456789")) return false;
    char from[MEND_PATH], to[MEND_PATH];
    snprintf(fix, SIGN_FIX, "sed 's/[$%%]//g; s/€//g; s/£//g' %s > %s", mend_from(b->t->path, from),
             mend_to(b->t->path, "numbers", to));
    return true;
}

static err refuse_words(const struct build *b, const struct column *c, enum role r) {
    char fix[700], plain[48], from[MEND_PATH], to[MEND_PATH];
    const char *word = c->nword ? c->word[0] : "";
    f64 number;
    if (b->t->records && str_to_f64(word, strlen(word), '.', &number)) {
        snprintf(fix, sizeof fix, "make the column numbers, it holds text   (pandas: pd.to_numeric, polars: cast)");
    } else if (thousands(word)) {
        without_thousands(word, plain);
        snprintf(fix, sizeof fix, "write the numbers without separators of thousands, as %s for %.40s", plain, word);
    } else if (without_sign(b, word, fix)) { /* fix is set */
    } else if (before_unit(word)) {
        snprintf(fix, sizeof fix, "write the numbers without their unit, as %.*s for %.40s", before_unit(word), word, word);
    } else if (r == ROLE_TARGET && b->t->records) {
        snprintf(fix, sizeof fix, "another --target   or   write the column as numbers");
    } else if (r == ROLE_TARGET) {
        snprintf(fix, sizeof fix,
                 "another --target   (is there a title line above the header? then: tail -n +2 %s > %s)",
                 mend_from(b->t->path, from), mend_to(b->t->path, "table", to));
    } else if (r == ROLE_KNOWN) {
        snprintf(fix, sizeof fix,
                 "a 0/1 column for each word that matters ahead of time, named in --known   or   --cat %s without --known "
                 "(its past is used)",
                 mend_word(c->name, from));
    } else {
        snprintf(fix, sizeof fix, "--cat %s instead of --past", mend_word(c->name, from));
    }
    return FAIL_AT(E214, b->t->path, fix, "column \"%s\" given by %s holds words (\"%s\"%s), not numbers", c->name, role_flag[r],
                   word, c->nword > 1 ? ", ..." : "");
}

static err give(struct build *b, u8 *role, i32 col, enum role r) {
    const struct column *c = &b->t->col[col];
    if (role[col] == r || role[col] == ROLE_IGNORE) return 0;
    if (role[col] == ROLE_CAT && r == ROLE_PAST) return 0; /* --past x --cat x: a category */
    if (role[col] == ROLE_CAT && r == ROLE_KNOWN) return refuse_words(b, c, r);
    if (r == ROLE_STATIC && c->type == COL_CATEGORY && (role[col] == ROLE_CAT || role[col] == ROLE_NONE)) {
        role[col] = ROLE_CAT;
        return 0;
    }
    if (role[col] != ROLE_NONE)
        return FAIL(E106, "column \"%s\" cannot be %s and %s at once", c->name, role_flag[role[col]], role_flag[r]);
    if (r == ROLE_ID && c->type != COL_TIME) {
        role[col] = ROLE_ID;
        return 0;
    }
    if (c->type == COL_CATEGORY && (r == ROLE_PAST || r == ROLE_KNOWN || r == ROLE_TARGET)) return refuse_words(b, c, r);
    if (c->type == COL_TIME && r != ROLE_TIME && r != ROLE_IGNORE)
        return FAIL_AT(E214, b->t->path, "another column", "column \"%s\" given by %s holds times, not numbers", c->name,
                       role_flag[r]);
    if (c->type != COL_CATEGORY && r == ROLE_CAT)
        return FAIL_AT(E214, b->t->path, NULL, "column \"%s\" given by --cat was read as numbers", c->name);
    role[col] = (u8)r;
    return 0;
}

/* A list names a column twice, perhaps once by its number: shows the list with each named once. */
static err named_twice(const struct build *b, const char *list, i32 twice, enum role r) {
    char fix[600], name[256];
    i32 n = snprintf(fix, sizeof fix, "%s ", role_flag[r]), left = 0;
    for (const char *p = list; name_next(&p, name);) {
        const i32 col = table_find(b->t, name);
        if ((col == twice && left++ > 0) || n >= (i32)sizeof fix) continue;
        n += snprintf(fix + n, sizeof fix - (size_t)n, "%s%.250s", fix[n - 1] == ' ' ? "" : ",", b->t->col[imax(0, col)].name);
    }
    return FAIL_AT(E103, NULL, fix, "%s names the column \"%s\" twice", role_flag[r], b->t->col[twice].name);
}

static err give_list(struct build *b, u8 *role, const char *list, enum role r) {
    char name[256];
    for (const char *p = list; name_next(&p, name);) {
        i32 col;
        if (r == ROLE_IGNORE && table_find(b->t, name) < 0) continue; /* the reader has already excluded it */
        TRY(table_need(b->t, name, role_flag[r], &col));
        if (role[col] == r && r != ROLE_IGNORE && r != ROLE_CAT) return named_twice(b, list, col, r);
        TRY(give(b, role, col, r));
    }
    return 0;
}

static err find_ids(struct build *b, u8 *role) {
    const char *list = b->o->id;
    char name[256];
    while (name_next(&list, name)) {
        i32 col;
        TRY(table_need(b->t, name, "--id", &col));
        if (role[col] == ROLE_ID) return named_twice(b, b->o->id, col, ROLE_ID);
        if (b->nid == ID_PARTS) return FAIL(E103, "--id: at most %d columns name a series", ID_PARTS);
        TRY(give(b, role, col, ROLE_ID));
        b->id_col[b->nid++] = col;
    }
    if (b->nid == 0 && *text_or(b->o->fixed, ""))
        return FAIL_AT(E106, NULL, "--id COLUMN   or   --known", "--static is for the series of a panel, which --id names");
    return 0;
}

/* Refuses a --time-format that the time does not need: timestamps of Parquet or Arrow, a copy of `stretto cache`, parts of a time
 * in columns. */
static err refuse_unused_layout(const struct build *b) {
    const char *layout = b->o->of_model ? "" : text_or(b->o->time_format, "");
    bool used = !*layout || b->ntime == 0;
    i64 t;
    for (i32 k = 0; k < b->ntime; k++) {
        const struct column *c = &b->t->col[b->time_col[k]];
        const bool number = c->type == COL_NUMBER && b->ntime == 1;
        used |= c->type == COL_TIME ? c->by_layout : number && build_time_of(layout, c->number[0], &t);
    }
    if (used) return 0;
    const struct column *c = &b->t->col[b->time_col[0]];
    return FAIL_AT(E205, b->t->path, "--time-format auto", "--time-format '%s' is not used: column \"%s\" holds %s", layout,
                   c->name, c->type == COL_TIME ? "timestamps, which are no text" : "a part of the time");
}

static err find_time(struct build *b, u8 *role) {
    const char *list = b->o->time;
    char name[256];
    bool by_row = !strcmp(text_or(b->o->time_format, ""), "row");
    while (name_next(&list, name)) {
        i32 col;
        TRY(table_need(b->t, name, "--time", &col));
        if (role[col] == ROLE_TIME) return named_twice(b, b->o->time, col, ROLE_TIME);
        if (b->ntime == TIME_PARTS) return FAIL(E103, "--time: at most %d columns make up a time", TIME_PARTS);
        TRY(give(b, role, col, ROLE_TIME));
        if (!by_row) b->time_col[b->ntime++] = col;
    }
    if (by_row) return 0;
    if (b->ntime == 0) TRY(build_find_time(b, role));
    for (i32 k = 0; k < b->ntime; k++) role[b->time_col[k]] = ROLE_TIME;
    return refuse_unused_layout(b);
}

/* True if most of the names [n] are times: dates, or numbers that count up such as years (*numbers). */
static bool name_times(const char *const *names, i32 n, i32 *first, bool *numbers) {
    i32 times = 0, *len;
    bool unused;
    if (mem_new((void **)&len, n, sizeof *len) < 0) return false;
    for (i32 i = 0; i < n; i++) {
        len[i] = (i32)strlen(names[i]);
        const bool is_time = time_guess(&names[i], &len[i], 1, false, &unused) != TIME_NONE || time_short(names[i], len[i]);
        if (is_time && times++ == 0) *first = i;
    }
    const enum time_kind kind = times == 0 && n >= SWAPPED_LEAST ? time_guess(names, len, n, true, &unused) : TIME_NONE;
    i64 t, before = 0;
    bool up = kind == TIME_YEAR || kind == TIME_COMPACT; /* not a number that only could be seconds */
    for (i32 i = 0; i < n && up; i++, before = t) {
        const struct time_parser p = {.kind = kind};
        up = time_parse(&p, names[i], (size_t)len[i], &t) && (i == 0 || (t > before && t - before <= 366 * 86400));
    }
    if (up) *first = 0, times = n;
    *numbers = up;
    mem_free(len);
    return times >= SWAPPED_LEAST && 2 * times >= n;
}

/* Refuses a table in which every row is a series: it has times as column names, or few rows that begin with words of their own
 * and are long. */
static err refuse_swapped(const struct build *b, const u8 *role) {
    static const char columns[] = "--orient columns   (each column is a series)   or   --orient rows";
    static const char rows[] = "--orient rows   or   --orient columns   (each column is a series)";
    const struct column *c = &b->t->col[0];
    const bool dates = b->ntime > 0 && b->time_col[0] == 0; /* the rows have times of their own */
    const char **names;
    i32 first = 0, n = 0;
    bool numbers = false;
    if (b->o->columns || b->o->of_model || b->t->turned || b->t->map) return 0;
    NEW(names, b->t->ncol);
    for (i32 i = 0; i < b->t->ncol; i++)
        if (b->t->col[i].type == COL_NUMBER && role[i] == ROLE_NONE) names[n++] = b->t->col[i].name;
    const char *time = name_times(names, n, &first, &numbers) ? names[first] : NULL;
    mem_free(names);
    if (numbers && dates) return 0; /* ids: 1001, 1002 */
    if (time)
        return FAIL_AT(E214, b->t->path, dates ? columns : rows,
                       "the columns are named by times (\"%s\", ...): each row is a series here", time);
    const bool words = c->type == COL_CATEGORY && c->nword == b->t->nrow && c->missing == 0 && !*text_or(b->o->target, "") &&
                       !b->doubt[0];
    if (!words || n < ROWS_WIDE || n < ROWS_WIDE * b->t->nrow || n + 1 < b->t->ncol) return 0;
    return FAIL_AT(E214, b->t->path, rows,
                   "%lld rows of %d numbers, each after a word of its own (\"%s\", ...): is each row a series?",
                   (long long)b->t->nrow, n, c->word[0]);
}

/* Only text columns: perhaps numbers with signs. */
static err no_numbers(const struct build *b) {
    char fix[SIGN_FIX];
    for (i32 i = 0; i < b->t->ncol; i++) {
        const struct column *c = &b->t->col[i];
        if (c->type != COL_CATEGORY || c->nword == 0 || !without_sign(b, c->word[0], fix)) continue;
        return FAIL_AT(E214, b->t->path, fix,
                       "there is no numeric column that could be forecast: \"%s\" holds words (\"%.40s\", ...)", c->name,
                       c->word[0]);
    }
    return FAIL_AT(E214, b->t->path, "a file with a column of numbers", "there is no numeric column that could be forecast");
}

/* Of n numeric columns, the last of those that are likeliest the target. */
static err likeliest(const struct build *b, const i32 *col, i32 n, i32 *best) {
    const i32 gaps = target_gaps(b);
    i32 most = 0, like;
    *best = 0;
    for (i32 i = 0; i < n; i++) {
        TRY(target_score(b, &b->t->col[col[i]], gaps, &like));
        if (like > 0 && like >= most) *best = i, most = like;
    }
    return 0;
}

static err ask_target(const struct build *b, const i32 *col, const char **names, i32 n) {
    char list[500], fix[340], word[MEND_PATH];
    i32 best;
    TRY(likeliest(b, col, n, &best));
    name_list(names, n, list, sizeof list);
    snprintf(fix, sizeof fix, "--target %s   or   --target all   (every numeric column)", mend_word(names[best], word));
    return FAIL_AT(E105, b->t->path, fix, "--target is missing: %d numeric columns could be meant\ncolumns: %s", n, list);
}

/* No --target: takes the only numeric column without a role, otherwise fails and asks. */
static err choose_target(const struct build *b, struct arena *keep, u8 *role) {
    const bool all = !strcmp(text_or(b->o->target, ""), "all") && table_find(b->t, "all") < 0;
    const char **names;
    i32 *col, n = 0;
    ARENA_NEW(keep, names, b->t->ncol);
    ARENA_NEW(keep, col, b->t->ncol);
    for (i32 i = 0; i < b->t->ncol; i++) {
        if (b->t->col[i].type != COL_NUMBER || role[i] != ROLE_NONE) continue;
        names[n] = b->t->col[i].name;
        col[n++] = i;
    }
    if (n == 0) return no_numbers(b);
    if (n > 1 && !all) return ask_target(b, col, names, n);
    for (i32 i = 0; i < n; i++) role[col[i]] = ROLE_TARGET;
    return 0;
}

static err find_target(struct build *b, u8 *role) {
    struct arena keep = {0};
    const err e = choose_target(b, &keep, role);
    arena_free(&keep);
    return e;
}

/* Columns of a role: those of a list (NULL = none) in its order, then the others in file order. */
static i32 put_role(const struct build *b, u8 *role, enum role r, const char *list, i32 *to) {
    char name[256];
    i32 n = 0;
    while (name_next(&list, name)) {
        const i32 col = table_find(b->t, name);
        if (col < 0 || role[col] != r) continue; /* "all", or ignored */
        role[to[n++] = col] = ROLE_PUT;
    }
    for (i32 c = 0; c < b->t->ncol; c++)
        if (role[c] == r) to[n++] = c;
    for (i32 i = 0; i < n; i++) role[to[i]] = (u8)r;
    return n;
}

/* Orders columns: targets as named, the others as in the file or, with a model, as in the model. */
static err order_columns(struct build *b, u8 *role) {
    const bool listed = b->o->of_model;
    NEW(b->col, b->t->ncol);
    NEW(b->cat, b->t->ncol);
    b->ntarget = put_role(b, role, ROLE_TARGET, b->o->target, b->col);
    b->npast = put_role(b, role, ROLE_PAST, listed ? b->o->past : NULL, b->col + b->ntarget);
    b->nknown = put_role(b, role, ROLE_KNOWN, listed ? b->o->known : NULL, b->col + b->ntarget + b->npast);
    b->nstatic = put_role(b, role, ROLE_STATIC, listed ? b->o->fixed : NULL, b->col + b->ntarget + b->npast + b->nknown);
    b->nknown += b->nstatic;
    b->ncat = put_role(b, role, ROLE_CAT, listed ? b->o->cat : NULL, b->cat);
    if (b->ntarget == 0) return FAIL(E106, "--ignore leaves out every target");
    return 0;
}

static err assign(struct build *b, u8 *role) {
    TRY(give_list(b, role, b->o->ignore, ROLE_IGNORE));
    TRY(give_list(b, role, b->o->cat, ROLE_CAT));
    TRY(give_list(b, role, b->o->past, ROLE_PAST));
    TRY(give_list(b, role, b->o->known, ROLE_KNOWN));
    TRY(find_ids(b, role));
    TRY(give_list(b, role, b->o->fixed, ROLE_STATIC));
    TRY(find_time(b, role));
    if (b->nid == 0) TRY(refuse_swapped(b, role));
    const i32 delta = b->o->time_delta ? table_find(b->t, DELTA_NAME) : -1;
    if (delta >= 0 && role[delta] == ROLE_NONE) role[delta] = ROLE_PAST;
    const char *target = text_or(b->o->target, "");
    bool named = *target && (strcmp(target, "all") != 0 || table_find(b->t, "all") >= 0);
    TRY(named ? give_list(b, role, target, ROLE_TARGET) : find_target(b, role));
    return order_columns(b, role);
}

/* Appends the columns of role r and one type: "time date; target units, price". type -1 = any. */
static void say_role(const struct build *b, const u8 *role, enum role r, i32 type, const char *before, const char *behind,
                     const char **names, struct str *out) {
    char list[160];
    i32 n = 0;
    for (i32 i = 0; i < b->t->ncol; i++)
        if (role[i] == r && (type < 0 || b->t->col[i].type == (enum col_type)type)) names[n++] = b->t->col[i].name;
    name_list(names, n, list, sizeof list);
    if (n) str_addf(out, "%s%s %s%s", out->len ? "; " : "", before, list, behind);
}

/* Describes the roles: unused columns are easily overlooked. */
static err say_roles(struct build *b, const u8 *role) {
    const char **names;
    struct str out = {0};
    NEW(names, b->t->ncol);
    say_role(b, role, ROLE_TARGET, -1, "target", "", names, &out);
    say_role(b, role, ROLE_PAST, -1, "past", "", names, &out);
    say_role(b, role, ROLE_KNOWN, -1, "known", "", names, &out);
    say_role(b, role, ROLE_STATIC, -1, "static", "", names, &out);
    say_role(b, role, ROLE_ID, -1, "series named by", "", names, &out);
    say_role(b, role, ROLE_CAT, -1, "category", "", names, &out);
    say_role(b, role, ROLE_TIME, -1, "time", "", names, &out);
    say_role(b, role, ROLE_NONE, COL_NUMBER, "left out:", " (no --past or --known)", names, &out);
    say_role(b, role, ROLE_NONE, COL_CATEGORY, "left out:", " (words, no --cat)", names, &out);
    say_role(b, role, ROLE_NONE, COL_TIME, "left out:", " (times, no --time)", names, &out);
    err e = str_ok(&out);
    snprintf(b->roles, sizeof b->roles, "%s", str_text(&out));
    str_free(&out);
    mem_free(names);
    return e;
}

err build_roles(struct build *b) {
    TRY(read_policies(b));
    u8 *role;
    NEW(role, b->t->ncol);
    err e = assign(b, role);
    if (e >= 0) e = say_roles(b, role);
    mem_free(role);
    return e;
}
