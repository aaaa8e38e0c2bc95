/* fuzz_tokens.c - libFuzzer target: bytes -> tagged sentences.  The first byte chooses the column of tags, or CRFsuite's
 * format; what can be read has codes of its words, and sentences in order. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "learn/token_set.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look(const struct token_set *s) {
    if (s->nsentence < 1 || s->first[0] != 0 || s->first[s->nsentence] != s->ntoken) abort();
    for (i32 k = 0; k < s->nsentence; k++)
        if (s->first[k + 1] <= s->first[k]) abort();
    for (i32 c = 0; c < s->ncolumn; c++)
        for (i64 t = 0; t < s->ntoken; t++)
            if (s->column[c].code[t] < 0 || s->column[c].code[t] >= s->column[c].word.n) abort();
    if (s->tag >= s->ncolumn || s->ninput < 1) abort();
    if (!s->items) return;
    for (i64 t = 0; t < s->ntoken; t++)
        if (s->item_at[t + 1] < s->item_at[t]) abort();
    for (i64 i = 0; i < s->item_at[s->ntoken]; i++)
        if (s->item[i] < 0 || s->item[i] >= s->item_word.n) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static char path[64];
    static int fd = -1;
    struct dataset *d = NULL;
    if (fd < 0) {
        fd = memfd_create("fuzz", 0);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    }
    if (size < 1) return 0;
    if (ftruncate(fd, 0) != 0 || pwrite(fd, data + 1, size - 1, 0) != (ssize_t)(size - 1)) return 0;
    const i64 before = mem_stats().live;
    mem_set_limit(512 << 20);
    const bool as = data[0] & 4, items = data[0] == 'I';
    const err e = items ? token_set_read_items(path, &d)
                  : as  ? token_set_read_as(path, data[0] >> 4 & 7, data[0] & 3, &d)
                        : token_set_read(path, data[0] % 5 - 2, &d);
    if (e >= 0) look(token_set_of(d));
    if (e >= 0) dataset_free(d);
    if (mem_stats().live != before) abort();
    return 0;
}
