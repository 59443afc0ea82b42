/* density.c - a density model from C: train one on a table of two columns, keep it in a file, and use the file.
 *
 *     density            trains on made-up data, writes density.hollow, and reads it again
 *     density MODEL      uses a model that `hollow fit` made of two columns or more
 *
 * The data: a is normal, and b = a^2 / 2 plus noise, so that log p(a, b) is known. examples/density.f90 does the second part in
 * Fortran. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <hollow/hollow.h>

enum { ROWS = 2000, VALID = 400, SAMPLES = 5 };

static hl_status train(hl_context *ctx, const char *path)
{
    static double x[(ROWS + VALID) * 2];
    for (size_t r = 0; r < ROWS + VALID; r++) {
        x[2 * r] = hl_random_normal(1, 0, r);
        x[2 * r + 1] = 0.5 * x[2 * r] * x[2 * r] + 0.5 * hl_random_normal(1, 1, r);
    }
    /* means and deviations of the columns; log p and samples will be in their units */
    hl_density_column columns[] = { { "a", 0, 1 }, { "b", 0.5, sqrt(0.75) } };
    hl_flow_spec spec = { .net = { .dim = 2, .hidden = 32, .width = 32 } };
    hl_fit_options options = { .iterations = 400, .batch = 128, .optimizer.rate = 1e-2 };
    hl_density *model = NULL;
    hl_fit *fit = NULL;
    hl_fit_report report = { 0 };
    hl_status status = hl_density_create(ctx, &spec, columns, &model);
    if (status == HL_OK)
        status = hl_flow_init(hl_density_flow(model), 1);
    hl_density_standardise(model, ROWS + VALID, x, NULL);
    if (status == HL_OK)
        status = hl_fit_create(hl_density_flow(model), &(hl_fit_data){ .rows = ROWS, .x = x },
                               &(hl_fit_data){ .rows = VALID, .x = x + 2 * ROWS }, &options, &fit);
    while (status == HL_OK)
        status = hl_fit_step(fit, &report);
    if (status == HL_STOPPED) /* all iterations are done */
        status = hl_fit_finish(fit);
    if (status == HL_OK)
        status = hl_density_save(model, path);
    if (status == HL_OK)
        printf("trained: %.3f nats a row, iteration %zu; written to %s\n", report.best + log(columns[1].deviation),
               report.best_iteration, path);
    hl_fit_free(fit);
    hl_density_free(model);
    return status;
}

/* log p at each column's mean, and some samples with theirs. */
static hl_status use(hl_context *ctx, const char *path, double *at_mean)
{
    hl_density *model = NULL;
    hl_status status = hl_density_load(ctx, path, &model);
    if (status != HL_OK)
        return status;
    size_t dim = hl_density_dim(model);
    double *x = calloc(SAMPLES * dim, sizeof *x), logp[SAMPLES];
    for (size_t i = 0; x && i < dim; i++)
        x[i] = hl_density_get_column(model, i).mean;
    status = x ? hl_density_logp(model, 1, x, NULL, at_mean) : HL_ERR_NOMEM;
    if (status == HL_OK)
        status = hl_density_sample(model, 7, 0, SAMPLES, NULL, x);
    if (status == HL_OK)
        status = hl_density_logp(model, SAMPLES, x, NULL, logp);
    if (status == HL_OK)
        printf("log p at the mean of all columns: %.6f\n", *at_mean);
    for (size_t r = 0; r < SAMPLES && status == HL_OK; r++)
        printf("%s %9.4f, %s %9.4f: log p %9.4f\n", hl_density_get_column(model, 0).name, x[r * dim],
               hl_density_get_column(model, dim - 1).name, x[r * dim + dim - 1], logp[r]);
    free(x);
    hl_density_free(model);
    return status;
}

int main(int argc, char **argv)
{
    const char *path = argc > 1 ? argv[1] : "density.hollow";
    double at_mean = 0, exact = -log(2 * 3.141592653589793 * 0.5) - 0.5 * pow(0.5 / 0.5, 2); /* at (0, 0.5) */
    hl_context *ctx;
    if (hl_context_create(NULL, &ctx) != HL_OK)
        return 1;
    hl_status status = argc > 1 ? HL_OK : train(ctx, path);
    if (status == HL_OK)
        status = use(ctx, path, &at_mean);
    if (status != HL_OK)
        fprintf(stderr, "%s\n", hl_context_message(ctx));
    else if (argc == 1)
        printf("exact: %.6f\n", exact);
    hl_context_free(ctx);
    return status != HL_OK || (argc == 1 && !(fabs(at_mean - exact) < 0.3));
}
