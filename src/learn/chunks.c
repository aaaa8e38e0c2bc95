/* chunks.c - scores over chunks of tags; see chunks.h. */
#include "learn/chunks.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"

struct tag {
    char prefix; /* first character of the text before '-'; 0 = longer than one character */
    i32 type;    /* -1 = none */
};

static err parse_tags(const struct vocab *word, struct vocab *type, struct tag *out) {
    for (i32 i = 0; i < word->n; i++) {
        const char *text = vocab_word(word, i), *dash = strchr(text, '-');
        const size_t n = dash ? (size_t)(dash - text) : strlen(text);
        out[i] = (struct tag){n == 1 ? *text : 0, -1};
        if (dash) TRY(vocab_code(type, dash + 1, (i64)strlen(dash + 1), &out[i].type));
    }
    return 0;
}

static bool is_outside(const struct tag *t) { return t->prefix == 'O' || t->prefix == '.'; }

static bool ends_before(const struct tag *last, const struct tag *t) {
    const char a = last->prefix, b = t->prefix;
    if (a == ']' || a == '[') return true;
    if (!is_outside(last) && last->type != t->type) return true;
    if (a == 'B' || a == 'I') return b == 'B' || b == 'O';
    return a == 'E' && (b == 'E' || b == 'I' || b == 'O');
}

static bool begins_at(const struct tag *last, const struct tag *t) {
    const char a = last->prefix, b = t->prefix;
    if (b == '[' || b == ']') return true;
    if (!is_outside(t) && last->type != t->type) return true;
    if (b == 'B') return a == 'B' || a == 'I' || a == 'O' || a == 'E';
    return (b == 'I' || b == 'E') && (a == 'O' || a == 'E');
}

struct state {
    struct tag gold, guess; /* of the last token */
    bool inside;            /* both are inside the same chunk since its first token */
};

static void advance(struct chunk_scores *s, struct state *at, const struct tag *gold, const struct tag *guess) {
    const bool end = ends_before(&at->gold, gold), guess_end = ends_before(&at->guess, guess);
    const bool begin = begins_at(&at->gold, gold), guess_begin = begins_at(&at->guess, guess);
    if (at->inside) {
        if (end && guess_end && at->gold.type == at->guess.type) {
            at->inside = false;
            if (at->gold.type >= 0) s->each[at->gold.type].right++;
        } else if (end != guess_end || gold->type != guess->type) {
            at->inside = false;
        }
    }
    if (begin && guess_begin && gold->type == guess->type) at->inside = true;
    if (begin && gold->type >= 0) s->each[gold->type].gold++;
    if (guess_begin && guess->type >= 0) s->each[guess->type].found++;
    at->gold = *gold;
    at->guess = *guess;
}

static void count(const struct chunk_tags *gold, const struct chunk_tags *guess, const struct tag *gold_tag,
                  const struct tag *guess_tag, const i64 *first, i32 nsentence, struct chunk_scores *s) {
    static const struct tag outside = {'O', -1};
    for (i32 k = 0; k < nsentence; k++) {
        struct state at = {outside, outside, false};
        for (i64 t = first[k]; t < first[k + 1]; t++) {
            s->tokens++;
            s->right += strcmp(vocab_word(gold->word, gold->code[t]), vocab_word(guess->word, guess->code[t])) == 0;
            advance(s, &at, &gold_tag[gold->code[t]], &guess_tag[guess->code[t]]);
        }
        advance(s, &at, &outside, &outside);
    }
    for (i32 i = 0; i < s->type.n; i++) {
        s->all.gold += s->each[i].gold;
        s->all.found += s->each[i].found;
        s->all.right += s->each[i].right;
    }
}

err chunks_score(const struct chunk_tags *gold, const struct chunk_tags *guess, const i64 *first, i32 nsentence,
                 struct chunk_scores *out) {
    struct tag *tag;
    *out = (struct chunk_scores){0};
    NEW(tag, gold->word->n + guess->word->n);
    err e = parse_tags(gold->word, &out->type, tag);
    if (e >= 0) e = parse_tags(guess->word, &out->type, tag + gold->word->n);
    if (e >= 0) e = mem_new((void **)&out->each, out->type.n, sizeof *out->each);
    if (e >= 0) count(gold, guess, tag, tag + gold->word->n, first, nsentence, out);
    mem_free(tag);
    if (e < 0) chunks_free(out);
    return e;
}

void chunks_free(struct chunk_scores *s) {
    vocab_free(&s->type);
    mem_free(s->each);
    *s = (struct chunk_scores){0};
}

static f64 percent(i64 part, i64 whole) { return whole > 0 ? 100 * (f64)part / (f64)whole : (f64)NAN; }

f64 chunk_precision(const struct chunk_count *c) { return percent(c->right, c->found); }
f64 chunk_recall(const struct chunk_count *c) { return percent(c->right, c->gold); }
f64 chunk_f1(const struct chunk_count *c) { return percent(2 * c->right, c->gold + c->found); }
