/* page.h - HTML that is written piece by piece to memory, and figures in it.
 *
 * Everything that comes from a user, such as names of columns, goes through hl_page_text or hl_page_script_text. Numbers are
 * written the same way in every locale. */
#ifndef HL_REPORT_PAGE_H
#define HL_REPORT_PAGE_H

#include "base/base.h"
#include "io/json.h"

/* The first failure is kept; after it nothing is written. */
typedef struct hl_page {
    hl_context *ctx;
    void *text;
    size_t used, capacity;
    bool failed;
} hl_page;

/* Our own HTML, as it is; format: our own texts and whole numbers. */
void hl_page_put(hl_page *p, const char *html);
void hl_page_add(hl_page *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A text of the user in HTML, in an attribute's quotes, or, with quotes around it, in JSON inside of a script. */
void hl_page_text(hl_page *p, const char *text);
void hl_page_script_text(hl_page *p, const char *text);
/* A number of so many digits, such as 0.0123, -12.3 or 1.2e-7; a dash for NaN. */
void hl_page_number(hl_page *p, double value, int digits);
/* The same with ASCII alone, for scripts; null if it is not finite. */
void hl_page_script_number(hl_page *p, double value, int digits);
/* A place in a picture: with one decimal, in -9999..9999. */
void hl_page_place(hl_page *p, double value);
/* 1,234,567 */
void hl_page_count(hl_page *p, size_t value);
/* 0.012: "1.2 %" */
void hl_page_percent(hl_page *p, double share);
/* "< 0.001", or the number. */
void hl_page_p_value(hl_page *p, double value);

/* The style sheet and the script of all pages; the base64 text of the SHA-256 of the script. (look.c) */
extern const char hl_page_style[], hl_page_script[];
/* The digest of a text as base64: 44 characters and a NUL. (sha256.c) */
void hl_sha256_base64(const char *text, char digest[45]);

/* ---- figures (plot.c) ---- */

/* A picture with two axes. Set the first four, then open it. */
typedef struct hl_plot {
    hl_page *page;
    const char *title, *x_label, *y_label; /* of the user, or ours; NULL: none */
    double low[2], high[2];                /* of the axes, x and y */
    int wide;                              /* nonzero: twice as wide */
    double width, height, left, top;       /* of the area between the axes, and where it is */
} hl_plot;
void hl_plot_open(hl_plot *p);
void hl_plot_close(hl_plot *p);
/* A line through points; what is not finite breaks it. */
void hl_plot_line(hl_plot *p, const char *style, size_t count, const double *x, const double *y);
/* The area between two lines. */
void hl_plot_band(hl_plot *p, const char *style, size_t count, const double *x, const double *low, const double *high);
/* Heights of bins of equal width from the lowest to the highest x: filled, or their outline. */
void hl_plot_bars(hl_plot *p, const char *style, size_t count, double low, double high, const double *height);
void hl_plot_steps(hl_plot *p, const char *style, size_t count, double low, double high, const double *height);
/* Dots at points, every `stride` values. */
void hl_plot_dots(hl_plot *p, const char *style, size_t count, size_t stride, const double *x, const double *y);
/* A range that has all finite values of an array, and a margin; low < high. */
void hl_plot_range(size_t count, const double *values, double *low, double *high);
/* n x n numbers in -1..1 as coloured squares; index: which rows and columns, of `stride`. */
void hl_plot_matrix(hl_page *page, const char *title, size_t n, const size_t *index, size_t stride, const double *a,
                    const double *minus);

/* A picture of pixels, a byte for each or three for red, green and blue, as a PNG file in the page. (image.c) */
void hl_page_picture(hl_page *page, const char *title, size_t width, size_t height, size_t channels,
                     const unsigned char *pixels);

#endif
