/* edge_lines.h - one chunk of an edge list: its lines as pairs of nodes; used by edge_set.c.
 *
 *     text  | chunk 0 ....\n| chunk 1 ....\n| chunk 2 ..\n|       each is counted, then parsed, by one thread
 */
#ifndef STRETTO_LEARN_EDGE_LINES_H
#define STRETTO_LEARN_EDGE_LINES_H

#include "data/vocab.h"

/* How nodes are named: EDGES_NUMBERS: integers below 2^32, kept as they are.  EDGES_WORDS: numbered by the vocabulary of the
 * chunk.  EDGES_LISTED: numbered by a list. */
enum edge_names { EDGES_NUMBERS, EDGES_WORDS, EDGES_LISTED };

struct edge_text {
    const char *name;          /* of the file */
    const char *list_name;
    const struct vocab *list;  /* with EDGES_LISTED */
    enum edge_names names;
    i32 columns;               /* 2, or 3 with weights */
    u32 *from, *to;
    f64 *weight;
};

struct edge_chunk {
    const char *p, *end; /* whole lines; a line feed stands before `end`, and at least 32 bytes can be read behind it */
    i64 lines, edges;    /* in it */
    i64 line0, edge0;    /* before it */
    u32 most;            /* EDGES_NUMBERS: the largest */
    bool other;          /* EDGES_NUMBERS: a name is no such integer; the rest was not read */
    struct vocab words;  /* EDGES_WORDS */
};

/* Columns of the first edge, which all others must have; 0 = there is no edge.  Where that line is a header (from, to), *p moves
 * behind it, and *lines is the number of lines before. */
i32 edge_columns(const char **p, const char *end, i64 *lines);
void edge_chunk_count(struct edge_chunk *c);                              /* sets lines and edges */
err edge_chunk_parse(const struct edge_text *t, struct edge_chunk *c);    /* E103, E202, E203, E204, E601 */
/* The next word of a line: *p moves behind it.  NULL = the line has no more; it ends at *p. */
const char *edge_word(const char **p, i64 *n);

#endif
