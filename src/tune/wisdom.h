/* wisdom.h - what was measured on this machine, as a text file that a person can read, edit and delete.
 *
 *     # stretto wisdom 1
 *     how cpu=Intel/806f8 table=avx512 cell=lstm precision=fp32 T=100 B=32 I=8 H=64 threads=1 best=ahead fold=571us ahead=443us
 *     precision cpu=... table=amx cell=lstm T=168 B=64 I=32 H=256 threads=1 best=bf16 fp32=160.1ms bf16=21.3ms
 *
 * One line per question; `best` is the answer, the times say why.  A damaged line is skipped and named in `damage`; a file that
 * is no wisdom of this version is left alone.  The file is written to a name of this process's own and renamed, with the lines
 * that others wrote in between: two processes at once lose no line, at worst they measure the same thing twice.
 *
 * One caller at a time. */
#ifndef STRETTO_TUNE_WISDOM_H
#define STRETTO_TUNE_WISDOM_H

#include "base/str.h"
#include "kern/kern.h"

enum tune_kind { TUNE_HOW, TUNE_PRECISION, TUNE_NKIND };
enum { WISDOM_VERSION = 1, WISDOM_CPU = 64, WISDOM_TABLE = 16, WISDOM_LINES = 4096, TUNE_WAYS = 2 };

/* One question.  precision is not part of the question TUNE_PRECISION (0 there). */
struct tune_key {
    enum tune_kind kind;
    char cpu[WISDOM_CPU], table[WISDOM_TABLE]; /* without spaces */
    enum cell_kind cell;
    enum precision precision;
    i32 T, B, I, H, threads;
};

/* Its answer: way 0 is fold or fp32, way 1 ahead or bf16. */
struct tune_entry {
    struct tune_key key;
    i32 best;
    f64 seconds[TUNE_WAYS];
    bool fresh; /* measured by this process, not yet in the file */
};

struct wisdom {
    char *path; /* NULL = off, or nowhere to keep it: answers last as long as the process */
    bool foreign; /* the text read last is no wisdom of ours: never written over */
    bool off;     /* STRETTO_WISDOM=off: nothing is measured either */
    char cpu[WISDOM_CPU];
    struct tune_entry *entry;
    i32 n, cap;
    char damage[400]; /* "line 7 is damaged and was left out", "" = none; whoever has told it clears it */
};

/* The file that STRETTO_WISDOM names, else stretto/wisdom in $XDG_CACHE_HOME or ~/.cache.  A file that is absent is empty; one
 * that cannot be read sets `damage` and is left alone.  cpu: name of the processor for people; what tells its generations apart
 * is added.  E601 only: no wisdom is no reason to stop. */
err wisdom_open(const char *cpu, struct wisdom *out);
void wisdom_close(struct wisdom *w);

const struct tune_entry *wisdom_find(const struct wisdom *w, const struct tune_key *key); /* NULL = not known */
err wisdom_put(struct wisdom *w, const struct tune_entry *e);                             /* E601 */
err wisdom_save(struct wisdom *w);                                                        /* E701, E702; fine without a path */

/* The text form.  wisdom_read adds to what is there; lines it does not understand only set `damage`. */
err wisdom_read(struct wisdom *w, const char *text, size_t n);
void wisdom_print(const struct wisdom *w, struct str *out);
void wisdom_line(const struct tune_entry *e, struct str *out); /* without the end of line */
const char *tune_way_name(enum tune_kind kind, i32 way);       /* "fold" */

/* signature.c: `name` without spaces, then what the processor says of itself: "Intel(R)_Xeon(R)_Processor/806f8". */
void cpu_signature(const char *name, char out[WISDOM_CPU]);

#endif
