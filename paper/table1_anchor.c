/* table1_anchor.c - does a posterior hold the decoder back? The paper conjectures that a continuous flow is slow to change and so anchors
 * the generative model.
 *
 * One autoencoder is trained with a normal posterior. From it, all parts go on training with each posterior ("continued"). Then encoder
 * and decoder of each are frozen, and a fresh posterior of one kind, planar, is fitted to them ("fresh"). IWAE-k with the fresh posterior
 * is a bound of log p(x) of each decoder by the same means; the better of it and of the posterior's own bound, row by row, is the best
 * there is. Differences are from the first posterior, row by row. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "table1.h"

static const char continued[] = "continued", fresh[] = "fresh";

/* The bounds of one posterior: its own, those of the fresh one, and the better of each row. */
typedef struct pair {
    table1_result own, fresh;
    hl_vae_row_result *best[TABLE1_PARTS]; /* NULL for TABLE1_ALL */
} pair;

typedef struct anchor {
    const table1 *table;
    pair pair[TABLE1_RUNS];
} anchor;

static int keep_best(const table1 *t, pair *p)
{
    for (int part = TABLE1_MORE; part < TABLE1_PARTS; part++) {
        size_t rows = t->part[part].rows;
        hl_vae_row_result *best = p->best[part] = calloc(rows, sizeof *best);
        if (!best)
            return cli_no_memory(&paper_command);
        for (size_t i = 0; i < rows; i++)
            best[i].iwae = fmax(p->own.row[part][i].iwae, p->fresh.row[part][i].iwae); /* one may be NaN */
    }
    return CLI_OK;
}

static int run_pair(table1 *t, size_t k, const hl_vae *base, pair *p)
{
    table1_run more = table1_runs[k], again = { .name = table1_runs[k].name, .posterior = "planar" };
    hl_vae *v = NULL, *w = NULL;
    more.thawed = true;
    int result = table1_train(t, &more, continued, t->latent, base, &p->own, &v);
    if (result == CLI_OK)
        result = table1_train(t, &again, fresh, t->latent, v, &p->fresh, &w);
    if (result == CLI_OK)
        result = table1_evaluate(t, continued, &more, v, &p->own);
    if (result == CLI_OK)
        result = table1_evaluate(t, fresh, &again, w, &p->fresh);
    hl_vae_free(v);
    hl_vae_free(w);
    return result == CLI_OK ? keep_best(t, p) : result;
}

/* ---- the table ---- */

static void write_bounds(FILE *out, const hl_vae_row_result *row, const hl_vae_row_result *first, size_t rows)
{
    table1_mean m = table1_mean_of(row, NULL, true, rows);
    table1_mean d = first && first != row ? table1_mean_of(row, first, true, rows) : (table1_mean){ NAN, NAN };
    table1_print(out, m.mean);
    table1_print(out, m.error);
    table1_print(out, d.mean);
    table1_print(out, d.error);
    fprintf(out, ",%s", isnan(d.mean) ? "" : table1_is_significant(d, rows) ? "yes" : "no");
}

static int write_table(FILE *out, const void *figure)
{
    const anchor *a = figure;
    const table1 *t = a->table;
    const pair *first = a->pair[0].fresh.there ? &a->pair[0] : NULL;
    fprintf(out, "name,minus_elbo,error,minus_elbo_fresh,error_fresh");
    for (int part = TABLE1_FEW; part >= TABLE1_MORE; part--)
        for (int best = 0; best < 2; best++) {
            const char *how = best ? "best" : "fresh";
            size_t k = t->samples[part];
            fprintf(out, ",minus_iwae_%zu_%s,error_%zu_%s,better_%zu_%s,better_error_%zu_%s,significant_%zu_%s", k, how,
                    k, how, k, how, k, how, k, how);
        }
    fprintf(out, ",validation,cpu_seconds_per_epoch,epochs\n");
    for (size_t k = 0; k < TABLE1_RUNS; k++) {
        const pair *p = &a->pair[k];
        if (!p->fresh.there)
            continue;
        table1_mean own = table1_mean_of(p->own.row[TABLE1_ALL], NULL, false, t->part[TABLE1_ALL].rows);
        table1_mean of_fresh = table1_mean_of(p->fresh.row[TABLE1_ALL], NULL, false, t->part[TABLE1_ALL].rows);
        fprintf(out, "%s,%.4f,%.4f,%.4f,%.4f", table1_runs[k].name, own.mean, own.error, of_fresh.mean, of_fresh.error);
        for (int part = TABLE1_FEW; part >= TABLE1_MORE; part--) {
            size_t rows = t->part[part].rows;
            write_bounds(out, p->fresh.row[part], first ? first->fresh.row[part] : NULL, rows);
            write_bounds(out, p->best[part], first ? first->best[part] : NULL, rows);
        }
        fprintf(out, ",%.4f,%.4g,%.3g\n", p->own.validation, p->own.seconds / p->own.epochs, p->own.epochs);
    }
    return 0;
}

int table1_anchor(table1 *t)
{
    char name[100];
    anchor *a = calloc(1, sizeof *a);
    table1_result unused;
    hl_vae *base = NULL;
    if (!a)
        return cli_no_memory(&paper_command);
    a->table = t;
    int result = table1_train(t, &table1_runs[0], "base", t->latent, NULL, &unused, &base);
    for (size_t k = 0; k < TABLE1_RUNS && result == CLI_OK; k++)
        if (table1_wanted(t, &table1_runs[k]) || table1_is_done(t, fresh, &table1_runs[k]))
            result = run_pair(t, k, base, &a->pair[k]);
    snprintf(name, sizeof name, "table1_anchor_%llu.csv", (unsigned long long)t->set->seed);
    const paper_file csv = { name, write_table, 0, 0 };
    if (result == CLI_OK)
        result = paper_write(t->set, 1, &csv, a);
    for (size_t k = 0; k < TABLE1_RUNS; k++)
        for (size_t part = 0; part < TABLE1_PARTS; part++) {
            free(a->pair[k].own.row[part]);
            free(a->pair[k].fresh.row[part]);
            free(a->pair[k].best[part]);
        }
    hl_vae_free(base);
    free(a);
    return result;
}
