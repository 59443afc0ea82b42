/* png.h - grids of images as PNG files. */
#ifndef PROGRAM_PNG_H
#define PROGRAM_PNG_H

#include "program.h"

/* Images of values 0..1 (shown as black to white), from left to right and line by line. */
typedef struct cli_grid {
    size_t count, columns;
    size_t shape[3]; /* channels, height, width */
    const double *values;
} cli_grid;
/* Returns 0 or an errno. The file appears complete or not at all. */
int cli_write_grid(const char *path, const cli_grid *grid);

#endif
