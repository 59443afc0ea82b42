/* plot.c - figures as SVG: axes with round numbers, lines, bands, bars, dots and coloured squares.
 *
 * Colours are those of the page's style sheet, by class, so that one figure is right in light, dark and print. What is drawn between the
 * axes is clipped by an inner svg element. */
#include <math.h>

#include "report/page.h"

enum {
    WIDTH = 380,
    WIDE = 760,
    HEIGHT = 250,
    LEFT = 66,
    RIGHT = 14,
    TOP = 8,
    BOTTOM = 42,
    BOTTOM_BARE = 24,
    MOST_TICKS = 12,
    SQUARE = 40,
    SMALL = 8,
    LEVELS = 20
};

/* The distance of round numbers of which about `count` lie between low and high. */
static double round_step(double low, double high, int count)
{
    double rough = (high - low) / count, power = pow(10, floor(log10(rough))), ratio = rough / power;
    return (ratio < 1.5 ? 1 : ratio < 3.5 ? 2 : ratio < 7.5 ? 5 : 10) * power;
}

static double place_x(const hl_plot *p, double x)
{
    return (x - p->low[0]) / (p->high[0] - p->low[0]) * p->width;
}

static double place_y(const hl_plot *p, double y)
{
    return (p->high[1] - y) / (p->high[1] - p->low[1]) * p->height;
}

static void put_place(hl_plot *p, char letter, double x, double y)
{
    hl_page_add(p->page, "%c", letter);
    hl_page_place(p->page, place_x(p, x));
    hl_page_put(p->page, " ");
    hl_page_place(p->page, place_y(p, y));
}

/* " name="12.5"" */
static void attribute(hl_page *page, const char *name, double value)
{
    hl_page_add(page, " %s=\"", name);
    hl_page_place(page, value);
    hl_page_put(page, "\"");
}

static void tick(hl_plot *p, int axis, double value, int digits)
{
    hl_page *page = p->page;
    double at = axis ? p->top + place_y(p, value) : p->left + place_x(p, value);
    hl_page_put(page, "<line class=\"grid\"");
    attribute(page, "x1", axis ? p->left : at);
    attribute(page, "x2", axis ? p->left + p->width : at);
    attribute(page, "y1", axis ? at : p->top);
    attribute(page, "y2", axis ? at : p->top + p->height);
    hl_page_put(page, "/>");
    hl_page_add(page, "<text class=\"%s\"", axis ? "ty" : "tx");
    attribute(page, "x", axis ? p->left - 6 : at);
    attribute(page, "y", axis ? at + 4 : p->top + p->height + 16);
    hl_page_put(page, ">");
    hl_page_number(page, value, digits);
    hl_page_put(page, "</text>");
}

static void ticks(hl_plot *p, int axis)
{
    double low = p->low[axis], high = p->high[axis], step = round_step(low, high, axis ? 4 : p->wide ? 9 : 5);
    double most = fmax(fabs(low), fabs(high)), first = ceil(low / step - 1e-9);
    int digits = (int)(floor(log10(most)) - floor(log10(step)) + 1.5);
    for (int k = 0; k < MOST_TICKS && (first + k) * step <= high + 1e-9 * step; k++) {
        double value = (first + k) * step;
        tick(p, axis, fabs(value) < step * 1e-6 ? 0 : value, digits + 1);
    }
}

static void label(hl_plot *p)
{
    hl_page *page = p->page;
    if (p->x_label) {
        hl_page_put(page, "<text class=\"lx\"");
        attribute(page, "x", p->left + p->width / 2);
        attribute(page, "y", p->top + p->height + 34);
        hl_page_put(page, ">");
        hl_page_text(page, p->x_label);
        hl_page_put(page, "</text>");
    }
    if (p->y_label) {
        hl_page_put(page, "<text class=\"lx\" transform=\"translate(13 ");
        hl_page_place(page, p->top + p->height / 2);
        hl_page_put(page, ") rotate(-90)\">");
        hl_page_text(page, p->y_label);
        hl_page_put(page, "</text>");
    }
}

void hl_plot_open(hl_plot *p)
{
    hl_page *page = p->page;
    double all = p->wide ? WIDE : WIDTH;
    for (int axis = 0; axis < 2; axis++) {
        double middle = (p->low[axis] + p->high[axis]) / 2, least = fabs(middle) * 1e-9 + 1e-300;
        if (!isfinite(p->low[axis]) || !isfinite(p->high[axis]) || !isfinite(p->high[axis] - p->low[axis])) {
            p->low[axis] = 0;
            p->high[axis] = 1;
        } else if (!(p->high[axis] - p->low[axis] > least)) {
            p->low[axis] = middle - fmax(fabs(middle) / 2, 0.5);
            p->high[axis] = middle + fmax(fabs(middle) / 2, 0.5);
        }
    }
    p->left = LEFT;
    p->top = TOP;
    p->width = all - p->left - RIGHT;
    p->height = HEIGHT - TOP - BOTTOM;
    double below = p->x_label ? BOTTOM : BOTTOM_BARE;
    hl_page_add(page, "<figure%s>", p->wide ? " class=\"wide\"" : "");
    if (p->title) {
        hl_page_put(page, "<figcaption>");
        hl_page_text(page, p->title);
        hl_page_put(page, "</figcaption>");
    }
    hl_page_add(page, "<svg role=\"img\" viewBox=\"0 0 %.0f %.0f\" aria-label=\"", all, TOP + p->height + below);
    hl_page_text(page, p->title ? p->title : "figure");
    hl_page_put(page, "\">");
    ticks(p, 0);
    ticks(p, 1);
    label(p);
    hl_page_put(page, "<svg");
    attribute(page, "x", p->left);
    attribute(page, "y", p->top);
    attribute(page, "width", p->width);
    attribute(page, "height", p->height);
    hl_page_put(page, ">");
}

void hl_plot_close(hl_plot *p)
{
    hl_page_put(p->page, "</svg><rect class=\"frame\"");
    attribute(p->page, "x", p->left);
    attribute(p->page, "y", p->top);
    attribute(p->page, "width", p->width);
    attribute(p->page, "height", p->height);
    hl_page_put(p->page, "/></svg></figure>");
}

static void open_path(hl_plot *p, const char *style)
{
    hl_page_add(p->page, "<path class=\"%s\" d=\"", style);
}

void hl_plot_line(hl_plot *p, const char *style, size_t count, const double *x, const double *y)
{
    bool begun = false;
    open_path(p, style);
    for (size_t i = 0; i < count; i++) {
        if (isfinite(x[i]) && isfinite(y[i]))
            put_place(p, begun ? 'L' : 'M', x[i], y[i]);
        begun = isfinite(x[i]) && isfinite(y[i]);
    }
    hl_page_put(p->page, "\"/>");
}

void hl_plot_band(hl_plot *p, const char *style, size_t count, const double *x, const double *low, const double *high)
{
    open_path(p, style);
    for (size_t i = 0; i < count; i++)
        put_place(p, i ? 'L' : 'M', x[i], high[i]);
    for (size_t i = count; i-- > 0;)
        put_place(p, 'L', x[i], low[i]);
    hl_page_put(p->page, "z\"/>");
}

static void put_steps(hl_plot *p, size_t count, double low, double high, const double *height)
{
    double width = (high - low) / (double)count;
    for (size_t i = 0; i < count; i++) {
        put_place(p, i ? 'L' : 'M', low + (double)i * width, height[i]);
        put_place(p, 'L', low + (double)(i + 1) * width, height[i]);
    }
}

void hl_plot_bars(hl_plot *p, const char *style, size_t count, double low, double high, const double *height)
{
    open_path(p, style);
    put_steps(p, count, low, high, height);
    put_place(p, 'L', high, 0);
    put_place(p, 'L', low, 0);
    hl_page_put(p->page, "z\"/>");
}

void hl_plot_steps(hl_plot *p, const char *style, size_t count, double low, double high, const double *height)
{
    open_path(p, style);
    put_steps(p, count, low, high, height);
    hl_page_put(p->page, "\"/>");
}

/* A dot is a line of no length with round ends. */
void hl_plot_dots(hl_plot *p, const char *style, size_t count, size_t stride, const double *x, const double *y)
{
    open_path(p, style);
    for (size_t i = 0; i < count; i++)
        if (x[i * stride] >= p->low[0] && x[i * stride] <= p->high[0] && y[i * stride] >= p->low[1] &&
            y[i * stride] <= p->high[1]) {
            put_place(p, 'M', x[i * stride], y[i * stride]);
            hl_page_put(p->page, "h0");
        }
    hl_page_put(p->page, "\"/>");
}

void hl_plot_range(size_t count, const double *values, double *low, double *high)
{
    double least = INFINITY, most = -INFINITY;
    for (size_t i = 0; i < count; i++)
        if (isfinite(values[i])) {
            least = fmin(least, values[i]);
            most = fmax(most, values[i]);
        }
    double margin = 0.05 * (most - least);
    *low = least - margin;
    *high = most + margin;
}

/* The numbers in the squares of a small matrix. */
static void put_entries(hl_page *page, size_t n, const size_t *index, size_t stride, const double *a,
                        const double *minus)
{
    for (size_t k = 0; k < n * n; k++) {
        size_t at = index[k / n] * stride + index[k % n];
        double value = a[at] - (minus ? minus[at] : 0);
        hl_page_add(page, "<text class=\"entry%s\" x=\"%zu\" y=\"%zu\">", fabs(value) > 0.6 ? " on" : "",
                    k % n * SQUARE + SQUARE / 2, k / n * SQUARE + SQUARE / 2 + 4);
        hl_page_number(page, round(value * 100) / 100, 2);
        hl_page_put(page, "</text>");
    }
}

/* All squares of one colour are one path. */
void hl_plot_matrix(hl_page *page, const char *title, size_t n, const size_t *index, size_t stride, const double *a,
                    const double *minus)
{
    hl_page_put(page, "<figure><figcaption>");
    hl_page_text(page, title);
    hl_page_put(page, "</figcaption><svg role=\"img\" class=\"matrix\"");
    if (n <= SMALL)
        hl_page_add(page, " style=\"max-width:%zupx\"", n * (SQUARE + 8));
    hl_page_add(page, " viewBox=\"0 0 %zu %zu\" aria-label=\"", n * SQUARE, n * SQUARE);
    hl_page_text(page, title);
    hl_page_add(page, "\"><rect class=\"paper\" width=\"%zu\" height=\"%zu\"/>", n * SQUARE, n * SQUARE);
    for (int level = -LEVELS; level <= LEVELS; level++) {
        bool begun = false;
        for (size_t k = 0; level && k < n * n; k++) {
            size_t at = index[k / n] * stride + index[k % n];
            double value = a[at] - (minus ? minus[at] : 0);
            if (isnan(value) || (int)round(fmin(fmax(value, -1), 1) * LEVELS) != level)
                continue;
            if (!begun)
                hl_page_add(page, "<path class=\"%s\" fill-opacity=\".%02d\" d=\"", level < 0 ? "neg" : "pos",
                            (level < 0 ? -level : level) * 99 / LEVELS);
            begun = true;
            hl_page_add(page, "M%zu %zuh%dv%dh-%dz", k % n * SQUARE, k / n * SQUARE, SQUARE, SQUARE, SQUARE);
        }
        if (begun)
            hl_page_put(page, "\"/>");
    }
    if (n <= SMALL)
        put_entries(page, n, index, stride, a, minus);
    hl_page_put(page, "</svg></figure>");
}
