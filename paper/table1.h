/* table1.h - the parts of `hollow paper table1`. */
#ifndef PAPER_TABLE1_H
#define PAPER_TABLE1_H

#include "paper.h"

enum { TABLE1_RUNS = 7, TABLE1_HOLLOW = 5 };

/* A posterior to train; the last is the hollow network again, with the other trace. */
typedef struct table1_run {
    const char *name, *posterior, *trace;
} table1_run;
extern const table1_run table1_runs[TABLE1_RUNS];

/* What came of it. */
typedef struct table1_result {
    double seconds, epochs, validation; /* of training */
    size_t parameters;
    double *elbo, *iwae;  /* [rows] */
    double evaluations;   /* of a continuous posterior, a sample */
    double train_seconds; /* an epoch */
} table1_result;

typedef struct table1 {
    const paper_settings *set;
    hl_context *ctx;
    const char *net;
    size_t latent, epochs, rows, importance, made_rows;
    size_t image[3], dim;
    hl_images *file[3]; /* train, valid, test; NULL if they are made here */
    unsigned char *made;
    hl_vae_rows train, valid, test; /* test: the rows that are evaluated */
    unsigned char *chosen;          /* where they are */
    table1_result result[TABLE1_RUNS];
} table1;

/* Train one, or load it if it is there, or go on with it. `from`: with its networks frozen; NULL: from scratch. Returns CLI_OK
 * or an exit status, having said what is wrong. */
int table1_train(table1 *t, const table1_run *run, const char *kind, size_t latent, const hl_vae *from,
                 table1_result *result, hl_vae **vae);
/* The posterior of one image, exact and by every model of two latent values, on a grid. */
int table1_picture(table1 *t);

#endif
