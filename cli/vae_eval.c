/* vae_eval.c - `hollow vae eval`: -ELBO and importance-sampled -log p of rows. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "vae.h"

typedef struct settings {
    uint64_t threads, importance, samples, rows, seed, steps;
    const char *out;
    vae_input input;
    bool biased;
} settings;

#define AT(member) offsetof(settings, member)
static const cli_option options[] = {
    { "iwae", CLI_INTEGER, AT(importance), "K", "importance samples per row; default none", 1, 1e9, NULL },
    { "samples", CLI_INTEGER, AT(samples), "N", "samples per row for the ELBO; default 1", 1, 1e9, NULL },
    { "rows", CLI_INTEGER, AT(rows), "N", "use only the first N rows", 1, 1e12, NULL },
    { "seed", CLI_INTEGER, AT(seed), "N", "random seed; default 0", 0, 9e15, NULL },
    { "ode-steps", CLI_INTEGER, AT(steps), "N", "RK4 steps of a continuous posterior; default: adaptive solver", 1,
      4096, NULL },
    { "allow-biased", CLI_FLAG, AT(biased), NULL, "allow --iwae with a stochastic trace, and print its bias", 0, 0,
      NULL },
    { "out", CLI_TEXT, AT(out), "FILE", "write the ELBO of each row, and IWAE with --iwae (.csv or .npy)", 0, 0, NULL },
    VAE_INPUT_OPTIONS(settings),
    { "threads", CLI_INTEGER, AT(threads), "N", "number of threads; default all. Does not change results", 1, 256,
      NULL },
    { 0 },
};

static const char text[] =
    "Prints -ELBO, its parts, and with --iwae K the importance-weighted bound -IWAE-K, as means over\n"
    "rows in nats with standard errors. The result of a row depends only on the model, the seed and the\n"
    "row; equal rows have different samples. Continuous posteriors are solved by an adaptive solver, or\n"
    "with --ode-steps RK4 steps; the effect of a finer solution is printed.\n"
    "\n"
    "With a stochastic trace (ffjord) log q is noisy, which biases IWAE upwards, for large K by half the\n"
    "variance of the noise. Therefore --iwae is an error unless --allow-biased is given.\n";

static int run(int argc, char **argv);
const cli_command vae_command_eval = { "vae eval",
                                       "MODEL DATA [--option VALUE ...]",
                                       "compute -ELBO and an importance-weighted bound of -log p",
                                       text,
                                       options,
                                       2,
                                       2,
                                       run };

static int progress(size_t done, size_t rows, void *user)
{
    cli_show_rows(user, done, rows);
    return cli_interrupted();
}

static void print_json(const hl_vae_result *r, const hl_vae *v)
{
    cli_json json = { .file = stdout };
    cli_json_open(&json, NULL, '{');
    cli_json_text(&json, "posterior", hl_vae_describe(v).posterior);
    cli_json_count(&json, "rows", r->rows);
    cli_json_exact(&json, "elbo", r->elbo);
    cli_json_real(&json, "elbo_error", r->elbo_error);
    cli_json_count(&json, "samples", r->samples);
    cli_json_exact(&json, "reconstruction", r->reconstruction);
    cli_json_exact(&json, "kl", -r->log_ratio);
    cli_json_exact(&json, "log_det", r->log_det);
    if (r->importance) {
        cli_json_exact(&json, "iwae", r->iwae);
        cli_json_count(&json, "k", r->importance);
        cli_json_real(&json, "iwae_error", r->iwae_error);
        cli_json_real(&json, "effective", r->effective);
        cli_json_real(&json, "trace_bias", r->trace_bias);
    }
    cli_json_count(&json, "active", r->active);
    if (r->evaluations > 0) {
        cli_json_count(&json, "ode_steps", r->steps);
        cli_json_real(&json, "evaluations", r->evaluations);
        cli_json_real(&json, "step_error", r->step_error);
    }
    cli_json_close(&json, '}');
    printf("\n");
}

static void print_table(const hl_vae_result *r, const hl_vae *v)
{
    printf("-ELBO %.4f +- %.4f nats per row (%zu rows, %zu sample%s per row)\n", -r->elbo, r->elbo_error, r->rows,
           r->samples, r->samples > 1 ? "s" : "");
    printf("  -log p(x | z) %.4f, KL %.4f, log |det| of the flow %.4f\n", -r->reconstruction, -r->log_ratio,
           r->log_det);
    if (r->importance)
        printf("-IWAE-%zu %.4f +- %.4f (effective samples per row %.1f)\n", r->importance, -r->iwae, r->iwae_error,
               r->effective);
    if (r->importance && r->trace_bias > 0)
        printf("  biased: the trace is stochastic; for large K, -IWAE is too low by about %.3f\n", r->trace_bias);
    printf("%zu of %zu latent values are active\n", r->active, hl_vae_describe(v).latent);
    if (r->steps)
        printf("%zu RK4 steps, %.0f evaluations per sample; twice as many steps change a row by up to %.2g\n", r->steps,
               r->evaluations, r->step_error);
    else if (r->evaluations > 0)
        printf("adaptive solver, %.1f evaluations per sample; a tenth of the tolerance changes a row by up to %.2g\n",
               r->evaluations, r->step_error);
}

/* The last two columns are of importance samples. */
static hl_status write_rows(hl_context *ctx, const settings *set, size_t rows, const hl_vae_row_result *row)
{
    static const char *const names[] = { "elbo", "reconstruction", "kl", "log_det", "iwae", "effective" };
    hl_table_writer *w = NULL;
    hl_status status = hl_table_writer_create(ctx, set->out, set->importance ? 6 : 4,
                                              &(hl_table_writer_options){ .names = names, .rows = rows }, &w);
    for (size_t i = 0; i < rows && status == HL_OK; i++) {
        const double values[6] = { row[i].elbo,    row[i].reconstruction, -row[i].log_ratio,
                                   row[i].log_det, row[i].iwae,           row[i].effective };
        status = hl_table_write_rows(w, 1, values);
    }
    if (status == HL_OK)
        status = hl_table_writer_finish(w);
    hl_table_writer_free(w);
    return status;
}

static int evaluate(hl_context *ctx, const settings *set, hl_vae *v, const hl_images *images)
{
    hl_vae_rows rows = hl_images_rows(images);
    cli_progress line;
    hl_vae_result result;
    if (set->rows && set->rows < rows.rows) {
        cli_say(&vae_command_eval,
                "the first %llu of %zu rows; if the file is sorted, they do not represent the others",
                (unsigned long long)set->rows, rows.rows);
        rows.rows = set->rows;
    }
    hl_vae_row_result *row = set->out ? calloc(rows.rows, sizeof *row) : NULL;
    hl_vae_eval_options o = { .seed = set->seed,
                              .samples = set->samples,
                              .importance = set->importance,
                              .steps = set->steps,
                              .allow_biased = set->biased,
                              .progress = progress,
                              .user = &line };
    if (set->out && !row)
        return cli_no_memory(&vae_command_eval);
    cli_progress_start(&line, 0);
    hl_status status = hl_vae_evaluate(v, &rows, &o, row, &result);
    cli_progress_end(&line, false);
    if (status == HL_OK && set->out)
        status = write_rows(ctx, set, rows.rows, row);
    free(row);
    if (cli_interrupted())
        return cli_fail(&vae_command_eval, CLI_STOPPED, "stopped");
    if (status != HL_OK)
        return cli_fail_library(&vae_command_eval, ctx, status);
    if (cli_json_wanted())
        print_json(&result, v);
    else
        print_table(&result, v);
    return CLI_OK;
}

static int run(int argc, char **argv)
{
    settings set = { .threads = (uint64_t)hl_threads_available() };
    const char *path[3];
    int result = cli_parse(&vae_command_eval, argc, argv, &set, path);
    if (result >= 0)
        return result;
    if (set.biased && !set.importance)
        return cli_fail(&vae_command_eval, CLI_WRONG, "--allow-biased requires --iwae");
    const cli_path paths[] = { { path[0], CLI_READ, NULL }, { path[1], CLI_READ, NULL }, { set.out, CLI_TABLE, NULL } };
    if (cli_check_paths(&vae_command_eval, 3, paths) != CLI_OK)
        return CLI_WRONG;
    hl_context *ctx = NULL;
    hl_vae *v = NULL;
    hl_images *images = NULL;
    hl_status status = hl_context_create(&(hl_context_options){ .threads = (int)set.threads, .stop = cli_stop }, &ctx);
    if (status == HL_OK)
        status = hl_vae_load(ctx, path[0], &v);
    if (status != HL_OK)
        result = cli_fail_library(&vae_command_eval, ctx, status);
    else
        result = vae_open(&vae_command_eval, ctx, path[1], &set.input, v,
                          strcmp(hl_vae_describe(v).likelihood, "gaussian") == 0, &images);
    if (result == CLI_OK)
        result = evaluate(ctx, &set, v, images);
    hl_images_free(images);
    hl_vae_free(v);
    hl_context_free(ctx);
    return result;
}
