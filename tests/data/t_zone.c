/* t_zone.c - time zones from files of the system: transitions, the rule behind the last one, damaged files. */
#include "t.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "data/zone.h"

static u8 *put(u8 *p, i64 v, i32 bytes) {
    for (i32 i = bytes - 1; i >= 0; i--) *p++ = (u8)(v >> 8 * i);
    return p;
}

static u8 *header(u8 *p, i64 times, i64 types) {
    memcpy(p, "TZif2", 5);
    memset(p + 5, 0, 15);
    p += 20;
    const i64 count[] = {0, 0, 0, times, types, 4};
    for (i32 i = 0; i < 6; i++) p = put(p, count[i], 4);
    return p;
}

enum { SPRING = 1711846800, AUTUMN = 1729990800 }; /* 2024 in Europe */

/* A part with times of 4 bytes, one of 8, and a rule. */
static i64 file(u8 *to, const char *rule) {
    u8 *p = header(to, 1, 1);
    p = put(p, SPRING, 4);
    *p++ = 0;
    p = put(put(p, 3600, 4), 0, 2);
    p = put(p, 0, 4);
    p = header(p, 2, 2);
    p = put(put(p, SPRING, 8), AUTUMN, 8);
    *p++ = 1;
    *p++ = 0;
    p = put(put(p, 3600, 4), 0, 2);
    p = put(put(p, 7200, 4), 0, 2);
    p = put(p, 0, 4);
    *p++ = '\n';
    memcpy(p, rule, strlen(rule));
    p += strlen(rule);
    *p++ = '\n';
    return p - to;
}

TEST(zone_offsets_follow_transitions_and_then_the_rule) {
    u8 bytes[400];
    struct zone *z;
    const i64 before = mem_stats().live;
    T_OK(zone_read((const char *)bytes, file(bytes, "CET-1CEST,M3.5.0,M10.5.0/3"), &z));
    assert_non_null(z);
    assert_int_equal(zone_offset(z, 0), 3600);
    assert_int_equal(zone_offset(z, SPRING - 1), 3600);
    assert_int_equal(zone_offset(z, SPRING), 7200);
    assert_int_equal(zone_offset(z, AUTUMN - 1), 7200);
    assert_int_equal(zone_offset(z, AUTUMN), 3600);
    assert_int_equal(zone_offset(z, 1743296400 - 1), 3600); /* 2025-03-30 01:00 UTC */
    assert_int_equal(zone_offset(z, 1743296400), 7200);
    assert_int_equal(zone_offset(z, 1761440400 - 1), 7200); /* 2025-10-26 01:00 UTC */
    assert_int_equal(zone_offset(z, 1761440400), 3600);
    zone_free(z);
    T_OK(zone_read((const char *)bytes, file(bytes, "<+1030>-10:30<+11>-11,M10.1.0,M4.1.0"), &z)); /* south of the equator */
    assert_int_equal(zone_offset(z, 1767225600), 39600);                                           /* 2026-01-01 */
    assert_int_equal(zone_offset(z, 1782864000), 37800);                                           /* 2026-07-01 */
    zone_free(z);
    T_OK(zone_read((const char *)bytes, file(bytes, "EST5"), &z));
    assert_int_equal(zone_offset(z, 1767225600), -18000);
    zone_free(z);
    T_OK(zone_read((const char *)bytes, file(bytes, "CET-1CEST,M13.5.0,M10.5.0"), &z)); /* no rule: the last transition holds */
    assert_int_equal(zone_offset(z, 1767225600), 3600);
    zone_free(z);
    assert_int_equal(mem_stats().live, before);
}

TEST(zone_files_cut_off_or_changed_are_none_or_end) {
    u8 bytes[400];
    struct zone *z;
    const i64 before = mem_stats().live, n = file(bytes, "CET-1CEST,M3.5.0,M10.5.0/3");
    for (i64 i = 0; i <= n; i++) {
        char *cut = mem_alloc((size_t)i + 1);
        memcpy(cut, bytes, (size_t)i);
        T_OK(zone_read(cut, i, &z));
        if (z) zone_offset(z, 1767225600);
        zone_free(z);
        mem_free(cut);
    }
    for (i64 i = 0; i < n; i++) {
        const u8 was = bytes[i];
        for (i32 v = 0; v < 256; v += 15) {
            bytes[i] = (u8)v;
            T_OK(zone_read((const char *)bytes, n, &z));
            if (z) zone_offset(z, 1767225600);
            zone_free(z);
        }
        bytes[i] = was;
    }
    assert_int_equal(mem_stats().live, before);
}

TEST(zone_names_that_the_system_does_not_have) {
    static const char *const names[] = {"", "No/Where", "/etc/passwd", "../../etc/passwd", "Europe"};
    struct zone *z;
    for (size_t i = 0; i < COUNT(names); i++) {
        T_OK(zone_load(names[i], &z));
        assert_null(z);
    }
    T_OK(zone_load("Europe/Berlin", &z));
    if (!z) skip(); /* no time zones on this system */
    assert_int_equal(zone_offset(z, AUTUMN - 1), 7200);
    assert_int_equal(zone_offset(z, AUTUMN), 3600);
    assert_int_equal(zone_offset(z, 2550000000), 7200); /* 2050-10-21 */
    assert_int_equal(zone_offset(z, 2551000000), 3600); /* 2050-11-02 */
    zone_free(z);
}

T_MAIN(cmocka_unit_test(zone_offsets_follow_transitions_and_then_the_rule),
       cmocka_unit_test(zone_files_cut_off_or_changed_are_none_or_end),
       cmocka_unit_test(zone_names_that_the_system_does_not_have))
