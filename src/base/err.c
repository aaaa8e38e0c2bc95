/* err.c - the error record of each thread and the table of codes. */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local struct err_record record;

static const struct err_info table[] = {
#define E(n, exit_status, title, help) {n, exit_status, title, help},
#include "base/errors.def"
#undef E
};

static void copy_text(char *dst, size_t size, const char *src) {
    snprintf(dst, size, "%s", src ? src : "");
}

/* A cell, a name or a file that an error quotes may hold codes that clear a terminal or move its cursor. */
static void drop_codes(char *text) {
    for (; *text; text++)
        if (((u8)*text < ' ' && *text != '\n' && *text != '\t') || *text == 0x7f) *text = '?';
}

err err_set(enum err_code code, const char *where, const char *fix, const char *fmt, ...) {
    struct err_record r = {.code = (i32)code};
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(r.text, sizeof r.text, fmt, ap);
    va_end(ap);
    copy_text(r.where, sizeof r.where, where);
    copy_text(r.fix, sizeof r.fix, fix);
    drop_codes(r.text);
    drop_codes(r.where);
    drop_codes(r.fix);
    record = r;
    return -(err)code;
}

const struct err_record *err_last(void) { return &record; }
void err_put(const struct err_record *r) { record = *r; }
void err_clear(void) { memset(&record, 0, sizeof record); }

const struct err_info *err_info(i32 code) {
    for (size_t i = 0; i < COUNT(table); i++)
        if (table[i].code == code) return &table[i];
    return NULL;
}

i32 err_count(void) { return (i32)COUNT(table); }
const struct err_info *err_at(i32 index) { return &table[index]; }

i32 err_exit_status(err e) {
    if (e >= 0) return 0;
    const struct err_info *info = err_info(-e);
    return info ? info->exit_status : 1;
}
