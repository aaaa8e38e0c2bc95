/* advice.h - remedies of findings as options. */
#ifndef STRETTO_API_ADVICE_H
#define STRETTO_API_ADVICE_H

#include "base/str.h"
#include "opt/opt.h"

/* Sets the options of the first remedy in `fix`: items are added to --na, --ignore and --cat, other values are replaced. A remedy
 * that is a command or a sentence changes nothing. *changed becomes true if an option got another value, else it stays. E103. */
err advice_apply(struct options *o, const char *fix, bool *changed);

/* True for an option about data or windows that `check` takes and that was set. */
bool advice_concerns(const struct options *o, i32 id);

/* "stretto train FILE --target y --gaps mask" and a newline: the options that advice_concerns, quoted for a shell. */
void advice_command(const struct options *o, const char *path, struct str *out);

#endif
