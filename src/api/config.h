/* config.h - a config file (YAML or JSON) becomes option values: the only file that knows libyaml is config.c.
 *
 *     horizon: 24                  # the flag names as keys, flat
 *     quantiles: [0.1, 0.5, 0.9]   # a list, or comma text
 *     out: models/load.model       # counts from the folder of this file
 *
 * Values are typed by the option table, never by YAML: no, 012 and 1e3 stay what was written.  Values get the rank "file":
 * flags set before or after win.  Errors carry file:line:column: E101 unknown key, E103 bad value, E104 for anything that is no
 * flat list of names and values (a name given twice, tabs, anchors, several documents, no UTF-8), E701 and E202 from opening.
 */
#ifndef STRETTO_API_CONFIG_H
#define STRETTO_API_CONFIG_H

#include "opt/opt.h"

err config_load(const char *path, struct options *o);

/* The same from memory. name appears in messages and origins; paths are relative to its folder. */
err config_parse(const char *text, size_t n, const char *name, struct options *o);

#endif
