/* plot.c - parts of pictures that gnuplot draws: curves of training, ranges, points, histograms. */
#include <stdlib.h>
#include <string.h>

#include "program.h"

enum { BINS = 25 };

void cli_curves_add(cli_curves *curves, const double point[CLI_CURVES])
{
    if (curves->count == curves->capacity) {
        size_t capacity = curves->capacity ? 2 * curves->capacity : 256;
        void *grown = realloc(curves->point, capacity * sizeof *curves->point);
        if (!grown)
            return; /* pictures are not worth failing for */
        curves->point = grown;
        curves->capacity = capacity;
    }
    memcpy(curves->point[curves->count++], point, sizeof *curves->point);
}

int cli_plot_start(const cli_command *command, cli_file *file, const char *directory, const char *name, int width,
                   int height)
{
    int error = cli_plot_open(file, directory, name, width, height);
    return error ? cli_fail(command, CLI_WRONG, "%s/%s: %s", directory, name, strerror(error)) : CLI_OK;
}

int cli_plot_finish(const cli_command *command, cli_file *file, const char *directory, const char *name)
{
    return cli_plot_keep(file) == 0
               ? CLI_OK
               : cli_fail(command, CLI_FAILED, "%s/%s: gnuplot could not draw it", directory, name);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int cli_find_range(const cli_command *command, size_t rows, size_t stride, const double *x, double range[2])
{
    double *v = calloc(rows, sizeof *v);
    if (!v)
        return cli_no_memory(command);
    for (size_t r = 0; r < rows; r++)
        v[r] = x[r * stride];
    qsort(v, rows, sizeof *v, ascending);
    range[0] = v[rows / 1000];
    range[1] = v[rows - 1 - rows / 1000];
    double margin = 0.05 * (range[1] - range[0]);
    range[0] -= margin;
    range[1] += margin;
    free(v);
    return CLI_OK;
}

void cli_plot_label(FILE *g, const char *what, const char *name)
{
    fprintf(g, "set %s \"", what);
    for (; *name; name++)
        fputc(*name == '"' || *name == '\\' || *name == '`' || (unsigned char)*name < ' ' ? '?' : *name, g);
    fprintf(g, "\" noenhanced\n");
}

void cli_plot_points(FILE *g, const char *name, size_t rows, size_t stride, size_t columns, size_t most,
                     const double *x)
{
    size_t shown = rows < most ? rows : most;
    fprintf(g, "$%s << E\n", name);
    for (size_t i = 0; i < shown; i++) {
        for (size_t k = 0; k < columns; k++)
            fprintf(g, "%.7g ", x[i * rows / shown * stride + k]);
        fputc('\n', g);
    }
    fprintf(g, "E\n");
}

void cli_plot_histogram(FILE *to, const char *name, size_t number, size_t rows, size_t stride, const double *x,
                        const double range[2])
{
    double low = range[0], high = range[1], count[BINS] = { 0 }, width = (high - low) / BINS;
    for (size_t r = 0; r < rows; r++) {
        double at = (x[r * stride] - low) / width;
        if (at >= 0 && at < BINS)
            count[(size_t)at]++;
    }
    fprintf(to, "$%s%zu << E\n", name, number);
    for (size_t b = 0; b < BINS; b++)
        fprintf(to, "%.7g %.7g\n", low + width * ((double)b + 0.5), count[b] / (double)rows / width);
    fprintf(to, "E\n");
}
