/* look.c - the style sheet and the script of all pages, page.css and page.js, as text. CMake makes the lists of their bytes. */
#include "report/page.h"

const char hl_page_style[] = {
#include <page.css.inc>
    0
};

const char hl_page_script[] = {
#include <page.js.inc>
    0
};
