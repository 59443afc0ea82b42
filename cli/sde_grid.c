/* sde_grid.c - `hollow sde grid`: drift, diffusion and log-density at points. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sde.h"

typedef struct settings {
    sde_source source;
    uint64_t threads;
    const char *out;
} settings;

static const cli_option options[] = {
    { "out", CLI_TEXT, offsetof(settings, out), "FILE", "output file (.csv or .npy); default stdout", 0, 0, NULL },
    { "time", CLI_TEXT, offsetof(settings, source.how.time), "COL", "column of times; default that of the model", 0, 0,
      NULL },
    { "drop-missing", CLI_FLAG, offsetof(settings, source.drop), NULL, "skip rows with missing values", 0, 0, NULL },
    { "array", CLI_TEXT, offsetof(settings, source.how.array), "NAME", "npz: names of the arrays to read; default all",
      0, 0, NULL },
    { "threads", CLI_INTEGER, offsetof(settings, threads), "N", "number of threads; default 1. Does not change results",
      1, 256, NULL },
    { 0 },
};

static const char text[] =
    "For every row t,x1,x2,... of POINTS (csv, npy, npz, or - for stdin) prints a csv row\n"
    "f1,f2,...,g1,g2,...,logp: drift, diffusion and log-density of the model, in the units of the data,\n"
    "with enough digits to read back to the same bits. Columns are matched by name if the file has names,\n"
    "else by position. With --json the result is one object; with --out it contains the number of rows\n"
    "only. If the noise of columns is correlated (see hollow info), g_i is the deviation of the noise of\n"
    "column i.\n"
    "\n"
    "Models with bands (sde fit --bands) add the columns f1_low,f1_high,...,g1_low,g1_high,...,inside:\n"
    "pointwise 90 % bands from a bootstrap, and 1 if there are data near the point, else 0.\n";

static int run(int argc, char **argv);
const cli_command sde_command_grid = { "sde grid",
                                       "MODEL POINTS [--option VALUE ...]",
                                       "evaluate drift, diffusion and log-density at points",
                                       text,
                                       options,
                                       2,
                                       2,
                                       run };
static const cli_command *const me = &sde_command_grid;

enum { CHUNK = 4096 };

/* Columns of the output: f, g and log p; then low and high of each f and g, and inside. */
static size_t width_of(const hl_sde *sde, size_t d)
{
    return 2 * d + 1 + (hl_sde_replicates(sde) ? 4 * d + 1 : 0);
}

/* Count the rows of which a value is not a number, and name the first. */
static void tally(const hl_observations *rows, size_t row, const double *values, size_t *failed)
{
    char place[400];
    for (size_t i = 0; i < 2 * rows->dim + 1; i++) {
        if (!isnan(values[i]))
            continue;
        if ((*failed)++ == 0)
            cli_say(me, "%s: the model has no finite value; the point is too far from its data",
                    hl_observations_place(rows, row, HL_NO_COLUMN, place, sizeof place));
        return;
    }
}

/* Rows go to a table or, with --json and without a file for them, into the object. */
typedef struct output {
    hl_table_writer *writer; /* NULL: into the object */
    cli_json json;
} output;

static hl_status put(output *to, size_t count, size_t wide, const double *values)
{
    if (to->writer)
        return hl_table_write_rows(to->writer, count, values);
    cli_json_rows(&to->json, count, wide, values);
    return HL_OK;
}

/* Bands of `count` points to the columns behind the values; `band` has room for them. */
static hl_status add_bands(hl_sde *sde, size_t count, const double *t, const double *x, size_t d, double *values,
                           double *band)
{
    size_t wide = width_of(sde, d), size = CHUNK * d;
    int inside[CHUNK];
    hl_status status = hl_sde_bands(
        sde, count, t, x, &(hl_sde_band_values){ band, band + size, band + 2 * size, band + 3 * size, inside });
    for (size_t r = 0; r < count && status == HL_OK; r++) {
        double *to = values + r * wide + 2 * d + 1;
        for (size_t k = 0; k < 4 * d; k++) /* f low and high by columns, then g */
            to[k] = band[(k / (2 * d) * 2 + k % 2) * size + r * d + k / 2 % d];
        to[4 * d] = inside[r];
    }
    return status;
}

static hl_status write_rows(hl_sde *sde, const hl_observations *rows, output *to, double *values, size_t *failed)
{
    size_t d = rows->dim, wide = width_of(sde, d);
    double *f = values + CHUNK * wide, *g = f + CHUNK * d, *logp = g + CHUNK * d, *band = logp + CHUNK;
    hl_status status = HL_OK;
    for (size_t start = 0; start < rows->rows && status == HL_OK; start += CHUNK) {
        size_t count = rows->rows - start < CHUNK ? rows->rows - start : CHUNK;
        status = hl_sde_eval(sde, count, rows->t + start, rows->x + start * d,
                             &(hl_sde_values){ .f = f, .g = g, .logp = logp });
        for (size_t r = 0; r < count; r++) {
            memcpy(values + r * wide, f + r * d, d * sizeof *f);
            memcpy(values + r * wide + d, g + r * d, d * sizeof *g);
            values[r * wide + 2 * d] = logp[r];
            if (status == HL_OK)
                tally(rows, start + r, values + r * wide, failed);
        }
        if (status == HL_OK && hl_sde_replicates(sde))
            status = add_bands(sde, count, rows->t + start, rows->x + start * d, d, values, band);
        if (status == HL_OK)
            status = put(to, count, wide, values);
    }
    return status == HL_OK && to->writer ? hl_table_writer_finish(to->writer) : status;
}

static hl_status write_all(hl_context *ctx, hl_sde *sde, const hl_observations *rows, const char *out,
                           const char *const *names, double *values, size_t *failed)
{
    size_t wide = width_of(sde, rows->dim);
    output to = { NULL, { .file = stdout } };
    hl_status status = HL_OK;
    bool json = cli_json_wanted();
    if (json)
        cli_json_open_table(&to.json, wide, names);
    if (json && !out)
        cli_json_open(&to.json, "values", '[');
    else
        status = hl_table_writer_create(ctx, out ? out : "-", wide,
                                        &(hl_table_writer_options){ .names = names, .rows = rows->rows }, &to.writer);
    if (status == HL_OK)
        status = write_rows(sde, rows, &to, values, failed);
    hl_table_writer_free(to.writer);
    if (status != HL_OK || !json)
        return status;
    cli_json_close_rows(&to.json, out);
    cli_json_count(&to.json, "rows", rows->rows);
    cli_json_count(&to.json, "failed", *failed);
    cli_json_close(&to.json, '}');
    putchar('\n');
    return HL_OK;
}

static int grid(hl_context *ctx, hl_sde *sde, const hl_observations *rows, const char *out)
{
    size_t d = rows->dim, wide = width_of(sde, d);
    char(*name)[32] = calloc(wide, sizeof *name);
    const char **names = calloc(wide, sizeof *names);
    double *values = calloc(CHUNK, 2 * wide * sizeof *values);
    size_t failed = 0;
    hl_status status = name && names && values ? HL_OK : HL_ERR_NOMEM;
    for (size_t i = 0; i < wide && status == HL_OK; i++) {
        size_t k = i - 2 * d - 1;
        if (i <= 2 * d)
            snprintf(name[i], sizeof *name, i < d ? "f%zu" : i < 2 * d ? "g%zu" : "logp", i < d ? i + 1 : i - d + 1);
        else if (k < 4 * d)
            snprintf(name[i], sizeof *name, "%c%zu_%s", k < 2 * d ? 'f' : 'g', k / 2 % d + 1, k % 2 ? "high" : "low");
        else
            snprintf(name[i], sizeof *name, "inside");
        names[i] = name[i];
    }
    if (status == HL_OK)
        status = write_all(ctx, sde, rows, out, names, values, &failed);
    free(name);
    free(names);
    free(values);
    if (status != HL_OK)
        return cli_fail_library(me, ctx, status);
    return failed ? cli_fail(me, CLI_FAILED, "%zu of %zu rows have values that are not finite", failed, rows->rows)
                  : CLI_OK;
}

static int run(int argc, char **argv)
{
    settings set = { .threads = 1, .source.how = { .unordered = 1, .min_rows = 1 } };
    const char *path[3];
    int result = cli_parse(me, argc, argv, &set, path);
    if (result >= 0)
        return result;
    const cli_path paths[] = { { path[0], CLI_READ, NULL }, { path[1], CLI_READ, NULL }, { set.out, CLI_TABLE, NULL } };
    if (cli_check_paths(me, 3, paths) != CLI_OK)
        return CLI_WRONG;
    hl_context *ctx = NULL;
    hl_sde *sde = NULL;
    hl_observations *rows = NULL;
    hl_status status = hl_context_create(&(hl_context_options){ .threads = (int)set.threads, .stop = cli_stop }, &ctx);
    if (status == HL_OK)
        status = hl_sde_load(ctx, path[0], &sde);
    result = status == HL_OK ? CLI_OK : cli_fail_model(me, ctx, status, path[1]);
    set.source.path = path[1];
    set.source.how.model = sde;
    if (result == CLI_OK)
        result = sde_read(me, ctx, &set.source, &rows);
    if (result == CLI_OK)
        result = grid(ctx, sde, rows, set.out);
    hl_observations_free(rows);
    hl_sde_free(sde);
    hl_context_free(ctx);
    return result;
}
