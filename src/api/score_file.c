/* score_file.c - --scores: the lines of a score table as a CSV file. */
#include "api/score_file.h"

#include "base/file.h"

err score_file(const struct options *o, const struct score_lines *l) {
    struct str text = {0};
    if (!o->scores || !*o->scores || !l) return 0;
    lines_csv(&text, l);
    return file_option(file_write_text(o->scores, &text), "--scores");
}
