/* post.c - see post.h. */
#include "store/post.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"

enum { IN_FLIGHT = 4 }; /* messages of a stream that comm knows at a time */

struct letter {
    struct comm_message m;
    unsigned char small[POST_SMALL];
};

struct stream {
    struct letter *out;      /* [queue] ring */
    u32 first, posted, last; /* posted: the next one that comm is to learn of; all modulo nothing */
    u64 sent, got;           /* messages of this job */
    struct comm_message in;
    unsigned char *buffer; /* [most] */
    bool closing, ended;   /* the last message to the peer is queued; that of the peer has come */
};

struct post {
    struct comm *comm;
    struct stream *stream; /* [ranks] */
    i32 me, n, queue;
    u32 most;
    post_handler *handle;
    void *self;
    struct post_count count;
};

void post_free(struct post *p) {
    if (!p) return;
    for (i32 k = 0; p->stream && k < p->n; k++) {
        mem_free(p->stream[k].out);
        comm_release(p->comm, p->stream[k].buffer);
    }
    mem_free(p->stream);
    mem_free(p);
}

static err make(struct post *p) {
    NEW(p->stream, p->n);
    for (i32 k = 0; k < p->n; k++) {
        if (k == p->me) continue;
        NEW(p->stream[k].out, p->queue);
        p->stream[k].buffer = comm_alloc(p->comm, p->most);
        if (!p->stream[k].buffer) return -E601;
    }
    return 0;
}

err post_new(struct comm *c, i64 most, i32 queue, post_handler *handle, void *self, struct post **out) {
    struct post *p;
    NEW(p, 1);
    *p = (struct post){
        .comm = c, .me = comm_rank(c), .n = comm_size(c), .queue = queue, .most = (u32)most, .handle = handle, .self = self};
    const err e = make(p);
    if (e < 0)
        post_free(p);
    else
        *out = p;
    return e;
}

static struct comm_message message(void *data, u32 bytes, i32 peer, bool sends, u64 serial) {
    struct comm_message m = {.data = data, .peer = peer, .channel = CHANNEL_ROUND, .sends = sends, .fewer = !sends};
    m.head.serial = serial;
    m.head.bytes = bytes;
    snprintf(m.head.name, sizeof m.head.name, "store");
    return m;
}

void post_open(struct post *p) {
    for (i32 k = 0; k < p->n; k++) {
        struct stream *s = &p->stream[k];
        s->first = s->posted = s->last = 0;
        s->sent = s->got = 0;
        s->closing = s->ended = k == p->me;
        if (k != p->me) s->in = message(s->buffer, p->most, k, false, 0);
    }
}

err post_send(struct post *p, i32 to, const void *data, u32 bytes) {
    if (to == p->me) return p->handle(p->self, to, data, bytes);
    struct stream *s = &p->stream[to];
    if (s->last - s->first == (u32)p->queue) return FAIL(E1, "more than %d messages wait for rank %d", p->queue, to);
    struct letter *l = &s->out[s->last++ % (u32)p->queue];
    const bool small = bytes <= POST_SMALL;
    if (small) memcpy(l->small, data, bytes);
    l->m = message(small ? l->small : (void *)(uintptr_t)data, bytes, to, true, s->sent++);
    p->count.sent += bytes;
    p->count.messages++;
    return 0;
}

err post_close(struct post *p) {
    for (i32 k = 0; k < p->n; k++) {
        if (p->stream[k].closing) continue;
        p->stream[k].closing = true;
        TRY(post_send(p, k, "", 1)); /* shorter than any message */
    }
    return 0;
}

bool post_closed(const struct post *p) {
    for (i32 k = 0; k < p->n; k++)
        if (!p->stream[k].ended || !p->stream[k].closing || !post_sent(p, k)) return false;
    return true;
}

bool post_sent(const struct post *p, i32 to) { return p->stream[to].first == p->stream[to].last; }

static err move_out(struct post *p, struct stream *s, bool *moved) {
    while (s->posted != s->last && s->posted - s->first < IN_FLIGHT) {
        TRY(comm_post(p->comm, &s->out[s->posted % (u32)p->queue].m));
        s->posted++;
        *moved = true;
    }
    while (s->first != s->posted) {
        bool done;
        struct comm_message *m = &s->out[s->first % (u32)p->queue].m;
        TRY(comm_test(p->comm, m, &done));
        *moved = *moved || m->moved;
        m->moved = false;
        if (!done) return 0;
        s->first++;
        *moved = true;
    }
    return 0;
}

static err move_in(struct post *p, i32 k, bool *moved) {
    struct stream *s = &p->stream[k];
    bool done;
    if (s->ended) return 0;
    if (!s->in.started) TRY(comm_post(p->comm, &s->in));
    TRY(comm_test(p->comm, &s->in, &done));
    *moved = *moved || s->in.moved;
    s->in.moved = false;
    if (!done) return 0;
    *moved = true;
    const u32 bytes = s->in.head.bytes;
    p->count.received += bytes;
    if (bytes == 1)
        s->ended = true;
    else
        TRY(p->handle(p->self, k, s->buffer, bytes));
    if (!s->ended) s->in = message(s->buffer, p->most, k, false, ++s->got);
    return 0;
}

err post_turn(struct post *p, bool *moved) {
    for (i32 k = 0; k < p->n; k++) {
        if (k == p->me) continue;
        TRY(move_out(p, &p->stream[k], moved));
        TRY(move_in(p, k, moved));
    }
    return 0;
}

const struct comm_message *post_awaited(const struct post *p, i32 from) { return &p->stream[from].in; }

struct post_count post_counted(const struct post *p) {
    return p->count;
}
