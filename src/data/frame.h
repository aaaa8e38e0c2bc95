/* frame.h - tables in memory that another library owns, by the Arrow C stream interface (arrow_c.h).
 *
 *     stream --frame_new--> frame "memory:1:data frame" --table_read(that path)--> table --> series
 *
 * A frame has a path, so whatever reads a data file reads a frame, any number of times; messages show its label.  A column of
 * f64 without a bitmap of missing cells, in one batch, is not copied: the table reads it where it lies, and keeps the frame. */
#ifndef STRETTO_DATA_FRAME_H
#define STRETTO_DATA_FRAME_H

#include "base/err.h"
#include "data/arrow_c.h"

struct frame {
    char *path;              /* "memory:NUMBER:LABEL" */
    i64 refs;                /* of the caller of frame_new, and of tables; the lock of frame_keep.c guards it */
    struct ArrowSchema schema;
    i64 n, cap;
    struct ArrowArray *array; /* [n] batches of rows, each a struct of columns */
    struct frame *next;
};

/* frame_keep.c */
/* Takes all batches of the stream and releases it, also after a failure.  E202: it gives no columns, or an error of its own. */
err frame_new(struct ArrowArrayStream *stream, const char *label, struct frame **out);
void frame_free(struct frame *f);              /* its path names nothing any more; NULL is allowed */
struct frame *frame_hold(const char *path);    /* the frame of a path, until frame_drop; NULL = there is none */
void frame_drop(struct frame *f);              /* NULL is allowed */

/* frame_schema.c */
struct arrow;
struct arrow_field;
/* The fields of the table from the columns of the schema.  E214, E202: a type that is not read. */
err frame_fields(struct arrow *a, const struct ArrowSchema *schema);

#endif
