/* wisdom.c - see wisdom.h: parses lines to entries and prints them; merges with the file when it is written. */
#include "tune/wisdom.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "base/file.h"
#include "base/mem.h"

enum { FILE_BYTES = 4 << 20, MOST = 1 << 30 };
static const char HEAD[] = "# stretto wisdom ";

static const char *const kinds[TUNE_NKIND] = {"how", "precision"};
static const char *const variants[TUNE_NKIND][TUNE_VARIANTS] = {{"fold", "ahead"}, {"fp32", "bf16"}};
static const char *const cells[CELL_NKIND] = {"lstm", "gru", "rnn"};
static const char *const precisions[PREC_N] = {"fp32", "bf16"};

const char *tune_variant_name(enum tune_kind kind, i32 variant) { return variants[kind][variant]; }

/* --- a line to an entry --- */

struct words {
    const char *at, *end;
};

/* Next word, up to a space; n = 0 at the end. */
static const char *word(struct words *w, size_t *n) {
    while (w->at < w->end && *w->at == ' ') w->at++;
    const char *s = w->at;
    while (w->at < w->end && *w->at != ' ') w->at++;
    *n = (size_t)(w->at - s);
    return s;
}

/* Value of the next word, which must be "name=value". */
static const char *value(struct words *w, const char *name, size_t *n) {
    size_t len = strlen(name);
    const char *s = word(w, n);
    if (*n <= len + 1 || memcmp(s, name, len) != 0 || s[len] != '=') return NULL;
    *n -= len + 1;
    return s + len + 1;
}

static bool get_text(struct words *w, const char *name, char *out, size_t size) {
    size_t n;
    const char *s = value(w, name, &n);
    if (!s || n >= size) return false;
    for (size_t i = 0; i < n; i++)
        if (s[i] <= ' ' || s[i] > '~') return false;
    memcpy(out, s, n);
    out[n] = 0;
    return true;
}

static i32 index_of(const char *s, size_t n, const char *const *list, i32 count) {
    for (i32 i = 0; s && i < count; i++)
        if (strlen(list[i]) == n && memcmp(s, list[i], n) == 0) return i;
    return -1;
}

static bool get_index(struct words *w, const char *name, const char *const *list, i32 count, i32 *out) {
    size_t n = 0;
    const char *s = value(w, name, &n);
    *out = index_of(s, n, list, count);
    return *out >= 0;
}

static bool get_count(struct words *w, const char *name, i32 *out) {
    size_t n = 0;
    i64 v;
    const char *s = value(w, name, &n);
    if (!s || !str_to_i64(s, n, &v) || v < 1 || v > MOST) return false;
    *out = (i32)v;
    return true;
}

/* "571.2us" or "21.3ms" or "1.2s". */
static bool get_seconds(struct words *w, const char *name, f64 *out) {
    static const struct {
        const char *text;
        f64 scale;
    } unit[] = {{"us", 1e-6}, {"ms", 1e-3}, {"s", 1}};
    size_t n = 0;
    const char *s = value(w, name, &n);
    for (size_t i = 0; s && i < COUNT(unit); i++) {
        size_t len = strlen(unit[i].text);
        if (n <= len || memcmp(s + n - len, unit[i].text, len) != 0) continue;
        if (!str_to_f64(s, n - len, '.', out)) return false;
        *out *= unit[i].scale;
        return *out > 0 && *out < 1e9;
    }
    return false;
}

/* The rest of a line that began with "cost". */
static bool parse_cost(struct words *w, struct tune_seconds *c) {
    size_t len;
    *c = (struct tune_seconds){0};
    const bool key = get_text(w, "cpu", c->cpu, sizeof c->cpu) && get_text(w, "table", c->table, sizeof c->table) &&
                     get_count(w, "threads", &c->threads) && get_text(w, "work", c->work, sizeof c->work);
    if (!key || !get_seconds(w, "seconds", &c->seconds)) return false;
    word(w, &len);
    return len == 0;
}

static bool parse(const char *line, size_t n, struct tune_entry *e) {
    struct words w = {line, line + n};
    struct tune_key *k = &e->key;
    size_t len;
    const char *first = word(&w, &len);
    i32 kind = index_of(first, len, kinds, TUNE_NKIND), cell, precision = 0;
    *e = (struct tune_entry){0};
    if (kind < 0) return false;
    k->kind = (enum tune_kind)kind;
    if (!get_text(&w, "cpu", k->cpu, sizeof k->cpu) || !get_text(&w, "table", k->table, sizeof k->table)) return false;
    if (!get_index(&w, "cell", cells, CELL_NKIND, &cell)) return false;
    if (kind == TUNE_HOW && !get_index(&w, "precision", precisions, PREC_N, &precision)) return false;
    k->cell = (enum cell_kind)cell;
    k->precision = (enum precision)precision;
    bool sizes = get_count(&w, "T", &k->T) && get_count(&w, "B", &k->B) && get_count(&w, "I", &k->I) &&
                 get_count(&w, "H", &k->H) && get_count(&w, "threads", &k->threads);
    if (!sizes || !get_index(&w, "best", variants[kind], TUNE_VARIANTS, &e->best)) return false;
    for (i32 i = 0; i < TUNE_VARIANTS; i++)
        if (!get_seconds(&w, variants[kind][i], &e->seconds[i])) return false;
    word(&w, &len);
    return len == 0;
}

/* --- an entry to a line --- */

static void put_seconds(const char *name, f64 s, struct str *out) {
    const char *unit = s < 1e-3 ? "us" : s < 1 ? "ms" : "s";
    f64 scale = s < 1e-3 ? 1e6 : s < 1 ? 1e3 : 1;
    str_addf(out, " %s=%.4g%s", name, s * scale, unit);
}

void wisdom_line(const struct tune_entry *e, struct str *out) {
    const struct tune_key *k = &e->key;
    str_addf(out, "%s cpu=%s table=%s cell=%s", kinds[k->kind], k->cpu, k->table, cells[k->cell]);
    if (k->kind == TUNE_HOW) str_addf(out, " precision=%s", precisions[k->precision]);
    str_addf(out, " T=%d B=%d I=%d H=%d threads=%d best=%s", k->T, k->B, k->I, k->H, k->threads, variants[k->kind][e->best]);
    for (i32 i = 0; i < TUNE_VARIANTS; i++) put_seconds(variants[k->kind][i], e->seconds[i], out);
}

static void cost_line(const struct tune_seconds *c, struct str *out) {
    str_addf(out, "cost cpu=%s table=%s threads=%d work=%s", c->cpu, c->table, c->threads, c->work);
    put_seconds("seconds", c->seconds, out);
}

void wisdom_print(const struct wisdom *w, struct str *out) {
    str_addf(out, "%s%d   (measured on this machine, a line each; delete one to measure it again)\n", HEAD,
             WISDOM_VERSION);
    for (i32 i = 0; i < w->n; i++) {
        wisdom_line(&w->entry[i], out);
        str_add(out, "\n");
    }
    for (i32 i = 0; i < w->ncost; i++) {
        cost_line(&w->cost[i], out);
        str_add(out, "\n");
    }
}

/* --- all of them --- */

static bool same(const struct tune_key *a, const struct tune_key *b) {
    return a->kind == b->kind && a->cell == b->cell && a->precision == b->precision && a->T == b->T && a->B == b->B &&
           a->I == b->I && a->H == b->H && a->threads == b->threads && strcmp(a->cpu, b->cpu) == 0 &&
           strcmp(a->table, b->table) == 0;
}

const struct tune_entry *wisdom_find(const struct wisdom *w, const struct tune_key *key) {
    for (i32 i = 0; i < w->n; i++)
        if (same(&w->entry[i].key, key)) return &w->entry[i];
    return NULL;
}

err wisdom_put(struct wisdom *w, const struct tune_entry *e) {
    for (i32 i = 0; i < w->n; i++)
        if (same(&w->entry[i].key, &e->key)) {
            w->entry[i] = *e;
            return 0;
        }
    if (w->n == WISDOM_LINES) { /* drop the oldest */
        memmove(w->entry, w->entry + 1, (size_t)(w->n - 1) * sizeof *w->entry);
        w->n--;
    }
    GROW(w->entry, w->n, w->cap);
    w->entry[w->n++] = *e;
    return 0;
}

static bool same_cost(const struct tune_seconds *a, const struct tune_seconds *b) {
    return a->threads == b->threads && strcmp(a->work, b->work) == 0 && strcmp(a->table, b->table) == 0 &&
           strcmp(a->cpu, b->cpu) == 0;
}

err wisdom_put_cost(struct wisdom *w, const struct tune_seconds *c) {
    for (i32 i = 0; i < w->ncost; i++)
        if (same_cost(&w->cost[i], c)) {
            w->cost[i] = *c;
            return 0;
        }
    if (w->ncost == WISDOM_LINES) { /* drop the oldest */
        memmove(w->cost, w->cost + 1, (size_t)(w->ncost - 1) * sizeof *w->cost);
        w->ncost--;
    }
    GROW(w->cost, w->ncost, w->cap_cost);
    w->cost[w->ncost++] = *c;
    return 0;
}

/* Version after HEAD; 0 = not a wisdom file. */
static i64 version_of(const char *text, size_t n) {
    size_t head = sizeof HEAD - 1, digits = 0;
    i64 v = 0;
    if (n <= head || memcmp(text, HEAD, head) != 0) return 0;
    while (head + digits < n && text[head + digits] >= '0' && text[head + digits] <= '9') digits++;
    return digits > 0 && digits < 9 && str_to_i64(text + head, digits, &v) ? v : 0;
}

static err read_line(struct wisdom *w, const char *at, const char *end, bool *good) {
    static const char cost[] = "cost ";
    struct words rest = {at + sizeof cost - 1, end};
    struct tune_entry e;
    struct tune_seconds c;
    const bool of_cost = rest.at < end && memcmp(at, cost, sizeof cost - 1) == 0;
    *good = of_cost ? parse_cost(&rest, &c) : parse(at, (size_t)(end - at), &e);
    if (!*good) return 0;
    return of_cost ? wisdom_put_cost(w, &c) : wisdom_put(w, &e);
}

err wisdom_read(struct wisdom *w, const char *text, size_t n) {
    i32 number = 1, bad = 0, first = 0;
    w->damage[0] = 0;
    w->foreign = n > 0 && version_of(text, n) != WISDOM_VERSION;
    if (w->foreign) {
        snprintf(w->damage, sizeof w->damage, "it is not a wisdom file of version %d and was not changed", WISDOM_VERSION);
        return 0;
    }
    for (const char *at = text, *end = text + n, *next; at < end; at = next, number++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        bool good;
        next = stop ? stop + 1 : end;
        if (!stop) stop = end;
        if (stop == at || *at == '#') continue;
        TRY(read_line(w, at, stop, &good));
        if (!good && bad++ == 0) first = number;
    }
    if (bad > 1)
        snprintf(w->damage, sizeof w->damage, "line %d and %d more are damaged and were left out", first, bad - 1);
    else if (bad)
        snprintf(w->damage, sizeof w->damage, "line %d is damaged and was left out", first);
    return 0;
}

/* --- the processor --- */

#if defined(__x86_64__)
/* Family, model and stepping as packed by cpuid. */
static u32 revision(void) {
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid(1, &a, &b, &c, &d) ? a : 0;
}
#else
/* no revision on other architectures */
static u32 revision(void) { return 0; }
#endif

void cpu_signature(const char *name, char out[WISDOM_CPU]) {
    snprintf(out, WISDOM_CPU, "%.48s/%x", *name ? name : "cpu", revision());
    for (char *p = out; *p; p++)
        if (*p <= ' ' || *p > '~' || *p == '=') *p = '_';
}

/* --- the file --- */

static err join(char **out, const char *a, const char *b) {
    struct str s = {0};
    str_addf(&s, "%s%s", a, b);
    err e = str_ok(&s);
    *out = s.s;
    if (e < 0) str_free(&s), *out = NULL;
    return e;
}

static err find_path(struct wisdom *w) {
    const char *wish = getenv("STRETTO_WISDOM"), *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (wish && strcmp(wish, "off") == 0) {
        w->off = true;
        return 0;
    }
    if (wish && *wish) return join(&w->path, wish, "");
    if (cache && *cache == '/') return join(&w->path, cache, "/stretto/wisdom");
    return home && *home == '/' ? join(&w->path, home, "/.cache/stretto/wisdom") : 0;
}

/* What the file held when it was read last, for processes that open it again and again: thousands of lines take 10 ms. */
static struct {
    pthread_mutex_t lock;
    struct stat file;
    struct wisdom content; /* path NULL */
} last = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool unchanged(const struct stat *a, const struct stat *b) {
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* Copies what was read; path and cpu of `to` stay. */
static err copy_lines(const struct wisdom *from, struct wisdom *to) {
    if (from->n) {
        NEW(to->entry, from->n);
        memcpy(to->entry, from->entry, (size_t)from->n * sizeof *to->entry);
    }
    if (from->ncost) {
        NEW(to->cost, from->ncost);
        memcpy(to->cost, from->cost, (size_t)from->ncost * sizeof *to->cost);
    }
    to->n = from->n, to->cap = from->n;
    to->ncost = from->ncost, to->cap_cost = from->ncost;
    to->foreign = from->foreign;
    memcpy(to->damage, from->damage, sizeof to->damage);
    return 0;
}

static void forget_lines(void) {
    mem_free(last.content.entry);
    mem_free(last.content.cost);
    last.content = (struct wisdom){0};
    last.file = (struct stat){0};
}

/* The file is replaced, never changed: one that is the same by its number, size and time has the same lines. */
static err read_lines(struct wisdom *w, const struct stat *info) {
    char *text;
    i64 n;
    if (last.file.st_ino && unchanged(&last.file, info)) return copy_lines(&last.content, w);
    TRY(file_load(w->path, FILE_BYTES, &text, &n));
    err e = wisdom_read(w, text, (size_t)n);
    mem_free(text);
    forget_lines();
    if (e < 0 || n == 0) return e;
    if (copy_lines(w, &last.content) >= 0) last.file = *info;
    else {
        forget_lines(); /* it is read again next time */
        err_clear();
    }
    return 0;
}

static err read_file(struct wisdom *w) {
    struct stat info;
    if (!w->path || stat(w->path, &info) != 0) return 0;
    if (!S_ISREG(info.st_mode))
        return FAIL_AT(E701, w->path, "STRETTO_WISDOM=off, or the path of a file", "it is not a regular file");
    pthread_mutex_lock(&last.lock);
    const err e = read_lines(w, &info);
    pthread_mutex_unlock(&last.lock);
    return e;
}

err wisdom_open(const char *cpu, struct wisdom *out) {
    *out = (struct wisdom){0};
    cpu_signature(cpu, out->cpu);
    err e = find_path(out);
    if (e >= 0) e = read_file(out);
    if (e == -E601) wisdom_close(out);
    if ((e >= 0 && !out->foreign) || e == -E601) return e;
    if (e < 0) {
        snprintf(out->damage, sizeof out->damage, "it cannot be read: %.200s", err_last()->text);
        err_clear();
    }
    mem_free(out->path);
    out->path = NULL;
    return 0;
}

void wisdom_close(struct wisdom *w) {
    mem_free(w->path);
    mem_free(w->entry);
    mem_free(w->cost);
    *w = (struct wisdom){0};
}

/* Two processes would share the temporary name of file_write_all: writes a file with a unique name and renames it. */
static err write_file(const char *path, const struct str *text) {
    char own[32], *mine;
    snprintf(own, sizeof own, ".%ld", (long)getpid());
    TRY(file_make_parent(path));
    TRY(join(&mine, path, own));
    err e = file_write_all(mine, text->s, (i64)text->len);
    if (e >= 0 && rename(mine, path) != 0) {
        remove(mine);
        e = FAIL_AT(E702, path, "STRETTO_WISDOM=off, or the path of a file that may be written", "the wisdom cannot be replaced");
    }
    mem_free(mine);
    return e;
}

err wisdom_save(struct wisdom *w) {
    struct wisdom file = {.path = w->path};
    struct str text = {0};
    err e = 0;
    bool any = false;
    for (i32 i = 0; i < w->n; i++) any = any || w->entry[i].fresh;
    for (i32 i = 0; i < w->ncost; i++) any = any || w->cost[i].fresh;
    if (!w->path || !any) return 0;
    e = read_file(&file);
    if (e >= 0 && file.foreign)
        e = FAIL_AT(E702, w->path, "STRETTO_WISDOM=off, or the path of a file of its own", "%s", file.damage);
    for (i32 i = 0; i < w->n && e >= 0; i++)
        if (w->entry[i].fresh) e = wisdom_put(&file, &w->entry[i]);
    for (i32 i = 0; i < w->ncost && e >= 0; i++)
        if (w->cost[i].fresh) e = wisdom_put_cost(&file, &w->cost[i]);
    if (e >= 0) {
        wisdom_print(&file, &text);
        e = str_ok(&text);
    }
    if (e >= 0) e = write_file(w->path, &text);
    for (i32 i = 0; i < w->n && e >= 0; i++) w->entry[i].fresh = false;
    for (i32 i = 0; i < w->ncost && e >= 0; i++) w->cost[i].fresh = false;
    str_free(&text);
    mem_free(file.entry);
    mem_free(file.cost);
    return e;
}
