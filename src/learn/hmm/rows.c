/* rows.c - tokens of a file as words and labels of a hidden Markov model. */
#include <string.h>

#include "base/mem.h"
#include "learn/hmm/hmm.h"

static i32 code_of(const struct vocab *v, const char *word) { return vocab_find(v, word, (i64)strlen(word)); }

/* The words of a column that occur among its first n tokens, in order of first appearance. */
static err words_of(const struct token_column *c, i64 n, struct vocab *out) {
    for (i64 i = 0; i < n; i++) {
        const char *word = token_word(c, i);
        i32 code;
        TRY(vocab_code(out, word, (i64)strlen(word), &code));
    }
    return 0;
}

err hmm_learn_words(struct hmm *h, const struct token_set *s, i32 n) {
    TRY(words_of(token_input(s, 0), s->first[n], &h->word));
    if (s->tag >= 0) TRY(words_of(token_tag(s), s->first[n], &h->label));
    return 0;
}

/* code [ntoken] = words of a column by their number in `known`, `other` where there is none. */
static err translate(const struct token_column *c, i64 n, const struct vocab *known, i32 other, i32 **code) {
    i32 *to;
    NEW(*code, n + 1);
    NEW(to, c->word.n + 1);
    for (i32 w = 0; w < c->word.n; w++) {
        const i32 at = code_of(known, vocab_word(&c->word, w));
        to[w] = at < 0 ? other : at;
    }
    for (i64 i = 0; i < n; i++) (*code)[i] = to[c->code[i]];
    mem_free(to);
    return 0;
}

err hmm_tokens_of(const struct hmm *h, const struct token_set *s, struct hmm_tokens *out) {
    *out = (struct hmm_tokens){0};
    err e = translate(token_input(s, 0), s->ntoken, &h->word, h->W - 1, &out->word);
    if (e >= 0 && s->tag >= 0 && h->tag >= 0) e = translate(token_tag(s), s->ntoken, &h->label, -1, &out->label);
    if (e < 0) {
        hmm_tokens_free(out);
        return e;
    }
    for (i64 i = 0; i < s->ntoken; i++) out->unknown += out->word[i] == h->W - 1;
    return 0;
}

void hmm_tokens_free(struct hmm_tokens *t) {
    mem_free(t->word);
    mem_free(t->label);
    *t = (struct hmm_tokens){0};
}
