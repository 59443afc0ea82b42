/* fit.h - the parts of `hollow fit`: data, defaults, the loop, pictures. */
#ifndef CLI_FIT_H
#define CLI_FIT_H

#include "cli.h"

typedef struct fit_settings {
    uint64_t threads, seed, flows, hidden, hidden_layers, features, width, layers, iterations, batch, ode_steps,
        patience, warmup;
    double rtol, atol, lr, weight_decay, last_lr, clip, average, minutes, jitter, save_every, validation_share;
    const char *out, *valid, *context, *columns, *array, *kind, *conditioner, *activation, *trace, *loss, *solver,
        *dtype, *optimizer, *log, *plot, *image, *transport, *decorrelate;
    bool resume, drop, dequantize;
} fit_settings;

/* Rows in memory, in the units of the data. */
typedef struct fit_rows {
    size_t rows;
    double *x, *c; /* rows x dim, rows x context */
} fit_rows;

typedef struct fit_data {
    size_t dim, context;
    hl_density_column *columns; /* dim, then context; names are owned */
    bool named;                 /* the file gave the names */
    fit_rows train, valid;
    double *factor; /* L of fit_decorrelate.c, dim x dim, or NULL */
    size_t *order;  /* columns for the conditioner, or NULL */
    uint64_t hash;  /* of all numbers */
} fit_data;

/* Read, check, split and standardise. Returns CLI_OK or an exit status, having said what is wrong. */
int fit_load(hl_context *ctx, const char *path, const fit_settings *set, fit_data *data);
void fit_data_free(fit_data *data);

/* Take strong correlations out of the standardised rows; CLI_OK, or CLI_FAILED without memory. */
int fit_decorrelate(const fit_settings *set, fit_data *data);
/* A training row's standardised value, with its correlations. */
double fit_value(const fit_data *data, size_t row, size_t column);

/* Warn of values far from the others of their column, in the units of the table (fit_check.c); and of columns that are linear
 * functions of others. CLI_OK, or CLI_FAILED without memory. */
int fit_warn_far(const hl_table *table, const size_t *index, const fit_data *data);
int fit_warn_dependent(const fit_data *data);

/* Curves and densities, as PNG files in a directory. */
typedef struct fit_curves {
    size_t count, capacity;
    double (*point)[5]; /* iteration, loss or NaN, validation or NaN, evaluations, 1 if likelihood */
} fit_curves;
void fit_curves_add(fit_curves *curves, const double point[5]);
int fit_plot(const char *directory, hl_context *ctx, hl_density *model, const fit_data *data, const fit_curves *curves);

extern const cli_command cli_fit;

#endif
