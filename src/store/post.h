/* post.h - streams of messages between this rank and every other one, for servers that answer whoever asks.
 *
 *     post_send(to) --> queue of that stream --> comm          comm --> one receive per peer is always posted --> handler
 *
 * Within one job of the agent (comm.h).  A stream keeps its order.  A message has at most `most` bytes; receivers learn its size
 * when it comes.  The message to this rank itself is handled at once.  A stream ends with post_close: no receive is left behind.
 */
#ifndef STRETTO_STORE_POST_H
#define STRETTO_STORE_POST_H

#include "comm/comm.h"

struct post;
typedef err post_handler(void *self, i32 from, const unsigned char *data, u32 bytes);

/* queue: messages that may wait for each peer. */
err post_new(struct comm *c, i64 most, i32 queue, post_handler *handle, void *self, struct post **out);
void post_free(struct post *p);
void post_open(struct post *p); /* before each job: streams begin anew */

enum { POST_SMALL = 64 };
/* data is borrowed until the stream has sent it; up to POST_SMALL bytes are copied.  E1 where the queue is full. */
err post_send(struct post *p, i32 to, const void *data, u32 bytes);
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
