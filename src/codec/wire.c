/* wire.c - the list of wire codecs (wires.def), and the text "NAME" or "NAME:VALUE" that chooses one. */
#include "base/str.h"
#include "codec/codec.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define WIRE(name) extern const struct wire_codec wire_##name;
#include "codec/wires.def"
#undef WIRE

static const struct wire_codec *const all[] = {
#define WIRE(name) &wire_##name,
#include "codec/wires.def"
#undef WIRE
};

static const char *const names[] = {
#define WIRE(name) #name,
#include "codec/wires.def"
#undef WIRE
};

i32 wire_count(void) { return (i32)COUNT(all); }
const struct wire_codec *wire_at(i32 i) { return all[i]; }

const struct wire_codec *wire_find(const char *name) {
    for (size_t i = 0; i < COUNT(all); i++)
        if (!strcmp(all[i]->name, name)) return all[i];
    return NULL;
}

/* The text of the user, as messages show it. */
static const char *shown(const char *text, char buf[64]) {
    str_print(buf, 64, "\"%.40s%s\"", text, strlen(text) > 40 ? "..." : "");
    for (char *s = buf; *s; s++)
        if ((unsigned char)*s < 32 || *s == 127) *s = '?';
    return buf;
}

static err unknown(const char *text, const char *name) {
    char list[128] = "", buf[64];
    for (size_t i = 0; i < COUNT(all); i++) {
        const size_t len = strlen(list);
        snprintf(list + len, sizeof list - len, "%s%s", i ? ", " : "", names[i]);
    }
    const i32 near = str_nearest(name, names, (i32)COUNT(names));
    return FAIL_AT(E103, NULL, names[near < 0 ? 0 : near], "%s is not one of %s", shown(text, buf), list);
}

static err bad_value(const struct wire_codec *c, const char *text, const char *what) {
    char fix[160], buf[64], value[32], least[32], most[32];
    if (!c->unit) return FAIL_AT(E103, NULL, c->name, "%s has a value, but %s takes none", shown(text, buf), c->name);
    str_from_f64(value, c->value);
    str_from_f64(least, c->least);
    str_from_f64(most, c->most);
    snprintf(fix, sizeof fix, "%s:%s   (%s, %s to %s)", c->name, value, c->unit, least, most);
    return FAIL_AT(E103, NULL, fix, "%s %s: %s, %s to %s", shown(text, buf), what, c->unit, least, most);
}

err wire_parse(const char *text, struct wire_choice *out) {
    char name[32] = "";
    const size_t n = strcspn(text, ":");
    snprintf(name, sizeof name, "%.*s", (int)(n < 31 ? n : 31), text);
    const struct wire_codec *c = wire_find(name);
    if (!c) return unknown(text, name);
    f64 value = c->value;
    if (text[n]) {
        const char *number = text + n + 1;
        if (!c->unit) return bad_value(c, text, NULL);
        if (!str_to_f64(number, strlen(number), '.', &value) || !isfinite(value)) return bad_value(c, text, "has no number");
        if (!(value >= c->least && value <= c->most)) return bad_value(c, text, "is out of range");
        if (c->whole && value != floor(value)) return bad_value(c, text, "has no whole number");
    }
    *out = (struct wire_choice){c, value};
    return 0;
}
