/* post.h - streams of messages between this rank and every other one, for servers that answer whoever asks.
 *
 *     post_send(to) --> queue of that stream --> comm      comm --> head --place--> data --> handler
 *
 * Within one job of the agent (comm.h).  A message is a head of POST_HEAD bytes and the data that the head announces: few data
 * go with it, others behind it.  The receiver says where they go when the head is there, so they need not be copied once more.
 * A stream keeps its order.  A message to this rank itself is handled at once.  A stream ends with post_close: no receive is left
 * behind. */
#ifndef STRETTO_STORE_POST_H
#define STRETTO_STORE_POST_H

#include "comm/comm.h"

enum { POST_HEAD = 64, POST_SMALL = 192 }; /* bytes of a head; largest payload that goes in the same message */
/* The first fields of every head; kind 0 ends a stream. */
struct post_head {
    u8 kind;
    u32 bytes; /* of the data */
};

struct post;
struct post_handler {
    /* Checks a head and says where its data go; *to NULL: into a buffer of the stream. */
    err (*place)(void *self, i32 from, const unsigned char *head, void **to);
    err (*handle)(void *self, i32 from, const unsigned char *head, const unsigned char *data);
    void *self;
};

/* most: bytes of the data of a message; queue: messages that may wait for each peer. */
err post_new(struct comm *c, i64 most, i32 queue, const struct post_handler *h, struct post **out);
void post_free(struct post *p);
void post_open(struct post *p); /* before each job: streams begin anew */

/* Head and few data are copied, other data are borrowed until the stream has sent them.  E1 where the queue is full. */
err post_send(struct post *p, i32 to, const void *head, size_t size, const void *data);
err post_close(struct post *p);               /* the last message of each stream to a peer */
bool post_closed(const struct post *p);       /* all streams have ended, both ways */
bool post_sent(const struct post *p, i32 to); /* nothing waits for this peer */
/* Moves all streams once.  *moved: something happened. */
err post_turn(struct post *p, bool *moved);
/* A receive that is awaited from a rank, for comm_idle. */
const struct comm_message *post_awaited(const struct post *p, i32 from);

/* Bytes since post_new, all peers; this rank itself not counted. */
struct post_count {
    i64 sent, received, messages;
};
struct post_count post_counted(const struct post *p);

#endif
