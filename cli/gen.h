/* gen.h - pages made from the tables: the manual page and the completion of shells (hidden options of `stretto help`). */
#ifndef STRETTO_CLI_GEN_H
#define STRETTO_CLI_GEN_H

#include <stdio.h>

#include "opt/opt.h"

void gen_man(FILE *f, const struct opt_list *lists);
err gen_completion(FILE *f, const char *shell, const struct opt_list *lists); /* "bash", "zsh", "fish"; else E103 */

#endif
