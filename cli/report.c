/* report.c - `hollow report`: a page that says whether a model is good. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sde.h"
#include "vae.h"

typedef struct settings {
    uint64_t threads, rows, draws, seed;
    const char *out;
    sde_source source; /* of observations; tables and images have its columns, array and drop */
    vae_input input;   /* of images: their shape and bits */
} settings;

static const cli_option options[] = {
    { "o", CLI_TEXT, offsetof(settings, out), "FILE", "HTML file to write; default report.html, with --json none", 0, 0,
      NULL },
    { "rows", CLI_INTEGER, offsetof(settings, rows), "N", "evaluate at most N rows of DATA; default 4000", 20, 1e6,
      NULL },
    { "draws", CLI_INTEGER, offsetof(settings, draws), "N", "number of samples from the model; default 2000", 100, 1e6,
      NULL },
    { "seed", CLI_INTEGER, offsetof(settings, seed), "N", "seed of samples and of the choice of rows; default 0", 0,
      9007199254740992.0, NULL },
    { "columns", CLI_TEXT, offsetof(settings, source.how.columns), "LIST",
      "read only these columns of DATA; other columns may contain text", 0, 0, NULL },
    SDE_SOURCE_OPTIONS(settings, source),
    { "image", CLI_TEXT, offsetof(settings, input.image), "HxW", "autoencoders: shape of an image, HxW or CxHxW", 0, 0,
      NULL },
    { "bits", CLI_FLAG, offsetof(settings, input.bits), NULL, "autoencoders: DATA has 8 pixels per byte", 0, 0, NULL },
    { "threads", CLI_INTEGER, offsetof(settings, threads), "N",
      "number of threads; default all. Does not change results", 1, 256, NULL },
    { 0 },
};

static const char text[] = "Writes an HTML page that shows how well a model describes DATA, and prints the verdict.\n"
                           "\n"
                           "  density model  gain in log p over simple models, marginal and pairwise distributions of\n"
                           "                 data and samples, calibration, the least likely rows with their causes\n"
                           "  equation       drift and diffusion with the steps of the data, simulations over time\n"
                           "  autoencoder    samples, reconstructions, traversals, the ELBO and active units\n"
                           "\n"
                           "DATA should be rows that the model was not trained on. For a large table a random sample\n"
                           "of the rows is used; the page says how many. Without DATA the page describes the density\n"
                           "model only. The page is self-contained. --json prints all numbers. The exit status does\n"
                           "not depend on the verdict.\n";

static int run(int argc, char **argv);
const cli_command cli_report = { "report",
                                 "MODEL [DATA] [-o FILE] [--option VALUE ...]",
                                 "write an HTML page that compares a model with data",
                                 text,
                                 options,
                                 1,
                                 2,
                                 run };

typedef struct job {
    const settings *set;
    int argc;
    char **argv;
    const char *path[3]; /* model, data */
    hl_context *ctx;
    hl_density *model;
    hl_sde *sde;
    hl_observations *observations;
    hl_vae *vae;
    hl_images *images;
    hl_table *table;
    size_t *x_index, *c_index, *index;
    double *x, *c;
    size_t rows, total;
} job;

/* ---- data ---- */

/* A row of the table in its columns for the model; a number that is not finite is an error. */
static int read_row(const job *j, size_t row, size_t columns, const size_t *index, double *to)
{
    hl_status status = hl_table_read_columns(j->table, row, 1, columns, index, to);
    for (size_t i = 0; i < columns && status == HL_OK; i++)
        if (!isfinite(to[i]))
            return cli_fail(&cli_report, CLI_WRONG,
                            "%s: row %zu, column '%s': %s is not a finite number; correct it, or skip such rows with "
                            "--drop-missing",
                            j->path[1], row + 1, hl_table_name(j->table, index[i]),
                            isnan(to[i]) ? "nan" : "an infinite value");
    return status == HL_OK ? CLI_OK : cli_fail_library(&cli_report, j->ctx, status);
}

/* The rows that are looked at, one after the other: neither time nor memory grow with the table. */
static int read_rows(job *j)
{
    size_t dim = hl_density_dim(j->model), context = hl_density_context(j->model);
    hl_table_options table = { .columns = j->set->source.how.columns,
                               .drop_missing = j->set->source.drop,
                               .unchecked = 1,
                               .array = j->set->source.how.array };
    hl_status status = cli_open_data(j->ctx, j->path[1], &table, j->model, 0, false, &j->table);
    if (status != HL_OK)
        return cli_fail_library(&cli_report, j->ctx, status);
    j->total = hl_table_rows(j->table);
    size_t most = j->set->rows ? (size_t)j->set->rows : 4000;
    most = most < j->total ? most : j->total;
    j->index = calloc(most, sizeof *j->index);
    j->x_index = calloc(dim, sizeof *j->x_index);
    j->c_index = calloc(context + 1, sizeof *j->c_index);
    j->x = calloc(most, dim * sizeof *j->x);
    j->c = calloc(most, (context + 1) * sizeof *j->c);
    if (!j->index || !j->x_index || !j->c_index || !j->x || !j->c)
        return cli_no_memory(&cli_report);
    int result = cli_match_columns(&cli_report, j->path[1], j->table, j->model, j->x_index, j->c_index);
    if (result != CLI_OK)
        return result;
    j->rows = hl_report_pick(j->total, most, j->set->seed, j->index);
    for (size_t r = 0; r < j->rows && result == CLI_OK; r++) {
        result = read_row(j, j->index[r], dim, j->x_index, j->x + r * dim);
        if (result == CLI_OK && context)
            result = read_row(j, j->index[r], context, j->c_index, j->c + r * context);
    }
    return result;
}

static int read_observations(job *j)
{
    sde_source source = j->set->source;
    source.path = j->path[1];
    source.how.model = j->sde;
    source.how.min_rows = 10;
    source.most = SDE_MOST_ROWS;
    return sde_read(&cli_report, j->ctx, &source, &j->observations);
}

static int read_images(job *j)
{
    vae_input input = j->set->input;
    input.array = j->set->source.how.array;
    input.drop = j->set->source.drop;
    return vae_open(&cli_report, j->ctx, j->path[1], &input, j->vae,
                    strcmp(hl_vae_describe(j->vae).likelihood, "gaussian") == 0, &j->images);
}

/* ---- the report ---- */

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* "hollow report m.hollow new.csv --seed 1": the arguments that numbers depend on, with file names instead of paths. */
static void describe_call(const job *j, char *call, size_t size)
{
    static const char *const others[] = { "-o", "--o", "--threads", "--json", "--quiet" };
    size_t used = (size_t)snprintf(call, size, "hollow report");
    for (int i = 0; i < j->argc && used < size; i++) {
        bool skip = false;
        for (size_t k = 0; k < sizeof others / sizeof *others; k++)
            if (strcmp(j->argv[i], others[k]) == 0) {
                skip = true;
                i += k < 3; /* and its value */
                break;
            }
        if (!skip)
            used += (size_t)snprintf(call + used, size - used, " %s", file_name(j->argv[i]));
    }
}

static int print_json(job *j, const hl_report *report)
{
    size_t size = 0;
    hl_status status = hl_report_json(report, NULL, 0, &size);
    char *json = status == HL_OK ? malloc(size + 1) : NULL;
    if (!json)
        return status == HL_OK ? cli_no_memory(&cli_report) : cli_fail_library(&cli_report, j->ctx, status);
    status = hl_report_json(report, json, size, &size);
    if (status == HL_OK) {
        fwrite(json, 1, size, stdout);
        putchar('\n');
    }
    free(json);
    return status == HL_OK ? CLI_OK : cli_fail_library(&cli_report, j->ctx, status);
}

/* Make it of the model that was loaded. */
static hl_status compare(job *j, const hl_report_options *how, hl_report **report)
{
    const hl_observations *o = j->observations;
    hl_report_rows data = { .rows = j->rows, .x = j->x, .context = j->c, .index = j->index, .total = j->total };
    if (j->vae) {
        hl_vae_rows images = hl_images_rows(j->images);
        return hl_report_vae(j->vae, &images, how, report);
    }
    if (!j->sde)
        return hl_report_density(j->model, &data, how, report);
    hl_sde_data observed = { o->rows, o->t, o->x, o->paired ? o->trajectory : NULL };
    return hl_report_sde(j->sde, &observed, how, report);
}

static int make_report(job *j, const char *page)
{
    char call[400];
    describe_call(j, call, sizeof call);
    hl_report_options how = { .seed = j->set->seed,
                              .draws = (size_t)j->set->draws,
                              .title = file_name(j->path[0]),
                              .data = j->path[1] ? file_name(j->path[1]) : NULL,
                              .call = call };
    hl_report *report = NULL;
    hl_status status = compare(j, &how, &report);
    if (status == HL_OK && page)
        status = hl_report_save(report, page);
    int result = CLI_OK;
    if (status == HL_STOPPED)
        result = cli_fail(&cli_report, CLI_STOPPED, "stopped");
    else if (status != HL_OK)
        result = cli_fail_library(&cli_report, j->ctx, status);
    else if (cli_json_wanted())
        result = print_json(j, report);
    else
        printf("%s.\n", hl_report_verdict(report));
    if (result == CLI_OK && page)
        cli_say(&cli_report, "%s is written", page);
    hl_report_free(report);
    return result;
}

static int report(job *j, const char *page)
{
    const cli_path paths[] = { { j->path[0], CLI_READ, NULL },
                               { j->path[1], CLI_READ, NULL },
                               { page, CLI_WRITE, NULL } };
    int result = cli_check_paths(&cli_report, 3, paths);
    if (result == CLI_OK && page)
        result = cli_check_file(&cli_report, page);
    if (result != CLI_OK)
        return result;
    hl_status status =
        hl_context_create(&(hl_context_options){ .threads = (int)j->set->threads, .stop = cli_stop }, &j->ctx);
    hl_file_kind kind = hl_file_identify(j->path[0]);
    bool equation = kind == HL_FILE_SDE, autoencoder = kind == HL_FILE_VAE;
    if ((equation || autoencoder) && !j->path[1])
        return cli_fail(&cli_report, CLI_WRONG, "%s is %s: its report requires DATA", j->path[0],
                        equation ? "a stochastic equation" : "an autoencoder");
    if (status == HL_OK)
        status = equation      ? hl_sde_load(j->ctx, j->path[0], &j->sde)
                 : autoencoder ? hl_vae_load(j->ctx, j->path[0], &j->vae)
                               : hl_density_load(j->ctx, j->path[0], &j->model);
    if (status != HL_OK)
        return j->path[1] ? cli_fail_model(&cli_report, j->ctx, status, j->path[1])
                          : cli_fail_library(&cli_report, j->ctx, status);
    if (equation)
        result = read_observations(j);
    else if (autoencoder)
        result = read_images(j);
    else if (j->path[1])
        result = read_rows(j);
    return result == CLI_OK ? make_report(j, page) : result;
}

static int run(int argc, char **argv)
{
    settings set = { .threads = (uint64_t)hl_threads_available() };
    job j = { .set = &set, .argc = argc, .argv = argv };
    int result = cli_parse(&cli_report, argc, argv, &set, j.path);
    if (result >= 0)
        return result;
    result = report(&j, set.out ? set.out : cli_json_wanted() ? NULL : "report.html");
    hl_table_free(j.table);
    hl_observations_free(j.observations);
    hl_density_free(j.model);
    hl_sde_free(j.sde);
    hl_images_free(j.images);
    hl_vae_free(j.vae);
    hl_context_free(j.ctx);
    free(j.index);
    free(j.x_index);
    free(j.c_index);
    free(j.x);
    free(j.c);
    return result;
}
