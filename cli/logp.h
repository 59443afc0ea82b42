/* logp.h - the parts of `hollow logp`. */
#ifndef CLI_LOGP_H
#define CLI_LOGP_H

#include "cli.h"

enum { LOGP_CHUNK = 4096 };

typedef struct logp_row {
    double logp;
    size_t row;
} logp_row;

typedef struct logp_job {
    hl_context *ctx;
    hl_density *model;
    hl_table *table;
    const char *path;
    size_t columns;     /* of the file; columns of categories come after them */
    size_t first, rows; /* of the table, those of the part */
    bool later;         /* it is not the first part */
    size_t *x_index, *c_index;
    double *x, *c, *logp;
    size_t failed;
    bool imprecise;     /* said that rows lack the flow, or that the tolerance is too fine */
    double sum, square; /* of the log-densities that are finite */
    size_t infinite;    /* rows whose log-density is -inf */
    hl_table_writer *writer;
    double *appended; /* --append: LOGP_CHUNK rows with their log-density; else NULL */
    logp_row *worst;  /* --worst: the lowest so far, then room for a chunk; else NULL */
    size_t most_worst, worst_count;
    cli_json json;
    bool json_rows; /* the log-densities go to the JSON object */
    cli_progress progress;
} logp_job;

hl_status logp_read(logp_job *j, size_t start, size_t count);
/* Keep the lowest of a chunk, and at the end print them. */
void logp_keep_worst(logp_job *j, size_t start, size_t count);
int logp_print_worst(logp_job *j);
/* --calibrate: the same rows at ever finer tolerances, against the finest. Returns the exit status. */
int logp_calibrate(logp_job *j);

#endif
