/* wisdom.h - measurements of this machine (autotuning cache, named after FFTW's wisdom), as a readable text file.
 *
 *     # stretto wisdom 1
 *     how cpu=Intel/806f8 table=avx512 cell=lstm precision=fp32 T=100 B=32 I=8 H=64 threads=1 best=ahead fold=571us ahead=443us
 *     precision cpu=... table=amx cell=lstm T=168 B=64 I=32 H=256 threads=1 best=bf16 fp32=160.1ms bf16=21.3ms
 *     cost cpu=... table=avx512 threads=2 work=fwd:6f1b9d2c40aa7e31:busy:0:0:16 seconds=3.2us
 *
 * One line per question; `best` is the answer, the times are the reason.  A cost is what a kind of work took, which its client
 * names (learn/costs.h). A damaged line is skipped and reported in `damage`. A
 * file of another format or version is never changed. The file is written under a unique name and renamed, merged with lines
 * that other processes added meanwhile, so concurrent processes lose no line. Not thread-safe. */
#ifndef STRETTO_TUNE_WISDOM_H
#define STRETTO_TUNE_WISDOM_H

#include "base/str.h"
#include "kern/kern.h"

enum tune_kind { TUNE_HOW, TUNE_PRECISION, TUNE_NKIND };
enum { WISDOM_VERSION = 1, WISDOM_CPU = 64, WISDOM_TABLE = 24, WISDOM_WORK = 64, WISDOM_LINES = 4096, TUNE_VARIANTS = 2 };

/* The key of a question. precision is 0 for TUNE_PRECISION. */
struct tune_key {
    enum tune_kind kind;
    char cpu[WISDOM_CPU], table[WISDOM_TABLE]; /* without spaces */
    enum cell_kind cell;
    enum precision precision;
    i32 T, B, I, H, threads;
};

/* Its answer: variant 0 is fold or fp32, variant 1 ahead or bf16. */
struct tune_entry {
    struct tune_key key;
    i32 best;
    f64 seconds[TUNE_VARIANTS];
    bool fresh; /* measured by this process, not yet in the file */
};

/* Seconds of a kind of work, with this number of worker threads. */
struct tune_seconds {
    char cpu[WISDOM_CPU], table[WISDOM_TABLE], work[WISDOM_WORK]; /* without spaces */
    i32 threads;
    f64 seconds;
    bool fresh;
};

struct wisdom {
    char *path; /* NULL = off, or no place for the file: answers last as long as the process */
    bool foreign; /* the file is not a wisdom file of this version: never overwrite it */
    bool off;     /* STRETTO_WISDOM=off: no measurements either */
    char cpu[WISDOM_CPU];
    struct tune_entry *entry;
    i32 n;
    i64 cap;
    struct tune_seconds *cost;
    i32 ncost;
    i64 cap_cost;
    char damage[400]; /* "line 7 is damaged and was left out", "" = none; the code that reports it clears it */
};

/* Opens the file that STRETTO_WISDOM names, else stretto/wisdom in $XDG_CACHE_HOME or ~/.cache. A missing file is empty; an
 * unreadable one sets `damage` and is not changed. cpu: processor name, to which the revision is added. Fails only with E601. */
err wisdom_open(const char *cpu, struct wisdom *out);
void wisdom_close(struct wisdom *w);

const struct tune_entry *wisdom_find(const struct wisdom *w, const struct tune_key *key); /* NULL = not known */
err wisdom_put(struct wisdom *w, const struct tune_entry *e);                             /* E601 */
err wisdom_put_cost(struct wisdom *w, const struct tune_seconds *c);                      /* E601 */
err wisdom_save(struct wisdom *w); /* E701, E702; no effect without a path */

/* Text form. wisdom_read adds to the entries; lines it cannot parse only set `damage`. */
err wisdom_read(struct wisdom *w, const char *text, size_t n);
void wisdom_print(const struct wisdom *w, struct str *out);
void wisdom_line(const struct tune_entry *e, struct str *out); /* without the end of line */
const char *tune_variant_name(enum tune_kind kind, i32 variant); /* "fold" */

/* `name` without spaces, then the processor's revision, since the name alone may be generic ("Processor") on cloud machines:
 * "Intel(R)_Xeon(R)_Processor/806f8". */
void cpu_signature(const char *name, char out[WISDOM_CPU]);

#endif
