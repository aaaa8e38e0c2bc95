/* post.c - see post.h. */
#include "store/post.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"

enum { IN_FLIGHT = 6 }; /* heads and data of a stream that comm knows at a time */

struct letter {
    struct comm_message m;
    unsigned char head[POST_HEAD + POST_SMALL];
};

struct stream {
    struct letter *out;      /* [queue] ring; a letter is a head or data */
    u32 first, posted, last; /* posted: the next one that comm is to learn of; all modulo nothing */
    u64 sent, got;           /* letters of this job */
    struct comm_message in;
    unsigned char head[POST_HEAD + POST_SMALL];
    unsigned char *buffer; /* [most] */
    bool data;             /* data of `head` are awaited */
    bool closing, ended;   /* the last message to the peer is queued; that of the peer has come */
};

struct post {
    struct comm *comm;
    struct stream *stream; /* [ranks] */
    i32 me, n, queue;
    u32 most;
    struct post_handler handler;
    struct post_count count;
};

void post_free(struct post *p) {
    if (!p) return;
    for (i32 k = 0; p->stream && k < p->n; k++) {
        mem_free(p->stream[k].out);
        mem_free(p->stream[k].buffer);
    }
    mem_free(p->stream);
    mem_free(p);
}

static err make(struct post *p) {
    NEW(p->stream, p->n);
    for (i32 k = 0; k < p->n; k++) {
        if (k == p->me) continue;
        NEW(p->stream[k].out, p->queue);
        NEW(p->stream[k].buffer, p->most);
    }
    return 0;
}

err post_new(struct comm *c, i64 most, i32 queue, const struct post_handler *h, struct post **out) {
    struct post *p;
    NEW(p, 1);
    *p = (struct post){.comm = c, .me = comm_rank(c), .n = comm_size(c), .queue = 2 * queue, .most = (u32)most, .handler = *h};
    const err e = make(p);
    if (e < 0)
        post_free(p);
    else
        *out = p;
    return e;
}

static struct comm_message message(void *data, u32 bytes, i32 peer, bool sends, u64 serial) {
    struct comm_message m = {.data = data, .peer = peer, .channel = CHANNEL_ROUND, .sends = sends};
    m.head.serial = serial;
    m.head.bytes = bytes;
    snprintf(m.head.name, sizeof m.head.name, "store");
    return m;
}

static void await_head(struct stream *s, i32 peer) {
    s->in = message(s->head, POST_HEAD + POST_SMALL, peer, false, s->got++);
    s->in.fewer = true;
    s->data = false;
}

void post_open(struct post *p) {
    for (i32 k = 0; k < p->n; k++) {
        struct stream *s = &p->stream[k];
        s->first = s->posted = s->last = 0;
        s->sent = s->got = 0;
        s->closing = s->ended = k == p->me;
        if (k != p->me) await_head(s, k);
    }
}

static u32 data_bytes(const unsigned char *head) {
    struct post_head h;
    memcpy(&h, head, sizeof h);
    return h.bytes;
}

static u8 kind_of(const unsigned char *head) { return head[0]; }

static void put(struct post *p, i32 to, const unsigned char *head, const void *data, u32 bytes) {
    struct stream *s = &p->stream[to];
    struct letter *l = &s->out[s->last++ % (u32)p->queue];
    if (head) memcpy(l->head, head, POST_HEAD);
    if (head && bytes > 0) memcpy(l->head + POST_HEAD, data, bytes);
    if (head) bytes += POST_HEAD;
    l->m = message(head ? l->head : (void *)(uintptr_t)data, bytes, to, true, s->sent++);
    p->count.sent += bytes;
}

err post_send(struct post *p, i32 to, const void *head, size_t size, const void *data) {
    unsigned char all[POST_HEAD] = {0};
    memcpy(all, head, size);
    if (to == p->me) {
        void *at;
        TRY(p->handler.place(p->handler.self, to, all, &at));
        return p->handler.handle(p->handler.self, to, all, data);
    }
    const struct stream *s = &p->stream[to];
    const u32 bytes = data_bytes(all);
    const bool small = bytes <= POST_SMALL;
    if (s->last - s->first + 2 > (u32)p->queue) return FAIL(E1, "more than %d messages wait for rank %d", p->queue / 2, to);
    put(p, to, all, data, small ? bytes : 0);
    if (!small) put(p, to, NULL, data, bytes);
    p->count.messages++;
    return 0;
}

err post_close(struct post *p) {
    const struct post_head end = {0};
    for (i32 k = 0; k < p->n; k++) {
        if (p->stream[k].closing) continue;
        p->stream[k].closing = true;
        TRY(post_send(p, k, &end, sizeof end, NULL));
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

/* A head is there: where its data go, or, if they came with it or it has none, what it says. */
static err got_head(struct post *p, i32 k, struct stream *s) {
    void *to = NULL;
    const u32 bytes = data_bytes(s->head), came = s->in.head.bytes - POST_HEAD;
    if (kind_of(s->head) == 0) {
        s->ended = true;
        return 0;
    }
    if (bytes > p->most || came != (bytes <= POST_SMALL ? bytes : 0))
        return FAIL(E804, "rank %d announces %u bytes for the store, which none of its messages has", k, bytes);
    TRY(p->handler.place(p->handler.self, k, s->head, &to));
    if (bytes > POST_SMALL) {
        s->in = message(to ? to : s->buffer, bytes, k, false, s->got++);
        s->data = true;
        return 0;
    }
    if (to && bytes > 0) memcpy(to, s->head + POST_HEAD, bytes);
    const err e = p->handler.handle(p->handler.self, k, s->head, to ? to : s->head + POST_HEAD);
    await_head(s, k);
    return e;
}

static err got_data(struct post *p, i32 k, struct stream *s) {
    const unsigned char *data = s->in.data;
    const err e = p->handler.handle(p->handler.self, k, s->head, data);
    await_head(s, k);
    return e;
}

static err move_in(struct post *p, i32 k, bool *moved) {
    struct stream *s = &p->stream[k];
    while (!s->ended) {
        bool done;
        if (!s->in.started) TRY(comm_post(p->comm, &s->in));
        TRY(comm_test(p->comm, &s->in, &done));
        *moved = *moved || s->in.moved;
        s->in.moved = false;
        if (!done) return 0;
        *moved = true;
        p->count.received += s->in.head.bytes;
        TRY(s->data ? got_data(p, k, s) : got_head(p, k, s));
    }
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
