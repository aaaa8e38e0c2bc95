/* base.c - a base as a weighted list of parts: making, predicting, and its form as text and tensor. */
#include <math.h>
#include <string.h>

#include "bases/base.h"
#include "bases/linear.h"
#include "bases/trees/trees.h"

static const struct {
    const char *name;
    bool season, alpha;
    base_rule *rule;
} kinds[BASE_NKIND] = {
#define X(KIND, name, season, alpha, rule) {name, season, alpha, rule},
    BASE_KINDS(X)
#undef X
};

const char *base_kind_name(enum base_kind kind) { return kinds[kind].name; }

void base_free(struct base *b) {
    if (!b) return;
    mem_free(b->ridge);
    trees_free(b->trees);
    mem_free(b);
}

/* The forecast of the parts that are rules. */
static void predict_rules(const struct base *b, const struct series *s, i32 col, i64 origin, i32 H, f32 *out) {
    for (i32 h = 0; h < H; h++) out[h] = 0;
    for (i32 i = 0; i < b->npart; i++)
        if (kinds[b->part[i].kind].rule) kinds[b->part[i].kind].rule(&b->part[i], s, col, origin, H, out);
}

static const struct base_part *part_of(const struct base *b, enum base_kind kind) {
    for (i32 i = 0; i < b->npart; i++)
        if (b->part[i].kind == kind) return &b->part[i];
    return NULL;
}

void base_predict(const struct base *b, const struct series *s, i32 col, i64 origin, i32 H, f32 *out) {
    const struct base_part *ridge = part_of(b, BASE_RIDGE), *trees = part_of(b, BASE_TREES);
    predict_rules(b, s, col, origin, H, out);
    if (ridge) ridge_add(b->ridge, ridge->weight, s, col, origin, H, out);
    if (trees) trees_add(b->trees, trees->weight, s, col, origin, H, out);
}

/* The rules row by row, then ridge and trees for all rows at once. */
err base_predict_rows(const struct base *b, const struct series *s, i64 n, const i32 *cols, const i64 *origins, i32 H, f32 *out,
                      i64 ldo, const struct kern *k) {
    const struct base_part *ridge = part_of(b, BASE_RIDGE), *trees = part_of(b, BASE_TREES);
    const struct row_list rows = {n, cols, origins};
    for (i64 r = 0; r < n; r++) predict_rules(b, s, cols[r], origins[r], H, out + r * ldo);
    if (ridge) TRY(ridge_add_rows(b->ridge, ridge->weight, s, &rows, H, out, ldo, k));
    return trees ? trees_add_rows(b->trees, trees->weight, s, &rows, H, out, ldo) : 0;
}

err base_naive(i32 season, struct base **out) {
    NEW(*out, 1);
    (*out)->npart = 1;
    (*out)->part[0] = (struct base_part){.kind = season > 0 ? BASE_SEASON : BASE_LAST, .weight = 1, .season = season};
    return 0;
}

static void add_ridge(const struct ridge *r, const char *penalty, struct str *out) {
    str_addf(out, "(%d,%d,%s%s", r->L, r->H, penalty, r->calendar ? ",calendar" : "");
    if (r->ahead.ncol > 0) str_addf(out, ",ahead:%d:%d:%d", r->ahead.ncol, r->ahead.back, r->ahead.group);
    str_add(out, ")");
}

static void add_arguments(const struct base *b, const struct base_part *p, struct str *out) {
    char number[32];
    str_from_f64(number, p->kind == BASE_RIDGE ? b->ridge->penalty : p->alpha);
    const bool season = kinds[p->kind].season, alpha = kinds[p->kind].alpha;
    if (p->kind == BASE_RIDGE) add_ridge(b->ridge, number, out);
    if (p->kind == BASE_TREES) trees_shape_write(&b->trees->in.shape, out);
    if (season && alpha) str_addf(out, "(%d,%s)", p->season, number);
    if (season && !alpha) str_addf(out, "(%d)", p->season);
    if (!season && alpha) str_addf(out, "(%s)", number);
}

static err write_parts(const struct base *b, bool exact, struct str *out) {
    char number[32];
    for (i32 i = 0; i < b->npart; i++) {
        const struct base_part *p = &b->part[i];
        if (i) str_add(out, " + ");
        str_from_f64(number, p->weight);
        if (p->weight != 1 && exact) str_addf(out, "%s*", number);
        if (p->weight != 1 && !exact) str_addf(out, "%.2f ", p->weight);
        str_add(out, kinds[p->kind].name);
        add_arguments(b, p, out);
    }
    return str_ok(out);
}

err base_text(const struct base *b, struct str *out) { return write_parts(b, true, out); }
err base_label(const struct base *b, struct str *out) { return write_parts(b, false, out); }

i64 base_tensor(const struct base *b, f32 *w, i32 *rows, i32 *cols) {
    const struct ridge *r = b->ridge;
    if (!r) return 0;
    if (rows) *rows = ridge_rows(r);
    if (cols) *cols = r->H;
    for (i32 i = 0; w && i < ridge_rows(r); i++) memcpy(w + (i64)i * r->H, r->w + (i64)i * r->Hp, (size_t)r->H * sizeof *w);
    return (i64)ridge_rows(r) * r->H;
}

i64 base_trees_tensor(const struct base *b, f32 *w, i32 *rows, i32 *cols) {
    if (!b->trees) return 0;
    if (rows) *rows = 1 + b->trees->nnode;
    if (cols) *cols = TREES_FIELDS;
    return trees_tensor(b->trees, w);
}

/* --- reading the text back --- */

/* Arguments of "name(a,b,c)", each a span of text. */
enum { ARGUMENTS = 5 };
struct part_text {
    f64 weight;
    const char *name;
    size_t nname;
    i32 narg;
    const char *arg[ARGUMENTS];
    size_t narg_len[ARGUMENTS];
};

/* One part at *at; moves *at behind it.  false = not understood. */
static bool split_part(const char **at, struct part_text *p) {
    const char *s = *at, *star;
    size_t n = strcspn(s, "*(+");
    p->weight = 1;
    p->narg = 0;
    star = s[n] == '*' ? s + n : NULL;
    if (star) {
        if (!str_to_f64(s, n, '.', &p->weight)) return false;
        s = star + 1;
    }
    p->name = s;
    p->nname = strcspn(s, " (");
    s += p->nname;
    if (*s == '(') {
        do {
            s++;
            if (p->narg == ARGUMENTS) return false;
            p->arg[p->narg] = s;
            p->narg_len[p->narg] = strcspn(s, ",)");
            s += p->narg_len[p->narg++];
        } while (*s == ',');
        if (*s++ != ')') return false;
    }
    if (strncmp(s, " + ", 3) == 0 && s[3]) s += 3;
    else if (*s) return false;
    *at = s;
    return true;
}

static bool is_word(const char *s, size_t n, const char *word) { return strlen(word) == n && memcmp(word, s, n) == 0; }

static bool to_i32(const struct part_text *p, i32 i, i32 *out) {
    i64 v;
    if (i >= p->narg || !str_to_i64(p->arg[i], p->narg_len[i], &v) || v < 1 || v > 1000000) return false;
    *out = (i32)v;
    return true;
}

static bool to_f64(const struct part_text *p, i32 i, f64 *out) {
    return i < p->narg && str_to_f64(p->arg[i], p->narg_len[i], '.', out) && isfinite(*out);
}

/* "ahead:2:48:1" */
static bool to_ahead(const char *s, size_t n, i32 H, struct ahead_inputs *out) {
    static const char name[] = "ahead:";
    const char *end = s + n;
    i64 v[3];
    if (n < sizeof name || strncmp(s, name, sizeof name - 1) != 0) return false;
    s += sizeof name - 1;
    for (i32 i = 0; i < 3; i++) {
        const size_t size = strcspn(s, ":,)");
        if (s + size > end || !str_to_i64(s, size, &v[i]) || v[i] < (i == 1 ? 0 : 1) || v[i] > 1000000) return false;
        s += size + (i < 2);
    }
    *out = (struct ahead_inputs){.ncol = (i32)v[0], .back = (i32)v[1], .group = (i32)v[2]};
    return s == end && v[0] * ((v[1] + H + v[2] - 1) / v[2]) <= AHEAD_MOST;
}

static bool read_shape(const struct part_text *p, struct ridge *r) {
    i32 at = 3;
    if (!to_i32(p, 0, &r->L) || !to_i32(p, 1, &r->H) || !to_f64(p, 2, &r->penalty)) return false;
    r->calendar = p->narg > at && is_word(p->arg[at], p->narg_len[at], "calendar");
    at += r->calendar;
    if (p->narg > at && to_ahead(p->arg[at], p->narg_len[at], r->H, &r->ahead)) at++;
    return p->narg == at;
}

static err read_ridge(struct base *b, const struct part_text *p, const f32 *w, i64 nw, bool *ok) {
    struct ridge r = {0};
    *ok = !b->ridge && read_shape(p, &r) && w && nw == (i64)ridge_rows(&r) * r.H;
    if (!*ok) return 0;
    const i32 H = r.H;
    TRY(ridge_new(&r, &b->ridge));
    for (i32 i = 0; i < ridge_rows(b->ridge); i++)
        memcpy(b->ridge->w + (i64)i * b->ridge->Hp, w + (i64)i * H, (size_t)H * sizeof *w);
    return 0;
}

static err read_trees(struct base *b, const struct part_text *p, const struct base_tensors *w, bool *ok) {
    struct trees_shape shape;
    struct trees_inputs in;
    *ok = !b->trees && p->narg == 1 && trees_shape_read(p->arg[0], p->narg_len[0], &shape) && trees_inputs_make(&shape, &in);
    if (!*ok) return 0;
    TRY(trees_read(&in, w->trees, w->ntrees, &b->trees));
    *ok = b->trees != NULL;
    return 0;
}

static err read_part(struct base *b, const struct part_text *p, const struct base_tensors *w, bool *ok) {
    i32 kind = 0, want;
    while (kind < BASE_NKIND && !is_word(p->name, p->nname, kinds[kind].name)) kind++;
    *ok = kind < BASE_NKIND && b->npart < BASE_PARTS_MAX && isfinite(p->weight);
    if (!*ok) return 0;
    struct base_part *to = &b->part[b->npart];
    *to = (struct base_part){.kind = (enum base_kind)kind, .weight = p->weight};
    if (kind == BASE_RIDGE) {
        TRY(read_ridge(b, p, w->ridge, w->nridge, ok));
    } else if (kind == BASE_TREES) {
        TRY(read_trees(b, p, w, ok));
    } else {
        want = (i32)kinds[kind].season + (i32)kinds[kind].alpha;
        *ok = p->narg == want && (!kinds[kind].season || to_i32(p, 0, &to->season)) &&
              (!kinds[kind].alpha || (to_f64(p, want - 1, &to->alpha) && to->alpha > 0 && to->alpha <= 1));
    }
    b->npart += *ok;
    return 0;
}

err base_read_all(const char *text, struct base_tensors w, struct base **out) {
    struct base *b;
    struct part_text p;
    const char *at = text;
    bool ok = true;
    NEW(b, 1);
    while (ok && *at) {
        ok = split_part(&at, &p);
        err e = ok ? read_part(b, &p, &w, &ok) : 0;
        if (e < 0) {
            base_free(b);
            return e;
        }
    }
    if (!ok || !b->npart) {
        base_free(b);
        return FAIL(E901, "the base \"%.200s\" is not understood, or its tensor has the wrong size (%lld numbers)", text,
                    (long long)(w.nridge + w.ntrees));
    }
    *out = b;
    return 0;
}
