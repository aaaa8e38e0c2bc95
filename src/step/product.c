/* product.c - reads and writes products of cuts.
 *
 *     product   cut { "*" cut }        cut   name [":" number]        name   of strategies.def, or its alias */
#include "step/product.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "step/strategy/strategy.h"

static const char spaces[] = " \t";

/* A factor of the text, and the whole text. */
struct factor {
    const char *whole, *s;
    int n;
    bool alone; /* it is the only factor */
};

/* `"data:2*unit:2": `, the prefix of a message about one of several factors. */
static const char *inside(const struct factor *f, char *out, size_t size) {
    out[0] = 0;
    if (!f->alone) snprintf(out, size, "\"%.100s\": ", f->whole);
    return out;
}

/* The whole text with the factor replaced. */
static void replaced(const struct factor *f, const char *by, char *out, size_t size) {
    snprintf(out, size, "--parallel %.*s%s%.100s", (int)(f->s - f->whole), f->whole, by, f->s + f->n);
}

/* The strategy whose name or alias is nearest to a word; "auto" counts as a name. */
static const char *nearest_name(const char *word) {
    const char *names[64] = {"auto"}, *of[64] = {"auto"};
    i32 n = 1;
    for (i32 i = 0; i < strategy_count() && n + 2 <= (i32)COUNT(names); i++) {
        const struct strategy *s = strategy_at(i);
        names[n] = s->name, of[n++] = s->name;
        if (s->alias) names[n] = s->alias, of[n++] = s->name;
    }
    const i32 near = str_nearest(word, names, n);
    return near < 0 ? NULL : of[near];
}

static err unknown(const struct factor *f, const char *name) {
    char list[256] = "auto", fix[256], before[128];
    const char *near = nearest_name(name);
    for (i32 i = 0; i < strategy_count(); i++) {
        const size_t len = strlen(list);
        snprintf(list + len, sizeof list - len, ", %s", strategy_at(i)->name);
    }
    if (near && !f->alone) {
        char by[96];
        const char *colon = memchr(f->s, ':', (size_t)f->n);
        const int digits = colon ? (int)strspn(colon + 1, "0123456789") : 0;
        snprintf(by, sizeof by, "%s%.*s", near, digits > 0 ? digits + 1 : 0, digits > 0 ? colon : "");
        replaced(f, by, fix, sizeof fix);
    } else {
        snprintf(fix, sizeof fix, "--parallel %s", near ? near : "auto");
    }
    return FAIL_AT(E401, "--parallel", fix, "%sunknown strategy \"%s\" (known: %s)%s%s%s", inside(f, before, sizeof before), name,
                   list, near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}

static err bad_number(const struct factor *f, const struct strategy *s) {
    char before[128], fix[256];
    if (f->alone) snprintf(fix, sizeof fix, s->slices ? "--parallel %s:16" : "--parallel auto", s->name);
    else replaced(f, s->name, fix, sizeof fix);
    return FAIL_AT(E401, "--parallel", fix, "%s\"%.*s\": a number of %s from 1 to %d must follow the colon",
                   inside(f, before, sizeof before), f->n < 64 ? f->n : 64, f->s, s->slices ? "time slices" : "devices",
                   s->slices ? SLICES_MAX : MACHINE_DEVICES);
}

/* E401 for a repeated cut. The fix has it once without a number: as many parts as are useful, which fits any machine. No
 * fix if more of the text is unread or time slices are among the cuts: no product is known to fit. */
static err twice(const struct factor *f, const struct product *p, const struct plan_cut *c) {
    struct product once = *p;
    char name[PRODUCT_TEXT], fix[96];
    for (i32 i = 0; i < once.n; i++)
        if (once.cut[i].s == c->s) once.cut[i].wanted = 0;
    const bool unread = strchr(f->s + f->n, '*') != NULL;
    if (unread || (once.n > 1 && product_slices(&once) >= 0)) once.n = 0;
    product_name(&once, 0, name);
    snprintf(fix, sizeof fix, "--parallel %s", name);
    return FAIL_AT(E401, "--parallel", fix, "\"%.100s\": the cut %s is used twice", f->whole, c->s->name);
}

static err lonely(const struct factor *f, const char *name) {
    char fix[96];
    snprintf(fix, sizeof fix, "--parallel %s", name);
    return FAIL_AT(E401, "--parallel", fix, "\"%.100s\": %s cannot be combined with a cut", f->whole, name);
}

static err uncounted(const struct strategy *s) {
    char fix[96];
    snprintf(fix, sizeof fix, "--parallel %s", s->name);
    return FAIL_AT(E401, "--parallel", fix, "strategy %s takes no number of devices", s->name);
}

static err factor(const struct factor *f, struct product *out) {
    const char *colon = memchr(f->s, ':', (size_t)f->n);
    char name[PRODUCT_TEXT];
    struct plan_cut c = {0};
    i64 v = 0;
    snprintf(name, sizeof name, "%.*s", colon ? (int)(colon - f->s) : f->n, f->s);
    const bool open = strcmp(name, "auto") == 0;
    c.s = strategy_find(name);
    if (!c.s && !open) return unknown(f, name);
    if (!f->alone && (open || !c.s->cut)) return lonely(f, open ? name : c.s->name);
    if (open) return colon ? FAIL_AT(E401, "--parallel", "--parallel data", "auto takes no number of devices") : 0;
    if (colon) {
        const size_t n = (size_t)(f->s + f->n - colon) - 1;
        if (!str_to_i64(colon + 1, n, &v) || v < 1 || v > (c.s->slices ? SLICES_MAX : MACHINE_DEVICES))
            return bad_number(f, c.s);
        if (!c.s->counted) return uncounted(c.s);
    }
    c.wanted = (i32)v;
    for (i32 i = 0; i < out->n; i++)
        if (out->cut[i].s == c.s) return twice(f, out, &c);
    out->cut[out->n++] = c;
    return 0;
}

err product_parse(const char *text, struct product *out) {
    const bool alone = !strchr(text, '*');
    *out = (struct product){0};
    for (const char *at = text;; at++) {
        const char *end = at + strcspn(at, "*");
        struct factor f = {.whole = text, .s = at + strspn(at, spaces), .alone = alone};
        while (f.s < end && end > f.s && strchr(spaces, end[-1])) end--;
        f.n = end > f.s ? (int)(end - f.s) : 0;
        if (f.n == 0 && !alone)
            return FAIL_AT(E401, "--parallel", "--parallel auto", "\"%.100s\": a cut is missing %s", text,
                           at == text ? "before the first *" : "after a *");
        if (out->n == CUTS_MOST)
            return FAIL_AT(E401, "--parallel", "--parallel auto", "\"%.100s\" has more than %d cuts", text, CUTS_MOST);
        TRY(factor(&f, out));
        at += strcspn(at, "*");
        if (!*at) return 0;
    }
}

void cut_name(const struct plan_cut *c, i32 slices, char out[PRODUCT_TEXT]) {
    const i32 parts = c->n > 0 ? c->n : c->wanted, n = !c->s->slices ? parts : slices > 0 ? slices : c->wanted;
    snprintf(out, PRODUCT_TEXT, c->s->counted && n > 0 ? "%s:%d" : "%s", c->s->name, n);
}

void product_name(const struct product *p, i32 slices, char out[PRODUCT_TEXT]) {
    char one[PRODUCT_TEXT];
    size_t len = 0;
    out[0] = 0;
    for (i32 i = 0; i < p->n && len < PRODUCT_TEXT; i++) {
        cut_name(&p->cut[i], slices, one);
        len += (size_t)snprintf(out + len, PRODUCT_TEXT - len, "%s%s", i > 0 ? "*" : "", one);
    }
    if (p->n == 0) snprintf(out, PRODUCT_TEXT, "auto");
}

i32 product_slices(const struct product *p) {
    for (i32 i = 0; i < p->n; i++)
        if (p->cut[i].s->slices) return i;
    return -1;
}

bool product_has(const struct product *p, const struct strategy *s) {
    for (i32 i = 0; i < p->n; i++)
        if (p->cut[i].s == s) return true;
    return false;
}

void product_drop(struct product *p, i32 cut) {
    memmove(&p->cut[cut], &p->cut[cut + 1], (size_t)(--p->n - cut) * sizeof *p->cut);
}

bool product_exact(const struct product *p) {
    bool exact = true;
    for (i32 i = 0; i < p->n; i++) exact = exact && p->cut[i].s->exact;
    return exact;
}
