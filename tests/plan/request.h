/* request.h - the net and the machine of a test, requests for plans of them, and the plans. */
#ifndef STRETTO_TESTS_PLAN_REQUEST_H
#define STRETTO_TESTS_PLAN_REQUEST_H

#include "step/netplan.h"
#include "t.h"

static struct machine machine;
static struct net net;

static inline struct plan_request request(const char *text, i32 B, const char *parallel) {
    T_OK(machine_parse(text, &machine));
    return (struct plan_request){.net = &net, .machine = &machine, .B = B, .train = true, .nstate = 1, .parallel = parallel};
}

static inline struct plan *make(const char *text, i32 B, const char *parallel) {
    struct plan *p;
    struct plan_request q = request(text, B, parallel);
    T_OK(plan_make(&q, &p));
    return p;
}

#endif
