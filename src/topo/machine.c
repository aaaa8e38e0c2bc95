/* machine.c - parses and prints the text form of a machine.
 *
 *     host*2(cpu*4,gpu*1) gflops=60 link_us=8            or, on one rank: gpu*4 cpu*16
 *     |      |            '-- key=value: one number for all devices (links)
 *     |      '-- devices of each host; kinds with default rates below
 *     '-- ranks; without 'host' there is one */
#include "topo/machine.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"

/* Default rates of a device kind until it is measured. */
static const struct kind {
    const char *name;
    f64 gflops, gbytes;
    i64 memory;
} kinds[] = {
#define DEVICE(name, gflops, gbytes, memory) {#name, gflops, gbytes, (i64)(memory) << 30},
#define PLANNED DEVICE
#include "topo/devices.def"
#undef PLANNED
#undef DEVICE
};

static const char known_kinds[] = "an unknown kind of device (known:"
#define DEVICE(name, gflops, gbytes, memory) " " #name
#define PLANNED DEVICE
#include "topo/devices.def"
#undef PLANNED
#undef DEVICE
                                  ")";

/* The keys with one number, beside shares: of every device or of the machine; bytes are i64, others f64. */
static const struct key {
    const char *name;
    bool device, bytes;
    size_t at;
    const char *remedy;
} keys[] = {
    {"gflops", true, false, offsetof(struct device, gflops), "gflops=50   (fp32 rate of a device)"},
    {"gbytes", true, false, offsetof(struct device, gbytes), "gbytes=10   (GB/s of a device's memory)"},
    {"memory", true, true, offsetof(struct device, memory), "memory=16GiB   (of a device)"},
    {"overhead_us", true, false, offsetof(struct device, overhead_us), "overhead_us=5   (start of a task)"},
    {"link_gbytes", false, false, offsetof(struct machine, link_gbytes), "link_gbytes=10   (GB/s between ranks)"},
    {"link_us", false, false, offsetof(struct machine, link_us), "link_us=5   (latency of a message)"},
    {"l2", false, true, offsetof(struct machine, cache_l2), "l2=1MiB"},
    {"l3", false, true, offsetof(struct machine, cache_l3), "l3=32MiB"},
};

struct reader {
    const char *text, *at;
    const struct key *key; /* whose value is read; NULL = none */
};

/* Column, or line and column, of a text of one or several lines. */
static err bad(const struct reader *r, const char *what) {
    const char *line = r->text;
    char where[64];
    i32 n = 1;
    for (const char *c = r->text; c < r->at; c++)
        if (*c == '\n') line = c + 1, n++;
    const int column = (int)(r->at - line) + 1, width = (int)strcspn(line, "\n");
    if (n > 1) snprintf(where, sizeof where, "--machine:%d:%d", n, column);
    else snprintf(where, sizeof where, "--machine:%d", column);
    return FAIL_AT(E103, where, r->key ? r->key->remedy : "--machine auto   or   --machine 'host*2(cpu*4)'",
                   "%s%s%s in the machine text \"%.*s\"", r->key ? r->key->name : "", r->key ? ": " : "", what,
                   width < 80 ? width : 80, line);
}

static void skip(struct reader *r) {
    for (;;) {
        while (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r') r->at++;
        if (*r->at != '#') return;
        while (*r->at && *r->at != '\n') r->at++;
    }
}

static bool letter(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; }

static err word(struct reader *r, char *out, size_t size) {
    skip(r);
    size_t n = 0;
    while (letter(r->at[n])) n++;
    if (n == 0) return bad(r, "a word such as host, cpu or gpu is wanted");
    if (n >= size) return bad(r, "a word too long");
    memcpy(out, r->at, n);
    out[n] = 0;
    r->at += n;
    return 0;
}

/* Parses the "*4" after a word; 1 if absent. */
static err times(struct reader *r, i32 *n) {
    *n = 1;
    skip(r);
    if (*r->at != '*') return 0;
    r->at++;
    skip(r);
    size_t len = 0;
    while (r->at[len] >= '0' && r->at[len] <= '9') len++;
    i64 v;
    if (len == 0 || len > 6 || !str_to_i64(r->at, len, &v) || v < 1 || v > MACHINE_DEVICES)
        return bad(r, "a count from 1 to 16384 is wanted after '*'");
    r->at += len;
    *n = (i32)v;
    return 0;
}

/* Parses the ":1" after a kind; 0 if absent. */
static err card_of(struct reader *r, i32 *card) {
    i64 v;
    size_t len = 0;
    *card = 0;
    if (*r->at != ':') return 0;
    r->at++;
    while (r->at[len] >= '0' && r->at[len] <= '9') len++;
    if (len == 0 || len > 4 || !str_to_i64(r->at, len, &v)) return bad(r, "the number of a device is wanted after ':'");
    r->at += len;
    *card = (i32)v;
    return 0;
}

static const struct kind *find_kind(const char *name) {
    for (size_t i = 0; i < COUNT(kinds); i++)
        if (strcmp(kinds[i].name, name) == 0) return &kinds[i];
    return NULL;
}

static void set_kind(const struct kind *k, struct device *d) {
    d->core = -1;
    d->gflops = k->gflops;
    d->gbytes = k->gbytes;
    d->memory = k->memory;
    d->share = d->weight = 1;
    snprintf(d->kind, sizeof d->kind, "%s", k->name);
}

err machine_kind(const char *kind, struct device *out) {
    const struct kind *k = find_kind(kind);
    if (!k) return FAIL(E1, "no kind of device \"%s\"", kind);
    set_kind(k, out);
    return 0;
}

static err add_devices(struct reader *r, struct machine *m, const char *name, i32 card, i32 n) {
    const struct kind *k = find_kind(strcmp(name, "core") == 0 ? "cpu" : name); /* core: accepted as a synonym */
    if (!k) return bad(r, known_kinds);
    if (m->ndevice + n > MACHINE_DEVICES) return bad(r, "more than 16384 devices");
    for (i32 i = 0; i < n; i++) {
        struct device *d = &m->device[m->ndevice++];
        *d = (struct device){.card = card};
        set_kind(k, d);
    }
    return 0;
}

/* Sets weights from rates and free shares, so that work is split by speed. */
static void set_weights(struct machine *m) {
    f64 most = 0;
    for (i32 i = 0; i < m->ndevice; i++) most = dmax(most, m->device[i].gflops);
    for (i32 i = 0; i < m->ndevice; i++) m->device[i].weight = m->device[i].share * (most > 0 ? m->device[i].gflops / most : 1);
}

/* Is the next word a kind of device, not a key? */
static bool device_follows(struct reader *r) {
    skip(r);
    size_t n = 0;
    while (letter(r->at[n])) n++;
    return n > 0 && r->at[n] != '=';
}

/* The other devices of a text without hosts: "gpu*4 cpu*16". */
static err more_devices(struct reader *r, struct machine *m) {
    char name[8];
    while (device_follows(r)) {
        i32 n, card;
        TRY(word(r, name, sizeof name));
        TRY(card_of(r, &card));
        TRY(times(r, &n));
        TRY(add_devices(r, m, name, card, n));
    }
    return 0;
}

static err devices(struct reader *r, struct machine *m) {
    char name[8];
    i32 n, card, ranks = 1;
    TRY(word(r, name, sizeof name));
    TRY(card_of(r, &card));
    TRY(times(r, &n));
    if (strcmp(name, "host") != 0) {
        m->nrank = 1;
        TRY(add_devices(r, m, name, card, n));
        return more_devices(r, m);
    }
    ranks = n;
    skip(r);
    if (*r->at != '(') return bad(r, "'(' with the devices of a host is wanted");
    do {
        r->at++;
        TRY(word(r, name, sizeof name));
        TRY(card_of(r, &card));
        TRY(times(r, &n));
        TRY(add_devices(r, m, name, card, n));
        skip(r);
    } while (*r->at == ',');
    if (*r->at != ')') return bad(r, "')' is wanted after the devices");
    i32 per = m->ndevice;
    if ((i64)per * ranks > MACHINE_DEVICES) return bad(r, "more than 16384 devices");
    r->at++;
    m->nrank = ranks;
    for (i32 k = 1; k < ranks; k++)
        for (i32 i = 0; i < per; i++) {
            m->device[m->ndevice] = m->device[i];
            m->device[m->ndevice++].rank = k;
        }
    return 0;
}

static err value(struct reader *r, f64 *out) {
    size_t n = 0;
    while ((r->at[n] >= '0' && r->at[n] <= '9') || (r->at[n] && strchr(".e+-", r->at[n]))) n++;
    if (n == 0 || !str_to_f64(r->at, n, '.', out)) return bad(r, "a number is wanted after '='");
    r->at += n;
    static const char *const unit[] = {"KiB", "MiB", "GiB", "TiB"};
    f64 scale = 1;
    for (size_t i = 0; i < COUNT(unit); i++) {
        scale *= 1024;
        if (strncmp(r->at, unit[i], 3) == 0) {
            *out *= scale;
            r->at += 3;
            break;
        }
    }
    if (!(*out > 0)) return bad(r, "a number above 0 is wanted");
    if (!(*out >= 1e-9 && *out < 1e18)) return bad(r, "a number from 1e-9 to 1e18 is wanted");
    return 0;
}

/* Parses one number per host or per device. */
static err shares(struct reader *r, struct machine *m) {
    f64 v[MACHINE_DEVICES];
    i32 n = 0;
    for (;; r->at++) {
        if (n == m->ndevice) return bad(r, "more shares than devices");
        TRY(value(r, &v[n]));
        if (v[n++] > 1) return bad(r, "a share from above 0 to 1 is wanted before this");
        if (*r->at != ',') break;
    }
    if (n != m->ndevice && n != m->nrank) return bad(r, "a share for each host, or for each device, is wanted before this");
    if (n == m->nrank) machine_set_shares(m, v);
    else
        for (i32 i = 0; i < n; i++) m->device[i].share = v[i];
    return 0;
}

static void set_field(const struct key *k, void *owner, f64 v) {
    void *at = (char *)owner + k->at;
    if (k->bytes) *(i64 *)at = (i64)v;
    else *(f64 *)at = v;
}

static err key_value(struct reader *r, struct machine *m) {
    const struct key *k = NULL;
    char name[16];
    f64 v;
    TRY(word(r, name, sizeof name));
    const bool is_shares = strcmp(name, "shares") == 0;
    for (size_t i = 0; i < COUNT(keys); i++)
        if (strcmp(keys[i].name, name) == 0) k = &keys[i];
    if (!k && !is_shares)
        return bad(r, "an unknown key (known: gflops, gbytes, memory, overhead_us, link_gbytes, link_us, l2, l3, shares)");
    if (*r->at != '=') return bad(r, "'=' is wanted after a key");
    r->at++;
    if (is_shares) return shares(r, m);
    r->key = k;
    TRY(value(r, &v));
    if (k->bytes && v < 1) return bad(r, "at least one byte is wanted");
    r->key = NULL;
    for (i32 i = 0; i < m->ndevice && k->device; i++) set_field(k, &m->device[i], v);
    if (!k->device) set_field(k, m, v);
    return 0;
}

err machine_parse(const char *text, struct machine *out) {
    struct reader r = {.text = text, .at = text};
    memset(out, 0, sizeof *out);
    out->link_gbytes = 10;
    out->link_us = 5;
    out->cache_l2 = 1 << 20;
    out->cache_l3 = 32 << 20;
    TRY(devices(&r, out));
    skip(&r);
    while (*r.at) {
        TRY(key_value(&r, out));
        skip(&r);
    }
    set_weights(out);
    out->ncore = out->ndevice;
    for (i32 i = 0; i < out->ndevice; i++) out->memory += out->device[i].memory;
    snprintf(out->name, sizeof out->name, "%.63s", text);
    snprintf(out->cpu, sizeof out->cpu, "imaginary");
    return 0;
}

static bool all_same(const struct machine *m) {
    const struct device *a = &m->device[0];
    for (i32 i = 0; i < m->ndevice; i++) {
        const struct device *b = &m->device[i];
        if (a->gflops != b->gflops || a->gbytes != b->gbytes || a->memory != b->memory) return false;
    }
    return m->ndevice > 0;
}

static void print_number(struct str *out, const char *name, f64 v) {
    char number[32];
    str_from_f64(number, v);
    str_addf(out, "%s%s", name, number);
}

/* Prints nothing if everything is free, one number per host if its devices are equal. */
static void print_shares(const struct machine *m, struct str *out) {
    const i32 per = m->nrank > 0 ? imax(1, m->ndevice / m->nrank) : 1;
    bool all = true, alike = true;
    for (i32 i = 0; i < m->ndevice; i++) {
        all = all && m->device[i].share == 1;
        alike = alike && m->device[i].share == m->device[i - i % per].share;
    }
    for (i32 i = 0; i < m->ndevice && !all; i += alike ? per : 1) print_number(out, i ? "," : " shares=", m->device[i].share);
}

void machine_print(const struct machine *m, struct str *out) {
    i32 per = m->nrank > 0 ? m->ndevice / m->nrank : 0;
    str_add(out, "host");
    if (m->nrank > 1) str_addf(out, "*%d", m->nrank);
    for (i32 i = 0; i < per;) {
        i32 j = i;
        while (j < per && strcmp(m->device[i].kind, m->device[j].kind) == 0 && m->device[i].card == m->device[j].card) j++;
        str_addf(out, "%c%s", i ? ',' : '(', m->device[i].kind);
        if (m->device[i].card > 0) str_addf(out, ":%d", m->device[i].card);
        if (j - i > 1) str_addf(out, "*%d", j - i);
        i = j;
    }
    str_add(out, ")");
    if (all_same(m)) {
        print_number(out, " gflops=", m->device[0].gflops);
        print_number(out, " gbytes=", m->device[0].gbytes);
        str_addf(out, " memory=%lld", (long long)m->device[0].memory);
    }
    print_number(out, " link_gbytes=", m->link_gbytes);
    print_number(out, " link_us=", m->link_us);
    if (m->cache_l2 > 0) str_addf(out, " l2=%lld", (long long)m->cache_l2);
    if (m->cache_l3 > 0) str_addf(out, " l3=%lld", (long long)m->cache_l3);
    print_shares(m, out);
    str_add(out, "\n");
}

void machine_set_rate(struct machine *m, const char *kind, f64 gflops) {
    for (i32 i = 0; i < m->ndevice; i++) {
        if (strcmp(m->device[i].kind, kind) != 0) continue;
        if (gflops > 0) m->device[i].gflops = gflops;
    }
    set_weights(m);
}

void machine_set_shares(struct machine *m, const f64 *share) {
    for (i32 i = 0; i < m->ndevice; i++) m->device[i].share = share[m->device[i].rank];
    set_weights(m);
}

i32 machine_together(const struct machine *m) {
    i32 n = 0;
    while (n < m->ndevice && m->device[n].rank == m->device[0].rank) n++;
    return n;
}

void machine_device_name(const struct machine *m, i32 device, char out[DEVICE_NAME]) {
    const struct device *d = &m->device[device];
    i32 k = 0;
    for (i32 i = device - 1; i >= 0 && m->device[i].rank == d->rank; i--) k += strcmp(m->device[i].kind, d->kind) == 0;
    snprintf(out, DEVICE_NAME, "r%d.%s%d", d->rank, d->kind, k);
}

err machine_trim(struct machine **m) {
    struct machine *trimmed = mem_realloc(*m, machine_bytes(*m));
    if (!trimmed) return -E601;
    *m = trimmed;
    return 0;
}

err machine_ranks(const struct machine *one, i32 ranks, struct machine *out) {
    const i32 n = one->ndevice;
    if ((i64)n * ranks > MACHINE_DEVICES)
        return FAIL_AT(E401, "--ranks", "fewer --ranks or --threads", "%d ranks of %d devices: at most %d devices are possible",
                       ranks, n, MACHINE_DEVICES);
    machine_copy(out, one);
    out->nrank = ranks;
    out->ndevice = n * ranks;
    out->ncore = one->ncore * ranks;
    for (i32 d = 0; d < out->ndevice; d++) {
        out->device[d] = one->device[d % n];
        out->device[d].rank = d / n;
    }
    return 0;
}

void machine_without(struct machine *m, const i32 *died, i32 n) {
    const i32 had = m->ndevice;
    m->ndevice = 0;
    for (i32 d = 0; d < had; d++) {
        const i32 rank = m->device[d].rank;
        i32 before = 0;
        while (before < n && died[before] < rank) before++;
        if (before < n && died[before] == rank) continue;
        m->device[m->ndevice] = m->device[d];
        m->device[m->ndevice++].rank = rank - before;
    }
    m->ncore = (i32)((i64)m->ncore * m->ndevice / imax(1, had));
    m->nrank -= n;
}
