/* fig3.c - `hollow paper fig3`: training a continuous flow with the exact trace and with Hutchinson's estimate.
 *
 * For one and two hidden layers and several seeds, two flows begin with the same weights and see the same batches; only the
 * trace of training differs. Both are validated with the exact one. They take turns, iteration by iteration, so that a
 * busy machine slows both. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "paper.h"
#include "problems/numbers.h"

enum { EXACT, STOCHASTIC, TRACES, LAYERS = 2, MOST_SEEDS = 3, VALIDATIONS = 12 };
static const char *const trace_names[TRACES] = { "exact", "stochastic" };

/* What one training showed. */
typedef struct record {
    double *loss, *forward, *backward, *times; /* [iterations]; times: seconds of those without a validation */
    double validation[VALIDATIONS];
    double seconds; /* median of the times */
} record;

typedef struct fig3 {
    const paper_settings *set;
    hl_context *ctx;
    size_t dim, rows, valid_rows, iterations, seeds;
    double *train, *valid;
    record record[LAYERS][MOST_SEEDS][TRACES];
} fig3;

/* ---- data ---- */

static int read_table(fig3 *a, const char *const *names, size_t *rows, double **values)
{
    char path[1000];
    hl_table *table = NULL;
    hl_status status = HL_ERR_IO;
    for (; *names && status != HL_OK; names++) {
        snprintf(path, sizeof path, "%s/%s", a->set->data ? a->set->data : "data/miniboone", *names);
        status = hl_table_open(a->ctx, path, NULL, &table);
    }
    if (status != HL_OK) {
        cli_fail_library(&paper_command, a->ctx, status);
        return cli_fail(&paper_command, CLI_WRONG,
                        "fig3 needs train.npy and val.npy; give their directory with --data DIR");
    }
    *rows = hl_table_rows(table);
    if (a->dim && hl_table_columns(table) != a->dim) {
        hl_table_free(table);
        return cli_fail(&paper_command, CLI_WRONG, "%s: the number of columns differs from that of the training rows",
                        path);
    }
    a->dim = hl_table_columns(table);
    *values = calloc(*rows * a->dim, sizeof **values);
    status = *values ? hl_table_read_rows(table, 0, *rows, *values) : HL_ERR_NOMEM;
    hl_table_free(table);
    return status == HL_OK ? CLI_OK : cli_fail_library(&paper_command, a->ctx, status);
}

/* ---- training ---- */

typedef struct pair {
    hl_flow *flow[TRACES];
    hl_fit *fit[TRACES];
} pair;

static hl_status make_pair(fig3 *a, int layers, uint64_t seed, pair *p)
{
    hl_flow_spec spec = { .net = { .dim = a->dim,
                                   .hidden = 128,
                                   .hidden_layers = layers,
                                   .width = 32,
                                   .layers = layers,
                                   .activation = "swish" } };
    hl_fit_data train = { a->rows, a->train, NULL, NULL }, valid = { a->valid_rows, a->valid, NULL, NULL };
    hl_status status = HL_OK;
    for (int t = 0; t < TRACES && status == HL_OK; t++) {
        hl_fit_options options = { .loss = HL_LOSS_LIKELIHOOD,
                                   .iterations = a->iterations,
                                   .batch = 256,
                                   .optimizer = { .method = "adam", .rate = 5e-3 },
                                   .train_steps = SIZE_MAX, /* adaptive, so that evaluations can differ */
                                   .train_trace = t == EXACT ? HL_TRACE_EXACT : HL_TRACE_HUTCHINSON,
                                   .solver = { .method = "dopri5", .rtol = 1e-4, .atol = 1e-4 },
                                   .validate_every = a->iterations / VALIDATIONS,
                                   .seed = seed };
        status = hl_flow_create(a->ctx, &spec, &p->flow[t]);
        if (status == HL_OK)
            status = hl_flow_init(p->flow[t], seed);
        if (status == HL_OK)
            status = hl_fit_create(p->flow[t], &train, &valid, &options, &p->fit[t]);
    }
    return status;
}

static hl_status train_pair(fig3 *a, pair *p, record *r)
{
    hl_fit_report report;
    size_t every = a->iterations / VALIDATIONS, timed[TRACES] = { 0 };
    for (size_t i = 0; i < a->iterations; i++)
        for (int t = 0; t < TRACES; t++) {
            double start = cli_now();
            hl_status status = hl_fit_step(p->fit[t], &report);
            if (status != HL_OK)
                return status;
            if (!report.validated)
                r[t].times[timed[t]++] = cli_now() - start;
            r[t].loss[i] = report.loss;
            r[t].forward[i] = report.evaluations;
            r[t].backward[i] = report.backward;
            if (report.validated && (i + 1) / every <= VALIDATIONS) {
                r[t].validation[(i + 1) / every - 1] = report.validation;
                fprintf(stderr, "  %5zu  %-10s  validation %8.3f  evaluations %5.1f\n", i + 1, trace_names[t],
                        report.validation, report.evaluations);
            }
            if (cli_interrupted())
                return HL_STOPPED;
        }
    for (int t = 0; t < TRACES; t++)
        r[t].seconds = numbers_median(r[t].times, timed[t]);
    return HL_OK;
}

static int run_all(fig3 *a)
{
    for (int l = 0; l < LAYERS; l++)
        for (size_t s = 0; s < a->seeds; s++) {
            pair p = { .flow = { NULL } };
            for (int t = 0; t < TRACES; t++) {
                record *r = &a->record[l][s][t];
                r->loss = calloc(a->iterations, 4 * sizeof *r->loss);
                if (!r->loss)
                    return cli_no_memory(&paper_command);
                r->forward = r->loss + a->iterations;
                r->backward = r->forward + a->iterations;
                r->times = r->backward + a->iterations;
            }
            fprintf(stderr, "%d hidden layer%s, seed %zu\n", l + 1, l ? "s" : "", s + 1);
            hl_status status = make_pair(a, l + 1, a->set->seed + s, &p);
            if (status == HL_OK)
                status = train_pair(a, &p, a->record[l][s]);
            for (int t = 0; t < TRACES; t++) {
                hl_fit_free(p.fit[t]);
                hl_flow_free(p.flow[t]);
            }
            if (status == HL_STOPPED)
                return CLI_STOPPED;
            if (status != HL_OK)
                return cli_fail_library(&paper_command, a->ctx, status);
        }
    return CLI_OK;
}

/* ---- results ---- */

/* Mean over seeds, and its standard error (NaN for one seed). */
static double mean_of(const double *values, size_t count, double *error)
{
    double mean = paper_mean(values, count, error);
    *error /= sqrt((double)count);
    return mean;
}

/* How far the exact trace is ahead at the last validation, cost and evaluations, for one number of layers. */
static void summarise(const fig3 *a, int l, double lead[2], double cost[TRACES], double forward[TRACES])
{
    double leads[MOST_SEEDS];
    for (size_t s = 0; s < a->seeds; s++)
        leads[s] = a->record[l][s][STOCHASTIC].validation[VALIDATIONS - 1] -
                   a->record[l][s][EXACT].validation[VALIDATIONS - 1];
    lead[0] = mean_of(leads, a->seeds, &lead[1]);
    for (int t = 0; t < TRACES; t++) {
        cost[t] = forward[t] = 0;
        for (size_t s = 0; s < a->seeds; s++) {
            const record *r = &a->record[l][s][t];
            cost[t] += r->seconds / (double)a->seeds;
            for (size_t i = 0; i < a->iterations; i++)
                forward[t] += r->forward[i] / (double)(a->seeds * a->iterations);
        }
    }
}

static int write_json(FILE *out, const void *figure)
{
    const fig3 *a = figure;
    cli_json json = { .file = out };
    cli_json_open(&json, NULL, '{');
    cli_json_text(&json, "figure", "fig3");
    cli_json_count(&json, "dim", a->dim);
    cli_json_count(&json, "rows", a->rows);
    cli_json_count(&json, "iterations", a->iterations);
    cli_json_count(&json, "seeds", a->seeds);
    cli_json_open(&json, "layers", '[');
    for (int l = 0; l < LAYERS; l++) {
        double lead[2], cost[TRACES], forward[TRACES];
        summarise(a, l, lead, cost, forward);
        cli_json_open(&json, NULL, '{');
        cli_json_count(&json, "hidden_layers", (uint64_t)l + 1);
        cli_json_real(&json, "exact_lead_nats", lead[0]);
        cli_json_real(&json, "exact_lead_standard_error", lead[1]);
        cli_json_real(&json, "seconds_exact", cost[EXACT]);
        cli_json_real(&json, "seconds_stochastic", cost[STOCHASTIC]);
        cli_json_real(&json, "evaluations_exact", forward[EXACT]);
        cli_json_real(&json, "evaluations_stochastic", forward[STOCHASTIC]);
        cli_json_close(&json, '}');
        fprintf(
            stderr,
            "%d hidden layer%s: exact is %.2f +- %.2f nats ahead in validation; an iteration takes %.3f s exact, %.3f "
            "s stochastic; evaluations %.1f and %.1f\n",
            l + 1, l ? "s" : "", lead[0], lead[1], cost[EXACT], cost[STOCHASTIC], forward[EXACT], forward[STOCHASTIC]);
    }
    cli_json_close(&json, ']');
    cli_json_close(&json, '}');
    fputc('\n', out);
    return 0;
}

static int write_csv(FILE *out, const void *figure)
{
    const fig3 *a = figure;
    size_t every = a->iterations / VALIDATIONS;
    fprintf(out, "hidden_layers,seed,trace,iteration,loss,evaluations_forward,evaluations_backward,validation\n");
    for (int l = 0; l < LAYERS; l++)
        for (size_t s = 0; s < a->seeds; s++)
            for (int t = 0; t < TRACES; t++)
                for (size_t i = 0; i < a->iterations; i++) {
                    const record *r = &a->record[l][s][t];
                    fprintf(out, "%d,%zu,%s,%zu,%.6f,%.4f,%.4f,", l + 1, s + 1, trace_names[t], i + 1, r->loss[i],
                            r->forward[i], r->backward[i]);
                    if ((i + 1) % every == 0 && (i + 1) / every <= VALIDATIONS)
                        fprintf(out, "%.6f", r->validation[(i + 1) / every - 1]);
                    fputc('\n', out);
                }
    return 0;
}

static void print_blocks(FILE *g, const fig3 *a)
{
    size_t every = a->iterations / VALIDATIONS;
    for (int l = 0; l < LAYERS; l++)
        for (int t = 0; t < TRACES; t++) {
            fprintf(g, "$nll%d%d << E\n", l, t);
            for (int v = 0; v < VALIDATIONS; v++) {
                double values[MOST_SEEDS], error, mean;
                for (size_t s = 0; s < a->seeds; s++)
                    values[s] = a->record[l][s][t].validation[v];
                mean = mean_of(values, a->seeds, &error);
                fprintf(g, "%zu %g %g\n", every * (size_t)(v + 1), mean, isfinite(error) ? error : 0);
            }
            fprintf(g, "E\n$nfe%d%d << E\n", l, t);
            for (size_t i = 0; i < a->iterations; i++)
                fprintf(g, "%zu %g\n", i + 1, paper_filtered(a->record[l][0][t].forward, a->iterations, i));
            fprintf(g, "E\n");
        }
}

static int draw(FILE *g, const void *figure)
{
    static const char *const colours[TRACES] = { CLI_BLUE, CLI_ORANGE };
    const fig3 *a = figure;
    print_blocks(g, a);
    fprintf(g, "set multiplot layout 2,2\nset xlabel 'iteration'\nset key top right\n");
    for (int row = 0; row < 2; row++)
        for (int l = 0; l < LAYERS; l++) {
            fprintf(g, "set title '%d hidden layer%s'\nset ylabel '%s'\n%splot ", l + 1, l ? "s" : "",
                    row ? "evaluations per iteration, forward" : "validation −log p, nats per row",
                    row ? "set key bottom right\nset yrange [0:*]\n" : "set yrange [*:*]\n");
            for (int t = 0; t < TRACES; t++)
                if (row)
                    fprintf(g, "%s$nfe%d%d with lines linewidth 2 linecolor rgb '%s' title '%s trace'", t ? ", " : "",
                            l, t, colours[t], trace_names[t]);
                else
                    fprintf(g,
                            "%s$nll%d%d with yerrorlines linewidth 2 pointtype 7 linecolor rgb '%s' title '%s trace'",
                            t ? ", " : "", l, t, colours[t], trace_names[t]);
            fprintf(g, "\n");
        }
    fprintf(g, "unset multiplot\n");
    return 0;
}

static const paper_file files[] = { { "fig3.csv", write_csv, 0, 0 },
                                    { "fig3.json", write_json, 0, 0 },
                                    { "fig3.png", draw, 1200, 860 } };

static int run(const paper_settings *set)
{
    static const char *const train[] = { "resplit_train.npy", "train.npy", NULL };
    static const char *const valid[] = { "resplit_val.npy", "val.npy", NULL };
    fig3 a = { .set = set, .iterations = set->quick ? 24 : 360, .seeds = set->quick ? 1 : MOST_SEEDS };
    int error = cli_make_directory(set->out);
    if (error)
        return cli_fail(&paper_command, CLI_WRONG, "cannot write to %s: %s", set->out, strerror(error));
    hl_status status = hl_context_create(&(hl_context_options){ .threads = (int)set->threads }, &a.ctx);
    int result = status == HL_OK ? read_table(&a, train, &a.rows, &a.train) : CLI_FAILED;
    if (result == CLI_OK)
        result = read_table(&a, valid, &a.valid_rows, &a.valid);
    if (result == CLI_OK)
        result = run_all(&a);
    if (result == CLI_OK)
        result = paper_write(set, sizeof files / sizeof *files, files, &a);
    if (result == CLI_STOPPED)
        cli_say(&paper_command, "stopped");
    for (int l = 0; l < LAYERS; l++)
        for (size_t s = 0; s < a.seeds; s++)
            for (int t = 0; t < TRACES; t++)
                free(a.record[l][s][t].loss);
    free(a.train);
    free(a.valid);
    hl_context_free(a.ctx);
    return result;
}

const paper_item paper_fig3 = { "fig3", "training with the exact and with a stochastic trace", run };
