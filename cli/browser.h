/* browser.h - a browser as a program: shows a page, or prints it. */
#ifndef STRETTO_CLI_BROWSER_H
#define STRETTO_CLI_BROWSER_H

#include "cli.h"

/* Opens a page with $BROWSER, or with the program of the system that opens files. Does not wait for it.  E707. */
stretto_err browser_open(const char *html_path);
/* Prints a page into a PDF file and waits for it.  E707: no such browser, or it failed. */
stretto_err browser_print(const char *html_path, const char *pdf_path);

#endif
