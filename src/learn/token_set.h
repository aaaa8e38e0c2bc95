/* token_set.h - the data kind `tokens`: sequences of tokens, one token per line, sentences separated by blank lines (CoNLL).
 *
 *     Confidence NN B-NP        columns separated by blanks or tabs, the same number in every line
 *     in         IN B-PP        the tag: the last column, or the one that --target numbers from 1; --target 0 = no tag
 *                               a blank line ends a sentence; carriage returns at line ends are ignored
 *
 * Or, for learners that take attributes as they are (items), in the format of CRFsuite (Okazaki, 2007):
 *
 *     B-NP\tw=Confidence\tpos=NN       the tag, then any number of items, separated by tabs; "item:1" is "item", \: and \\ are
 *                                      a colon and a backslash.  The first item stands as a column of its own
 *
 * A learner asks for it by `.data = &data_tokens`; data_tokens.read then requires a tag column.  A record is a sentence:
 * set.nrow = sentences, and --test and --validation count sentences (token_set_split).  To predict or score, set
 * model_ops.open to a function that calls token_set_read_as with the columns of the training: the file may then lack the tag.
 *
 * Words are kept once per column, in order of first appearance; the codes of two files are not related.  A learner keeps the
 * words of its training and maps them by vocab_find. */
#ifndef STRETTO_LEARN_TOKEN_SET_H
#define STRETTO_LEARN_TOKEN_SET_H

#include "data/vocab.h"
#include "learn/learner.h"

struct token_column {
    i32 *code;         /* [ntoken] word of each token */
    i64 cap;           /* of code, while the file is read */
    struct vocab word; /* vocab_word(&word, code) */
    char name[24];     /* "column 1", "tag" */
};

struct token_set {
    struct dataset set; /* first; nrow = sentences; ncol = columns of the file; ntarget = 1 with a tag, else 0 */
    i64 ntoken;
    i32 nsentence, ncolumn;
    i32 tag;            /* column, -1 = none */
    bool tabs;          /* the first line separates columns by tabs */
    bool items;         /* CRFsuite's format: item_at, item and item_word are filled; columns are the tag and the first item */
    i64 *item_at;       /* [ntoken + 1] */
    i32 *item;          /* [item_at[ntoken]] words of item_word */
    struct vocab item_word;
    i64 item_at_cap, item_cap, nitem;
    i32 ninput;
    i32 *input;         /* [ninput] the other columns, in the order of the file */
    i64 *first;         /* [nsentence + 1] first token of each sentence; first[nsentence] = ntoken */
    i64 *line;          /* [nsentence] line of its first token, from 1; the others follow without a gap */
    struct token_column *column; /* [ncolumn] */
    i64 first_cap, line_cap;
};

extern const struct data_kind data_tokens;

static inline struct token_set *token_set_of(const struct dataset *d) { return (struct token_set *)(uintptr_t)d; }
static inline const struct token_column *token_input(const struct token_set *s, i32 i) { return &s->column[s->input[i]]; }
static inline const struct token_column *token_tag(const struct token_set *s) {
    return s->tag < 0 ? NULL : &s->column[s->tag];
}
static inline const char *token_word(const struct token_column *c, i64 token) { return vocab_word(&c->word, c->code[token]); }
static inline i32 token_count(const struct token_set *s, i32 sentence) {
    return (i32)(s->first[sentence + 1] - s->first[sentence]);
}

/* Reads a plain, gzip or zstd file.  tag: the column, -1 = the last one, TOKENS_NO_TAG = none.  E201, E202, E203 with the line;
 * E102 where the file has no such column, or none beside the tag. */
enum { TOKENS_LAST = -1, TOKENS_NO_TAG = -2 };
err token_set_read(const char *path, i32 tag, struct dataset **out);
/* The same for a model that was trained on `ncolumn` columns with the tag at `tag` (TOKENS_NO_TAG = none): a file with one column
 * less has no tag.  E903 for any other number of columns. */
err token_set_read_as(const char *path, i32 ncolumn, i32 tag, struct dataset **out);
/* A file in CRFsuite's format.  E203 for a line without a tag, E204 for an item with a weight other than 1. */
err token_set_read_items(const char *path, struct dataset **out);
/* "file:line" of a token. */
void token_where(const struct token_set *s, i64 token, char where[256]);
/* E212: the first `tokens` tokens have one tag. */
err token_one_tag(const struct token_set *s, i64 tokens);
/* Sentences for training, validation and test by --validation and --test; default: all train.  A split that is set stays. */
err token_set_split(const struct options *o, const struct token_set *s, struct split *out);

#endif
