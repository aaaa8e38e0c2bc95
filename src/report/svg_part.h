/* svg_part.h - elements shared by charts and timeline; private to this folder. */
#ifndef STRETTO_REPORT_SVG_PART_H
#define STRETTO_REPORT_SVG_PART_H

#include "report/text.h"

struct figure svg_number(f64 v); /* a coordinate: at most one decimal */
void svg_text(struct str *b, f64 x, f64 y, const char *class, const char *anchor, const char *s); /* anchor "", middle, end */
void svg_line(struct str *b, const char *class, f64 x1, f64 y1, f64 x2, f64 y2);
void svg_open(struct str *b, f64 w, f64 h, const char *label, bool alone);

#endif
