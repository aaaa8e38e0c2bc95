/* opt_parse.h - text -> checked value of one option; private to src/opt. */
#ifndef STRETTO_OPT_OPT_PARSE_H
#define STRETTO_OPT_OPT_PARSE_H

#include "opt/opt.h"

struct opt_value {
    bool b;
    i64 i;
    f64 f;
    const char *text; /* the value in its plain form; points into buffer or to the table */
    struct str buffer;
};

/* E103 when the text is not a value of the option.  The caller frees v->buffer also after a failure. */
err opt_parse(const struct opt_list *lists, const struct opt_info *info, const char *text, const struct opt_from *from,
              struct opt_value *v);

#endif
