/* serve.h - bench_kern as a process that runs commands from a pipe; see serve.c. */
#ifndef STRETTO_BENCH_KERN_SERVE_H
#define STRETTO_BENCH_KERN_SERVE_H

#include "rig.h"

/* Parses "cell=lstm T=100 ..." into a spec. Returns NULL, or the first invalid word. */
const char *spec_parse(const char *words, struct spec *s);

err serve(struct pool *pool, const struct spec *fallback); /* until "quit" or the end of the input */

#endif
