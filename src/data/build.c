/* build.c - the end of a build: frees what its stages made. */
#include "data/build.h"

#include "base/mem.h"

void build_free(struct build *b) {
    mem_free(b->col);
    mem_free(b->cat);
    mem_free(b->time);
    mem_free(b->row);
    mem_free(b->same);
    panel_free(b->panel);
}
