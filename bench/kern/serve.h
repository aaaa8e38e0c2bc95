/* serve.h - bench_kern as a process that takes orders on a pipe; see serve.c. */
#ifndef STRETTO_BENCH_SERVE_H
#define STRETTO_BENCH_SERVE_H

#include "rig.h"

/* "cell=lstm T=100 ..." into a spec; words after a bad one are not read.  Returns NULL, or the word that is not understood. */
const char *spec_parse(const char *words, struct spec *s);

err serve(struct pool *pool, const struct spec *fallback); /* until "quit" or the end of the input */

#endif
