/* report.h - a report from inside: numbers, the rows that pictures show, and the texts of the page. */
#ifndef HL_REPORT_REPORT_H
#define HL_REPORT_REPORT_H

#include "hollow/report.h"
#include "learn/density.h"
#include "report/page.h"

typedef enum hl_report_kind { HL_REPORT_OF_DENSITY = 0, HL_REPORT_OF_SDE, HL_REPORT_OF_VAE } hl_report_kind;

/* Rows of data, or draws, in the user's units. */
typedef struct hl_report_set {
    size_t rows;
    double *x, *c;  /* rows x dim, rows x context */
    double *logp;   /* rows */
    size_t *number; /* of the table; NULL for draws */
} hl_report_set;

/* The drift of two columns on a grid, and where the data are. */
typedef struct hl_report_field {
    size_t side; /* points of a side; 0: none */
    double low[2], high[2];
    double *f; /* side x side x 2 */
    size_t points;
    double *point; /* points x 2 */
} hl_report_field;

/* A picture of samples, reconstructions or traversals. */
enum { HL_REPORT_SHEETS = 3 };
typedef struct hl_report_sheet {
    size_t width, height, channels;
    unsigned char *pixels; /* NULL: none */
} hl_report_sheet;

struct hl_report {
    hl_context *ctx;
    hl_arena arena; /* of all that the report points to */
    hl_report_kind kind;
    hl_report_level level;
    char verdict[600], title[160], data[160], call[400], note[1200];
    hl_density_report density;
    hl_sde_report sde;
    hl_report_field field;
    hl_vae_report vae;
    hl_report_sheet sheet[HL_REPORT_SHEETS];
    hl_report_set set[2];       /* data, draws */
    const char **name;          /* of the columns of x, then of the context */
    const size_t *by_column;    /* where the column of a number is among density.column */
    size_t members;
    hl_density_member member[HL_DENSITY_MIXTURES + 1];
    const char *flow_kind; /* or NULL */
    hl_flow_solver solver;
    char method[32];
    hl_density_accuracy accuracy;
    hl_report_mean member_logp[HL_DENSITY_MIXTURES + 1];
    struct { /* rows with a value far from all draws, and the one that is farthest */
        size_t rows, number, column;
        double value;
    } far;
    char no_gains[200]; /* why there are no gains over simple models; empty: there are */
};

/* `count` elements of `size` bytes, zeroed; NULL with the message set. */
void *hl_report_room(hl_report *report, size_t count, size_t size);
hl_status hl_report_create(hl_context *ctx, hl_report_kind kind, const hl_report_options *options, hl_report **report);

/* Parts of hl_report_density. */
void hl_density_find_far(hl_density *model, hl_report *report);
hl_status hl_density_study_baselines(hl_density *model, hl_report *report);
hl_status hl_density_study_rows(hl_density *model, hl_report *report);
hl_status hl_density_study_solver(hl_density *model, hl_report *report);
hl_report_mean hl_report_mean_of(size_t rows, const double *values);
/* What the model knows of its training: the course, and which rows it has seen. (training.c) */
hl_status hl_density_study_training(hl_density *model, hl_report *report);
void hl_report_tell_training(size_t known, size_t trained, hl_text *text);
/* *to becomes a copy that the report owns. */
hl_status hl_report_copy_course(hl_report *report, size_t points, const hl_training_point *from,
                                const hl_training_point **to);
void hl_report_page_training(size_t points, const hl_training_point *course, hl_page *page);
void hl_report_put_training(size_t points, const hl_training_point *course, const char *key, hl_json_writer *w);
/* The same of models with one phase of training: a figure for each loss. */
typedef struct hl_report_losses {
    const char *title, *label;
    size_t points;
    const hl_training_point *course;
} hl_report_losses;
void hl_report_page_losses(size_t figures, const hl_report_losses *losses, hl_page *page);
/* The verdict, and its level. */
void hl_density_judge(hl_report *report);

/* The page of a density model: its head, then the rest. */
void hl_density_page_head(const hl_report *report, hl_page *page);
void hl_density_page_body(const hl_report *report, hl_page *page);
void hl_density_page_pairs(const hl_report *report, hl_page *page);
/* The numbers as members of the object that is open. */
void hl_density_put_json(const hl_report *report, hl_json_writer *w);

/* The same of a stochastic equation. */
void hl_sde_report_judge(hl_report *report);
void hl_sde_page_head(const hl_report *report, hl_page *page);
void hl_sde_page_body(const hl_report *report, hl_page *page);
void hl_sde_put_json(const hl_report *report, hl_json_writer *w);
/* And of an autoencoder. */
void hl_vae_page_head(const hl_report *report, hl_page *page);
void hl_vae_page_body(const hl_report *report, hl_page *page);
void hl_vae_put_json(const hl_report *report, hl_json_writer *w);
/* Members of objects. */
void hl_report_put_real(hl_json_writer *w, const char *key, double value); /* null if it is not finite */
void hl_report_put_count(hl_json_writer *w, const char *key, size_t value);
void hl_report_put_mean(hl_json_writer *w, const char *key, hl_report_mean mean);
void hl_report_put_array(hl_json_writer *w, const char *key, size_t count, const double *values);
/* A tile with a mean, and a table's cell with a number. */
void hl_report_tile(hl_page *page, hl_report_mean mean, const char *what);
void hl_report_cell_of(hl_page *page, double value, int digits);
/* The list of facts: opened with the name of the data (NULL: "none"), further ones by hl_report_fact, closed with call, training and
 * version. */
void hl_report_facts_open(const char *data, hl_page *page);
void hl_report_fact(hl_page *page, const char *name);
void hl_report_facts_close(const hl_report *report, hl_page *page);
/* "; " between the parts of a verdict. */
void hl_report_separate(hl_text *text);

#endif
