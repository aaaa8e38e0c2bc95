/* link.c - one message of a rank: where its bytes are, their codec, and whether the transfer has completed. */
#include <string.h>

#include "exec/bound.h"
#include "exec/space.h"

/* Where the range of a message begins, in the memory of the step that is summed. */
void *link_data(const struct exec *x, const struct plan_message *m) {
    const struct pbuf *b = &x->plan->buf[m->buf];
    return (char *)x->mem[1][m->buf] + (m->t0 * b->extent + m->lo) * (b->bytes / b->extent / b->repeat);
}

bool link_touches(const struct exec *x, u32 task, const struct plan_message *m, bool writing) {
    const struct task *t = &x->plan->task[task];
    for (u32 k = t->use0; k < t->use0 + t->nuse; k++) {
        const struct use *u = &x->plan->use[k];
        const bool writes = use_writes(u);
        const struct use all = {.t0 = m->t0, .t1 = m->t1, .lo = m->lo, .hi = m->hi};
        if (u->buf == m->buf && (writes || !writing) && use_meets(u, &all)) return true;
    }
    return false;
}

static struct coded coded_of(const struct exec *x, const struct link *l) {
    const u32 marks = x->plan->buf[l->plan.buf].marks;
    u8 *mark = marks == PLAN_NO_MARKS ? NULL : (u8 *)x->mem[1][marks];
    return (struct coded){x->plan, &l->plan, x->mem[1][l->plan.buf], mark, l->residual};
}

static void pack(struct exec *x, struct link *l) {
    const struct coded c = coded_of(x, l);
    l->m.head.bytes = l->m.sends ? l->codec->encode(&c, l->packed) : (u32)l->codec->room(x->plan, &l->plan);
}

static err unpack(struct exec *x, struct link *l) {
    const struct coded c = coded_of(x, l);
    if (l->codec->decode(&c, l->packed, l->m.head.bytes)) return 0;
    return FAIL_AT(E804, NULL, "the same program, options and data on every rank",
                   "rank %d sent %s as \"%s\" in an unknown format", l->m.peer, l->m.head.name, l->codec->name);
}

static void account(struct exec *x, const struct link *l) {
    const i64 whole = plan_message_bytes(x->plan, &l->plan);
    x->sent.bytes += l->m.head.bytes;
    x->sent.whole += whole;
    if (!l->packed) return;
    x->sent.coded += l->m.head.bytes;
    x->sent.coded_whole += whole;
}

err link_move(struct exec *x, struct link *l, u64 serial, bool *moved) {
    bool done;
    if (!l->m.started) {
        l->m.head.serial = serial;
        if (l->m.sends) TRY(space_send(x, l));
        if (l->packed) pack(x, l);
        if (l->m.sends && l->plan.when < MESSAGE_SETTLE) account(x, l);
        TRY(comm_post(x->comm, &l->m));
        *moved = true;
    }
    TRY(comm_test(x->comm, &l->m, &done));
    *moved = *moved || done || l->m.moved;
    l->m.moved = false;
    if (!done) return 0;
    if (l->packed && !l->m.sends) TRY(unpack(x, l));
    if (!l->m.sends) TRY(space_receive(x, l));
    atomic_store_explicit(&l->arrived, serial, memory_order_release);
    wakeup_signal(&x->changed);
    return 0;
}
