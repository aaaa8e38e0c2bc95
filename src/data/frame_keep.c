/* frame_keep.c - the frames of the process: taken from streams, found by their paths, released with their last user. */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/input.h"
#include "base/mem.h"
#include "data/frame.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct frame *all;
static i64 made;

static void release(struct frame *f) {
    for (i64 i = 0; i < f->n; i++)
        if (f->array[i].release) f->array[i].release(&f->array[i]);
    if (f->schema.release) f->schema.release(&f->schema);
    mem_free(f->array);
    mem_free(f->path);
    mem_free(f);
}

static err refused(struct ArrowArrayStream *s, const char *label) {
    const char *why = s->get_last_error ? s->get_last_error(s) : NULL;
    return FAIL_AT(E202, label, NULL, "the library that holds the table cannot give its columns: %.500s",
                   why ? why : "it says nothing more");
}

static err take(struct ArrowArrayStream *s, const char *label, struct frame *f) {
    static const char fix[] = "a table or data frame with columns";
    if (s->get_schema(s, &f->schema) != 0) return refused(s, label);
    if (!f->schema.format || strcmp(f->schema.format, "+s") != 0)
        return FAIL_AT(E202, label, fix, "this is one array of Arrow (\"%.40s\"), no table",
                       f->schema.format ? f->schema.format : "");
    for (;;) {
        struct ArrowArray batch = {0};
        if (s->get_next(s, &batch) != 0) return refused(s, label);
        if (!batch.release) return 0;
        const err e = mem_grow((void **)&f->array, f->n, &f->cap, sizeof *f->array);
        if (e < 0 || batch.length == 0) batch.release(&batch);
        else f->array[f->n++] = batch;
        TRY(e);
    }
}

static err name_it(struct frame *f, const char *label) {
    char path[160];
    pthread_mutex_lock(&lock);
    snprintf(path, sizeof path, INPUT_MEMORY ":%" PRId64 ":%.100s", ++made, label);
    pthread_mutex_unlock(&lock);
    f->path = mem_strdup(path);
    return f->path ? 0 : -E601;
}

err frame_new(struct ArrowArrayStream *stream, const char *label, struct frame **out) {
    struct frame *f = NULL;
    *out = NULL;
    err e = mem_new((void **)&f, 1, sizeof *f);
    if (e >= 0) e = name_it(f, label);
    if (e >= 0) e = take(stream, label, f);
    if (stream->release) stream->release(stream);
    if (e < 0) {
        if (f) release(f);
        return e;
    }
    f->refs = 1;
    pthread_mutex_lock(&lock);
    f->next = all;
    all = f;
    pthread_mutex_unlock(&lock);
    *out = f;
    return 0;
}

struct frame *frame_hold(const char *path) {
    struct frame *f;
    if (!input_is_memory(path)) return NULL;
    pthread_mutex_lock(&lock);
    for (f = all; f && strcmp(f->path, path) != 0; f = f->next) {}
    if (f) f->refs++;
    pthread_mutex_unlock(&lock);
    return f;
}

void frame_drop(struct frame *f) {
    if (!f) return;
    pthread_mutex_lock(&lock);
    const bool last = --f->refs == 0;
    pthread_mutex_unlock(&lock);
    if (last) release(f);
}

void frame_free(struct frame *f) {
    if (!f) return;
    pthread_mutex_lock(&lock);
    struct frame **at = &all;
    while (*at != f) at = &(*at)->next;
    *at = f->next;
    pthread_mutex_unlock(&lock);
    frame_drop(f);
}
