/* vocab.c - see vocab.h: open addressing with linear probing, at most half full. */
#include "data/vocab.h"

#include <string.h>

#include "base/mem.h"

static u32 hash_of(const char *s, i64 n) {
    u64 h = 0x9E3779B97F4A7C15u ^ (u64)n;
    for (; n >= 8; n -= 8, s += 8) {
        u64 w;
        memcpy(&w, s, 8);
        h = (h ^ w) * 0xff51afd7ed558ccdu;
        h ^= h >> 32;
    }
    for (; n > 0; n--, s++) h = (h ^ (u8)*s) * 0x100000001b3u;
    h ^= h >> 29;
    return (u32)(h ^ h >> 32);
}

static bool same(const struct vocab *v, i32 code, const char *s, i64 n) {
    i64 next = code + 1 < v->n ? v->at[code + 1] : v->fill;
    return next - v->at[code] - 1 == n && memcmp(v->bytes + v->at[code], s, (size_t)n) == 0;
}

static err more_slots(struct vocab *v) {
    const i32 slots = v->slots ? 2 * v->slots : 64;
    const u32 mask = (u32)slots - 1;
    struct vocab_slot *slot;
    NEW(slot, slots);
    for (i32 i = 0; i < v->slots; i++) {
        if (!v->slot[i].word) continue;
        u32 at = v->slot[i].hash & mask;
        while (slot[at].word) at = (at + 1) & mask;
        slot[at] = v->slot[i];
    }
    mem_free(v->slot);
    v->slot = slot;
    v->slots = slots;
    return 0;
}

static err append(struct vocab *v, const char *s, i64 n) {
    GROW(v->at, v->n, v->at_cap);
    if (v->fill + n + 1 > v->cap) {
        i64 cap = lmax(2 * v->cap, v->fill + n + 1 + 256);
        char *bytes = mem_realloc(v->bytes, (size_t)cap);
        if (!bytes) return -E601;
        v->bytes = bytes;
        v->cap = cap;
    }
    v->at[v->n++] = v->fill;
    memcpy(v->bytes + v->fill, s, (size_t)n);
    v->bytes[v->fill + n] = 0;
    v->fill += n + 1;
    return 0;
}

err vocab_code(struct vocab *v, const char *s, i64 n, i32 *code) {
    if (v->n > 0 && same(v, v->last, s, n)) {
        *code = v->last;
        return 0;
    }
    if (2 * v->n >= v->slots) TRY(more_slots(v));
    u32 h = hash_of(s, n), mask = (u32)v->slots - 1, at = h & mask;
    for (; v->slot[at].word; at = (at + 1) & mask) {
        if (v->slot[at].hash != h || !same(v, v->slot[at].word - 1, s, n)) continue;
        *code = v->last = v->slot[at].word - 1;
        return 0;
    }
    TRY(append(v, s, n));
    v->slot[at] = (struct vocab_slot){v->n, h};
    *code = v->last = v->n - 1;
    return 0;
}

i32 vocab_find(const struct vocab *v, const char *s, i64 n) {
    if (v->n == 0) return -1;
    const u32 h = hash_of(s, n), mask = (u32)v->slots - 1;
    for (u32 at = h & mask; v->slot[at].word; at = (at + 1) & mask)
        if (v->slot[at].hash == h && same(v, v->slot[at].word - 1, s, n)) return v->slot[at].word - 1;
    return -1;
}

const char *vocab_word(const struct vocab *v, i32 code) { return v->bytes + v->at[code]; }

void vocab_free(struct vocab *v) {
    mem_free(v->bytes);
    mem_free(v->at);
    mem_free(v->slot);
    *v = (struct vocab){0};
}
