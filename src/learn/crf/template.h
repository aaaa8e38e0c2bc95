/* template.h - feature templates in the notation of CRF++.
 *
 *     # comment
 *     U05:%x[-1,0]/%x[0,0]     unigram: text whose macros %x[row,column] stand for the word `row` lines further on
 *     B                        transitions between neighbouring labels
 *
 * Before the first line of a sentence a macro gives _B-1, _B-2, .., after the last one _B+1, _B+2, .. */
#ifndef STRETTO_LEARN_CRF_TEMPLATE_H
#define STRETTO_LEARN_CRF_TEMPLATE_H

#include "base/str.h"

enum { TEMPLATE_MACROS = 16, TEMPLATE_LINES = 4096, TEMPLATE_REACH = 1000 };

struct template_macro {
    i32 row, column;        /* relative line; input column from 0 */
    const char *text;       /* [length] the text before the macro, in the line */
    i32 length;
};

struct template_line {
    i32 n;
    struct template_macro macro[TEMPLATE_MACROS];
    const char *tail;       /* text after the last macro */
    i32 tail_length;
};

struct templates {
    char *text;             /* the file, owned */
    i32 n;
    struct template_line *line; /* [n] unigram lines */
    bool bigram;            /* the file has a line B */
};

/* Reads a template file, or the built-in templates for ncolumn input columns if path is NULL or "".  E103 with file:line, also
 * for a macro beyond the input columns or a B line with macros. */
err templates_load(const char *path, i32 ncolumn, struct templates *out);
/* The same from text; takes it over.  name: for messages. */
err templates_parse(char *text, const char *name, i32 ncolumn, struct templates *out);
void templates_free(struct templates *t);

#endif
