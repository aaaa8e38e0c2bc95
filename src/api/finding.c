/* finding.c - a finding of `stretto check` for people, and as JSON. */
#include <stdio.h>
#include <string.h>

#include "api/check.h"
#include "base/json.h"

void finding_text(const struct finding *f, struct str *out) {
    size_t n = strcspn(f->r.text, "\n");
    str_addf(out, "%s[%c%03d] %s%s%.*s\n", f->warning ? "warning" : "error", f->warning ? 'W' : 'E', f->r.code, f->r.where,
             f->r.where[0] ? ": " : "", (int)n, f->r.text);
    str_add_lines(out, "  ", f->r.text + n + (f->r.text[n] ? 1 : 0));
    str_add_lines(out, "  fix: ", f->r.fix);
}

struct js *finding_json(const struct finding *f) {
    struct js *o = js_object();
    char code[16];
    snprintf(code, sizeof code, "%c%03d", f->warning ? 'W' : 'E', f->r.code);
    js_put_text(o, "code", code);
    js_put_bool(o, "warning", f->warning);
    js_put_text(o, "where", f->r.where);
    js_put_text(o, "text", f->r.text);
    js_put_text(o, "fix", f->r.fix);
    return o;
}
