/* opt.c - the option table, checking and storing values, presets.  Reading of values is opt_parse.c, dumps are opt_dump.c. */
#include "opt/opt.h"

#include <stdio.h>
#include <string.h>

#include "opt/opt_parse.h"

const struct opt_from OPT_FLAG = {.rank = OPT_RANK_FLAG}, OPT_API = {.rank = OPT_RANK_API};

static const struct verb_info verbs[] = {
#define VERB(name, least, most, args, help) {#name, least, most, args, help},
#include "opt/verbs.def"
#undef VERB
};

static const struct opt_info table[] = {
#define OPT(TYPE, field, name, def, least, most, unit, GROUP, READER, verbs, help)                                               \
    {name, def, OPT_##TYPE, OPT_##GROUP, least, most, unit, verbs, help, offsetof(struct options, field)},
#include "base/options.def"
#undef OPT
};

static const struct {
    char letter;
    enum opt_id id;
} letters[] = {
#define OPT(...)
#define LETTER(c, field) {c, OPT_##field},
#include "base/options.def"
#undef OPT
};

static const struct preset_info presets[] = {
#define PRESET(name, when) {#name, when},
#include "opt/presets.def"
};

static const struct {
    const char *preset;
    enum opt_id id;
    const char *text;
} preset_values[] = {
#define SET(preset, field, value) {#preset, OPT_##field, value},
#include "opt/presets.def"
};

const struct verb_info *verb_info(enum verb verb) { return &verbs[verb]; }

i32 verb_find(const char *name) {
    for (i32 i = 0; i < VERB_COUNT; i++)
        if (strcmp(verbs[i].name, name) == 0) return i;
    return -1;
}

const struct opt_info *opt_info(enum opt_id id) { return &table[id]; }

char opt_letter(enum opt_id id) {
    for (size_t i = 0; i < COUNT(letters); i++)
        if (letters[i].id == id) return letters[i].letter;
    return 0;
}

i32 opt_find_letter(char c) {
    for (size_t i = 0; i < COUNT(letters); i++)
        if (letters[i].letter == c) return (i32)letters[i].id;
    return -1;
}

static bool same_name(const char *a, const char *b) {
    for (; *a && *b; a++, b++)
        if (*a != *b && !(*a == '-' && *b == '_')) return false;
    return *a == *b;
}

i32 opt_find(const char *name) {
    for (i32 i = 0; i < OPT_COUNT; i++)
        if (same_name(table[i].name, name)) return i;
    return -1;
}

const char *opt_group_name(enum opt_group group) {
    static const char *const name[] = {"Data", "Model", "Other tasks", "Training", "Machine", "Output", "This verb", "Hidden"};
    return name[group];
}

bool opt_is_auto(const struct options *o, enum opt_id id) {
    return strcmp(table[id].def, "auto") == 0 && strcmp(o->meta[id].text, "auto") == 0;
}

bool opt_given(const struct options *o, enum opt_id id) { return o->meta[id].rank >= OPT_RANK_FILE; }

const char *opt_get_text(const struct options *o, const char *name) {
    i32 id = opt_find(name);
    return id < 0 ? NULL : o->meta[id].text;
}

/* Stores a checked value in its field and its record. */
static err store(struct options *o, enum opt_id id, const struct opt_value *v, enum opt_rank rank, const char *origin) {
    void *field = (char *)o + table[id].offset;
    const char *text, *from;
    TRY(arena_keep(&o->strings, &text, v->text));
    TRY(arena_keep(&o->strings, &from, origin));
    switch (table[id].type) {
    case OPT_BOOL: *(bool *)field = v->b; break;
    case OPT_INT:
    case OPT_SIZE: *(i64 *)field = v->i; break;
    case OPT_REAL:
    case OPT_TIME: *(f64 *)field = v->f; break;
    case OPT_WORD:
    case OPT_TEXT:
    case OPT_PATH:
    case OPT_LIST:
    case OPT_NUMS: *(const char **)field = text[0] ? text : NULL; break;
    }
    struct opt_meta *m = &o->meta[id];
    m->text = text;
    m->origin = from;
    m->rank = rank;
    m->resolved = false;
    m->order = ++o->order;
    return 0;
}

static err set(struct options *o, enum opt_id id, const char *text, const struct opt_from *from, const char *origin) {
    struct opt_value v = {0};
    err e = 0;
    struct opt_meta *m = &o->meta[id];
    TRY_OUT(opt_parse(o->lists, &table[id], text, from, &v));
    if (m->origin && from->rank < m->rank) {
        if (from->rank == OPT_RANK_PRESET) e = arena_keep(&o->strings, &m->preset, v.text);
    } else {
        e = store(o, id, &v, from->rank, origin);
    }
out:
    str_free(&v.buffer);
    return e;
}

err opt_defaults(struct options *o, const struct opt_list *lists) {
    static const struct opt_from from = {.rank = OPT_RANK_DEFAULT};
    memset(o, 0, sizeof *o);
    o->lists = lists;
    for (i32 i = 0; i < OPT_COUNT; i++) TRY(set(o, (enum opt_id)i, table[i].def, &from, "default"));
    return 0;
}

void opt_free(struct options *o) {
    arena_free(&o->strings);
    memset(o, 0, sizeof *o);
}

err opt_copy(struct options *dst, const struct options *src) {
    TRY(opt_defaults(dst, src->lists));
    for (i32 order = 1; order <= src->order; order++) {
        for (i32 i = 0; i < OPT_COUNT; i++) {
            const struct opt_meta *m = &src->meta[i];
            if (m->order != order || (m->rank == OPT_RANK_DEFAULT && !m->resolved)) continue;
            struct opt_from from = {.rank = m->rank, .origin = m->origin};
            TRY(set(dst, (enum opt_id)i, m->text, &from, m->origin));
            dst->meta[i].resolved = m->resolved;
            if (m->preset) TRY(arena_keep(&dst->strings, &dst->meta[i].preset, m->preset));
        }
    }
    return src->preset_name ? arena_keep(&dst->strings, &dst->preset_name, src->preset_name) : 0;
}

err opt_unknown(const char *name, const char *shown, u32 mask, const struct opt_from *from) {
    const char *names[OPT_COUNT];
    i32 n = 0;
    for (i32 i = 0; i < OPT_COUNT; i++)
        if ((table[i].verbs & mask) && table[i].group != OPT_HIDDEN) names[n++] = table[i].name;
    i32 near = str_nearest(name, names, n);
    char fix[160] = "";
    bool file = from->rank == OPT_RANK_FILE;
    if (near >= 0) snprintf(fix, sizeof fix, "%s%s   (did you mean this?)", file ? "" : "--", names[near]);
    else snprintf(fix, sizeof fix, "stretto help options   (lists them all)");
    return FAIL_AT(E101, from->where, fix, "there is no option \"%.80s\"", shown);
}

err opt_set_id(struct options *o, enum opt_id id, const char *text, const struct opt_from *from) {
    static const char *const origin[] = {"default", "preset", "file", "flag", "API call"};
    return set(o, id, text, from, from->origin ? from->origin : origin[from->rank]);
}

err opt_set(struct options *o, const char *name, const char *text, const struct opt_from *from) {
    i32 id = opt_find(name);
    if (id < 0) return opt_unknown(name, name, ~0u, from);
    return opt_set_id(o, (enum opt_id)id, text, from);
}

err opt_resolve(struct options *o, enum opt_id id, const char *text, const char *why) {
    if (!opt_is_auto(o, id)) return 0;
    char origin[256];
    snprintf(origin, sizeof origin, "auto: %s", why);
    struct opt_from from = {.rank = o->meta[id].rank};
    TRY(set(o, id, text, &from, origin));
    o->meta[id].resolved = true;
    return 0;
}

err opt_set_origin(struct options *o, enum opt_id id, const char *origin) {
    return arena_keep(&o->strings, &o->meta[id].origin, origin);
}

err opt_preset(struct options *o, const char *name) {
    char origin[64];
    bool known = false;
    struct opt_from from = {.rank = OPT_RANK_PRESET};
    snprintf(origin, sizeof origin, "preset %s", name);
    for (size_t i = 0; i < COUNT(presets); i++) known |= strcmp(presets[i].name, name) == 0;
    if (!known) return FAIL(E103, "there is no preset \"%s\"", name);
    TRY(arena_keep(&o->strings, &o->preset_name, name));
    for (size_t i = 0; i < COUNT(preset_values); i++)
        if (strcmp(preset_values[i].preset, name) == 0) TRY(set(o, preset_values[i].id, preset_values[i].text, &from, origin));
    return 0;
}

i32 preset_count(void) { return (i32)COUNT(presets); }
const struct preset_info *preset_at(i32 index) { return &presets[index]; }

bool preset_value(const char *name, i32 index, enum opt_id *id, const char **text) {
    for (size_t i = 0; i < COUNT(preset_values); i++) {
        if (strcmp(preset_values[i].preset, name) != 0 || index-- > 0) continue;
        *id = preset_values[i].id;
        *text = preset_values[i].text;
        return true;
    }
    return false;
}

/* E106 if both of two exclusive options are given. */
static err either(const struct options *o, enum opt_id a, enum opt_id b) {
    if (!opt_given(o, a) || !opt_given(o, b) || opt_is_auto(o, a) || opt_is_auto(o, b)) return 0;
    char fix[160];
    snprintf(fix, sizeof fix, "leave out --%s %s   or   leave out --%s %s", table[a].name, o->meta[a].text,
             table[b].name, o->meta[b].text);
    return FAIL_AT(E106, NULL, fix, "--%s (%s) and --%s (%s) say the same thing twice", table[a].name, o->meta[a].origin,
                   table[b].name, o->meta[b].origin);
}

err opt_check(const struct options *o) {
    TRY(either(o, OPT_steps, OPT_epochs));
    if (!o->correction && strcmp(o->base, "none") == 0)
        return FAIL_AT(E106, NULL, "--base auto   or   leave out --no-correction",
                       "with neither base nor correction there is no model");
    return 0;
}
