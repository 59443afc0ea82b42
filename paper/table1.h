/* table1.h - the parts of `hollow paper table1`. */
#ifndef PAPER_TABLE1_H
#define PAPER_TABLE1_H

#include "paper.h"

enum { TABLE1_RUNS = 12, TABLE1_HOLLOW = 5 };

/* A posterior to train, and settings of it. An optional one is trained only if --only names it. Networks that are taken from another
 * autoencoder are frozen, unless `thawed`. */
enum { TABLE1_SETTINGS = 4 };
typedef struct table1_run {
    const char *name, *posterior, *settings[TABLE1_SETTINGS][2];
    bool optional, thawed;
} table1_run;
extern const table1_run table1_runs[TABLE1_RUNS];

/* Validations of one training: -ELBO against epochs and processor seconds. */
enum { TABLE1_MOST_POINTS = 400 };
typedef struct table1_curve {
    size_t count;
    struct {
        double iteration, epoch, cpu, validation, loss, norm, steps;
    } point[TABLE1_MOST_POINTS];
} table1_curve;

/* Bounds of test rows: -ELBO of all of them, and importance sampling on few rows with many samples and on more with fewer. */
enum { TABLE1_ALL, TABLE1_MORE, TABLE1_FEW, TABLE1_PARTS };

typedef struct table1_result {
    bool there;
    double seconds, epochs, validation; /* of training; processor seconds */
    size_t parameters;
    hl_vae_row_result *row[TABLE1_PARTS]; /* [rows of the part] */
    double evaluations;                   /* of a continuous posterior, a sample */
} table1_result;

typedef struct table1 {
    const paper_settings *set;
    hl_context *ctx;
    const char *net;
    bool picture; /* of posteriors, instead of the table */
    size_t latent, epochs;
    size_t samples[TABLE1_PARTS]; /* of each row */
    size_t image[3], dim;
    hl_images *file[3]; /* train, valid, test; NULL if they are made here */
    unsigned char *made;
    unsigned char *copy[TABLE1_PARTS]; /* of test rows, or NULL */
    hl_vae_rows train, valid, part[TABLE1_PARTS];
    table1_result result[TABLE1_RUNS];
} table1;

int table1_failed(const table1 *t, hl_status status);
/* DIR/table1_KIND_NAME_SEED SUFFIX */
void table1_path(const table1 *t, const char *kind, const char *name, const char *suffix, char *path, size_t size);
/* Is this one of those asked for by --only? */
bool table1_wanted(const table1 *t, const table1_run *run);

/* Train one, or load it if it is there, or go on with it. `from`: with its networks; NULL: from scratch. Returns CLI_OK or an exit
 * status, having said what is wrong. (table1_train.c) */
int table1_train(table1 *t, const table1_run *run, const char *kind, size_t latent, const hl_vae *from,
                 table1_result *result, hl_vae **vae);
/* Read the curve of a training; returns whether there is one. */
bool table1_read_curve(const table1 *t, const char *kind, const char *name, table1_curve *curve);

bool table1_is_done(const table1 *t, const char *kind, const table1_run *run);

/* Bounds of every test row, from a file if they are there. (table1_evaluate.c) */
int table1_evaluate(table1 *t, const char *kind, const table1_run *run, hl_vae *vae, table1_result *result);
/* The tables of all results that are there. (table1_write.c) */
int table1_write(table1 *t, const char *kind);
typedef struct table1_mean {
    double mean, error;
} table1_mean;
/* Mean over rows of -a (b NULL), or of a - b, and its standard error; of IWAE or of the ELBO. */
table1_mean table1_mean_of(const hl_vae_row_result *a, const hl_vae_row_result *b, bool importance, size_t rows);
/* Two-tailed t-test at .05. */
bool table1_is_significant(table1_mean m, size_t rows);
/* A comma, and the number if it is finite. */
void table1_print(FILE *out, double value);

/* All parts go on training with each posterior; then one kind of posterior is fitted to every decoder. (table1_anchor.c) */
int table1_anchor(table1 *t);

/* The posterior of one image, exact and by every model of two latent values, on a grid. (table1_picture.c) */
int table1_picture(table1 *t);

#endif
