/* csv_record.c - the fields of one record of a text table, with quotes: counted, or split into cells. */
#include "data/csv.h"

/* Removes quotes in place from p; returns the position after the closing quote, *len bytes remain. */
static char *unquote(char *p, char *end, char *to, i32 *len) {
    char *from = to;
    for (p++; p < end; p++) {
        if (*p == '"' && !(p + 1 < end && p[1] == '"')) {
            p++;
            break;
        }
        if (*p == '"') p++;
        *to++ = *p;
    }
    *len = (i32)(to - from);
    return p;
}

char *csv_split_record(char *p, char *end, char sep, char **cell, i32 *len, i32 max, i32 *n) {
    for (*n = 0;; p++) {
        char *from = p;
        i32 length = 0;
        if (p < end && *p == '"') {
            p = unquote(p, end, from, &length);
            char *to = from + length;
            for (; p < end && *p != sep && *p != '\n'; p++) *to++ = *p; /* text after the closing quote belongs to the cell */
            length = (i32)(to - from);
            if (length > 0 && p < end && *p == '\n' && to[-1] == '\r' && p[-1] == '\r') length--;
        } else {
            while (p < end && *p != sep && *p != '\n') p++;
            char *to = p > from && p < end && *p == '\n' && p[-1] == '\r' ? p - 1 : p;
            while (from < to && *from == ' ') from++;
            while (to > from && to[-1] == ' ') to--;
            length = (i32)(to - from);
        }
        if (*n < max) {
            cell[*n] = from;
            len[*n] = length;
        }
        ++*n;
        if (p >= end || *p == '\n') return p < end ? p + 1 : p;
    }
}

const char *csv_count_fields(const char *p, const char *end, char sep, i32 *n) {
    for (*n = 1;; p++, ++*n) {
        if (p < end && *p == '"') {
            for (p++; p < end; p++) {
                if (*p != '"') continue;
                if (p + 1 == end || p[1] != '"') break;
                p++;
            }
        }
        while (p < end && *p != sep && *p != '\n') p++;
        if (p >= end || *p == '\n') return p < end ? p + 1 : p;
    }
}
