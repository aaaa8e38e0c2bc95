/* tensorboard.c - see tensorboard.h: messages Event, Summary and Summary.Value of TensorBoard's event.proto and summary.proto. */
#define _GNU_SOURCE
#include "api/tensorboard.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "ckpt/crc32c.h"
#include "onnx/wire.h"

enum {
    EVENT_TIME = 1,
    EVENT_STEP_NUMBER = 2,
    EVENT_VERSION = 3,
    EVENT_SUMMARY = 5,
    SUMMARY_VALUE = 1,
    VALUE_TAG = 1,
    VALUE_SIMPLE = 2
};

/* A checksum of bytes that may hold checksums themselves. */
static u32 masked(const void *p, i64 n) {
    const u32 crc = crc32c(0, p, n);
    return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

static void add_u32(struct str *to, u32 v) { str_addn(to, (const char *)&v, sizeof v); }

/* Writes an Event as a record, and frees it. */
static err write_record(struct tensorboard *t, struct str *event) {
    struct str record = {0};
    const u64 n = event->len;
    str_addn(&record, (const char *)&n, sizeof n);
    add_u32(&record, masked(&n, sizeof n));
    str_addn(&record, str_text(event), event->len);
    add_u32(&record, masked(str_text(event), (i64)event->len));
    err e = event->failed ? -E601 : str_ok(&record);
    for (size_t done = 0; done < record.len && e >= 0;) {
        const ssize_t got = write(t->fd, record.s + done, record.len - done);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0)
            e = file_failed(t->path);
        else
            done += (size_t)got;
    }
    str_free(event);
    str_free(&record);
    return e;
}

static struct str new_event(void) {
    struct str event = {0};
    wire_f64(&event, EVENT_TIME, clock_wall());
    return event;
}

err tensorboard_open(struct tensorboard *t, const char *folder) {
    char host[256] = "host";
    *t = (struct tensorboard){.fd = -1};
    TRY(file_make_dir(folder));
    gethostname(host, sizeof host - 1);
    snprintf(t->path, sizeof t->path, "%.4000s/events.out.tfevents.%.0f.%.200s.%d", folder, floor(clock_wall()), host,
             (int)getpid());
    t->fd = open(t->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (t->fd < 0) return file_failed(t->path);
    struct str first = new_event();
    wire_text(&first, EVENT_VERSION, "brain.Event:2");
    return write_record(t, &first);
}

static void add_value(struct str *summary, const struct event *e, const char *what, f64 v) {
    struct str value = {0};
    char tag[96];
    if (isnan(v)) return;
    snprintf(tag, sizeof tag, "%s", what);
    if (e->members > 1) snprintf(tag, sizeof tag, "member %d/%s", e->member + 1, what);
    if (e->refit) snprintf(tag, sizeof tag, "refit/%s", what);
    wire_text(&value, VALUE_TAG, tag);
    wire_f32(&value, VALUE_SIMPLE, (f32)v);
    wire_message(summary, SUMMARY_VALUE, &value);
}

static err write_values(struct tensorboard *t, const struct event *e) {
    struct str event = new_event(), summary = {0};
    add_value(&summary, e, "loss/train", e->train);
    if (e->kind == EVENT_VALID) add_value(&summary, e, "loss/valid", e->valid);
    add_value(&summary, e, "lr", e->lr);
    add_value(&summary, e, "grad_norm", e->grad_norm);
    add_value(&summary, e, "windows_per_s", e->windows_per_s);
    wire_int(&event, EVENT_STEP_NUMBER, e->step);
    wire_message(&event, EVENT_SUMMARY, &summary);
    return write_record(t, &event);
}

static void on_event(void *self, const struct event *e) {
    struct tensorboard *t = self;
    if (t->fd < 0 || t->failed.code || (e->kind != EVENT_STEP && e->kind != EVENT_VALID)) return;
    if (write_values(t, e) < 0) t->failed = *err_last();
}

struct sink tensorboard_sink(struct tensorboard *t) {
    return (struct sink){on_event, t};
}

err tensorboard_close(struct tensorboard *t) {
    if (t->fd >= 0 && close(t->fd) != 0 && !t->failed.code) {
        file_failed(t->path);
        t->failed = *err_last();
    }
    t->fd = -1;
    if (!t->failed.code) return 0;
    err_put(&t->failed);
    return -t->failed.code;
}
