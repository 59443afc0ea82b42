/* table1_write.c - the tables of `hollow paper table1`: bounds with paired differences from the first posterior, and what the same
 * trainings had reached after equal processor time. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "table1.h"

static double value_of(const hl_vae_row_result *row, bool importance)
{
    return importance ? row->iwae : row->elbo;
}

table1_mean table1_mean_of(const hl_vae_row_result *a, const hl_vae_row_result *b, bool importance, size_t rows)
{
    double sum = 0, square = 0, n = (double)rows;
    for (size_t i = 0; i < rows; i++)
        sum += b ? value_of(&a[i], importance) - value_of(&b[i], importance) : -value_of(&a[i], importance);
    for (size_t i = 0; i < rows; i++) {
        double v = b ? value_of(&a[i], importance) - value_of(&b[i], importance) : -value_of(&a[i], importance);
        square += (v - sum / n) * (v - sum / n);
    }
    return (table1_mean){ sum / n, sqrt(square / (n - 1) / n) };
}

/* The quantile by its expansion in 1 / n. */
bool table1_is_significant(table1_mean m, size_t rows)
{
    double z = 1.959964, n = (double)rows - 1, limit = z + (z * z * z + z) / (4 * n);
    return fabs(m.mean) > limit * m.error;
}

void table1_print(FILE *out, double value)
{
    if (isfinite(value))
        fprintf(out, ",%.4f", value);
    else
        fputc(',', out);
}

/* log p of the few rows: the best bound of all posteriors with an exact log q. Means something only with one decoder. */
static double mean_gap(const table1 *t, const table1_result *r)
{
    size_t rows = t->part[TABLE1_FEW].rows;
    double sum = 0;
    for (size_t i = 0; i < rows; i++) {
        double best = -INFINITY;
        for (size_t k = 0; k < TABLE1_RUNS; k++)
            if (t->result[k].there && !isnan(t->result[k].row[TABLE1_FEW][i].iwae))
                best = fmax(best, t->result[k].row[TABLE1_FEW][i].iwae);
        sum += (best - r->row[TABLE1_FEW][i].elbo) / (double)rows;
    }
    return sum;
}

static void write_line(FILE *out, const table1 *t, size_t k)
{
    const table1_result *r = &t->result[k], *first = &t->result[0];
    size_t rows[TABLE1_PARTS];
    for (size_t i = 0; i < TABLE1_PARTS; i++)
        rows[i] = t->part[i].rows;
    table1_mean elbo = table1_mean_of(r->row[TABLE1_ALL], NULL, false, rows[TABLE1_ALL]);
    fprintf(out, "%s,%.4f,%.4f", table1_runs[k].name, elbo.mean, elbo.error);
    for (int part = TABLE1_FEW; part >= TABLE1_MORE; part--) {
        table1_mean m = table1_mean_of(r->row[part], NULL, true, rows[part]);
        table1_print(out, m.mean);
        table1_print(out, m.error);
    }
    table1_print(out, t->set->shared ? mean_gap(t, r) : NAN);
    for (int part = TABLE1_ALL; part < TABLE1_PARTS; part++) {
        bool none = !first->there || r == first;
        table1_mean m = none ? (table1_mean){ NAN, NAN }
                             : table1_mean_of(r->row[part], first->row[part], part != TABLE1_ALL, rows[part]);
        table1_print(out, m.mean);
        table1_print(out, m.error);
        fprintf(out, ",%s", isnan(m.mean) ? "" : table1_is_significant(m, rows[part]) ? "yes" : "no");
    }
    double effective = 0;
    for (size_t i = 0; i < rows[TABLE1_FEW]; i++)
        effective += r->row[TABLE1_FEW][i].effective / (double)rows[TABLE1_FEW];
    table1_print(out, effective);
    fprintf(out, ",%.4f,%zu,%.3g,%.4g,%.0f\n", r->validation, r->parameters, r->epochs, r->seconds / r->epochs,
            r->evaluations);
}

static int write_bounds(FILE *out, const void *figure)
{
    const table1 *t = figure;
    size_t few = t->samples[TABLE1_FEW], more = t->samples[TABLE1_MORE];
    fprintf(out, "name,minus_elbo,error,minus_iwae_%zu,error_%zu,minus_iwae_%zu,error_%zu,gap", few, few, more, more);
    fprintf(out, ",elbo_better,elbo_better_error,elbo_significant");
    fprintf(out, ",iwae_%zu_better,iwae_%zu_better_error,iwae_%zu_significant", more, more, more);
    fprintf(out, ",iwae_%zu_better,iwae_%zu_better_error,iwae_%zu_significant", few, few, few);
    fprintf(out, ",effective,validation,parameters,epochs,cpu_seconds_per_epoch,evaluations\n");
    for (size_t k = 0; k < TABLE1_RUNS; k++)
        if (t->result[k].there)
            write_line(out, t, k);
    return 0;
}

/* ---- equal processor time ---- */

typedef struct curves {
    const table1 *table;
    table1_curve *of[TABLE1_RUNS]; /* NULL: none */
} curves;

/* -ELBO of the validation rows at this time, between two validations; NaN before the first and after the last. */
static double at_time(const table1_curve *c, double seconds)
{
    for (size_t i = 0; i + 1 < c->count; i++) {
        double a = c->point[i].cpu, b = c->point[i + 1].cpu;
        if (seconds >= a && seconds <= b)
            return c->point[i].validation +
                   (c->point[i + 1].validation - c->point[i].validation) * (seconds - a) / (b - a);
    }
    return NAN;
}

/* Quarters of the time of the shortest training, and the longer ones' ends. Rates and beta of a longer training are not at their
 * end there: not annealed. */
static int write_times(FILE *out, const void *figure)
{
    const curves *c = figure;
    double shortest = INFINITY;
    for (size_t k = 0; k < TABLE1_RUNS; k++)
        if (c->of[k])
            shortest = fmin(shortest, c->of[k]->point[c->of[k]->count - 1].cpu);
    fprintf(out, "name,cpu_seconds,validation,annealed\n");
    for (size_t k = 0; k < TABLE1_RUNS; k++)
        for (int i = 1; c->of[k] && i <= 8; i++) {
            double seconds = shortest * i / 4, end = c->of[k]->point[c->of[k]->count - 1].cpu;
            double value = at_time(c->of[k], fmin(seconds, end));
            if (seconds <= end && !isnan(value))
                fprintf(out, "%s,%.1f,%.4f,%s\n", table1_runs[k].name, seconds, value, seconds == end ? "yes" : "no");
        }
    return 0;
}

int table1_write(table1 *t, const char *kind)
{
    char name[2][100];
    curves c = { .table = t };
    snprintf(name[0], sizeof name[0], "table1_%s_%llu.csv", kind, (unsigned long long)t->set->seed);
    snprintf(name[1], sizeof name[1], "table1_%s_time_%llu.csv", kind, (unsigned long long)t->set->seed);
    const paper_file bounds = { name[0], write_bounds, 0, 0 }, times = { name[1], write_times, 0, 0 };
    int result = paper_write(t->set, 1, &bounds, t);
    for (size_t k = 0; k < TABLE1_RUNS && result == CLI_OK; k++) {
        c.of[k] = t->result[k].there ? calloc(1, sizeof *c.of[k]) : NULL;
        if (c.of[k] && !table1_read_curve(t, kind, table1_runs[k].name, c.of[k])) {
            free(c.of[k]);
            c.of[k] = NULL;
        }
    }
    if (result == CLI_OK)
        result = paper_write(t->set, 1, &times, &c);
    for (size_t k = 0; k < TABLE1_RUNS; k++)
        free(c.of[k]);
    return result;
}
