/* fig2.c - `hollow paper fig2`: evaluations of a continuous flow in training, by solver.
 *
 * Flows begin with the same weights and see the same batches; only the solver of training differs. Runge-Kutta has a step for
 * each row and its gradient is by replay; the others solve a batch as one system, with the adjoint. Small flows do not become
 * stiff by themselves, so the stiff setting starts from a network whose diagonal is large, as `stiff_net.h` makes it, with the
 * sign that makes the way from data to base contract. Training then takes the stiffness away, which is seen in the picture. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "paper.h"
#include "problems/numbers.h"
#include "problems/stiff_net.h"

enum { DIM = 2, ROWS = 4000, METHODS = 5, SETTINGS = 2, MODES = 8 };
static const struct {
    const char *method, *label, *colour;
} methods[METHODS] = { { "dopri5", "RK4(5)", CLI_ORANGE },
                       { "adams-functional", "ABM", CLI_YELLOW },
                       { "adams-jacobi", "ABM-Jacobi", CLI_BLUE },
                       { "bdf-jacobi", "BDF-Jacobi", CLI_GREEN },
                       { "auto", "auto", CLI_PINK } };
static const struct {
    const char *name, *title;
    double kappa, rate; /* kappa: of the diagonal to begin with; rate: of learning */
} settings[SETTINGS] = { { "nonstiff", "not stiff", 0, 5e-3 }, { "stiff", "stiff to begin with", 1000, 2e-3 } };

/* What one training showed. */
typedef struct record {
    size_t done;                                 /* iterations */
    double *loss, *forward, *backward, *seconds; /* [iterations] */
    char failure[160];
} record;

typedef struct fig2 {
    const paper_settings *set;
    hl_context *ctx;
    size_t iterations;
    double x[ROWS * DIM];
    double *memory;
    record record[SETTINGS][METHODS];
} fig2;

/* Eight normals on a circle, in units of their common deviation. */
static void make_data(fig2 *a)
{
    for (size_t r = 0; r < ROWS; r++) {
        double angle = acos(-1) / 4 * (double)(r % MODES), radius = 4 / sqrt(8.25);
        a->x[2 * r] = radius * cos(angle) + 0.5 / sqrt(8.25) * hl_random_normal(a->set->seed + 7, 0, 2 * r);
        a->x[2 * r + 1] = radius * sin(angle) + 0.5 / sqrt(8.25) * hl_random_normal(a->set->seed + 7, 0, 2 * r + 1);
    }
}

/* ---- training ---- */

static hl_status train(fig2 *a, size_t s, size_t m, hl_fit *fit)
{
    record *r = &a->record[s][m];
    for (size_t i = 0; i < a->iterations; i++) {
        hl_fit_report report;
        double start = cli_now();
        hl_status status = cli_interrupted() ? HL_STOPPED : hl_fit_step(fit, &report);
        if (status == HL_STOPPED)
            return status;
        if (status < 0) { /* a result, too */
            snprintf(r->failure, sizeof r->failure, "%s", hl_context_message(a->ctx));
            fprintf(stderr, "  %-12s iteration %zu failed: %s\n", methods[m].label, i + 1, r->failure);
            return HL_OK;
        }
        r->seconds[i] = cli_now() - start;
        r->loss[i] = report.loss;
        r->forward[i] = report.evaluations;
        r->backward[i] = report.backward;
        r->done = i + 1;
    }
    fprintf(stderr, "  %-12s loss %9.3f  evaluations at the end: forward %6.1f, backward %6.1f\n", methods[m].label,
            r->loss[r->done - 1], r->forward[r->done - 1], r->backward[r->done - 1]);
    return HL_OK;
}

static hl_status run_one(fig2 *a, size_t s, size_t m)
{
    hl_flow_spec spec = { .net = {
                              .dim = DIM, .hidden = 64, .features = 16, .width = 32, .layers = 1, .dtype = HL_F64 } };
    hl_fit_options options = { .loss = HL_LOSS_LIKELIHOOD,
                               .iterations = a->iterations,
                               .batch = a->set->quick ? 32 : 128,
                               .optimizer = { .method = "adam", .rate = settings[s].rate },
                               .train_steps = SIZE_MAX,
                               .solver = { .method = methods[m].method, .rtol = 1e-5, .atol = 1e-5 },
                               .seed = a->set->seed };
    hl_flow *flow = NULL;
    hl_fit *fit = NULL;
    hl_status status = hl_flow_create(a->ctx, &spec, &flow);
    if (status == HL_OK)
        status = hl_flow_init(flow, a->set->seed);
    if (status == HL_OK && settings[s].kappa > 0)
        stiff_net_weights(hl_flow_net(flow, 0), -settings[s].kappa, a->set->seed);
    if (status == HL_OK)
        status = hl_fit_create(flow, &(hl_fit_data){ .rows = ROWS, .x = a->x }, NULL, &options, &fit);
    if (status == HL_OK)
        status = train(a, s, m, fit);
    hl_fit_free(fit);
    hl_flow_free(flow);
    return status;
}

static int run_all(fig2 *a)
{
    double *next = a->memory = calloc(SETTINGS * METHODS * 4 * a->iterations, sizeof *a->memory);
    if (!next)
        return cli_no_memory(&paper_command);
    for (size_t s = 0; s < SETTINGS; s++) {
        fprintf(stderr, "%s\n", settings[s].title);
        for (size_t m = 0; m < METHODS; m++) {
            record *r = &a->record[s][m];
            double **const rows[] = { &r->loss, &r->forward, &r->backward, &r->seconds };
            for (size_t k = 0; k < sizeof rows / sizeof *rows; k++, next += a->iterations)
                *rows[k] = next;
            hl_status status = run_one(a, s, m);
            if (status == HL_STOPPED)
                return CLI_STOPPED;
            if (status != HL_OK)
                return cli_fail_library(&paper_command, a->ctx, status);
        }
    }
    return CLI_OK;
}

/* ---- results ---- */

static double median_of(const double *values, size_t count)
{
    double *copy = count ? malloc(count * sizeof *copy) : NULL;
    if (!copy)
        return NAN;
    memcpy(copy, values, count * sizeof *copy);
    double median = numbers_median(copy, count);
    free(copy);
    return median;
}

/* Both ways. */
static double total(const record *r, size_t first, size_t count)
{
    double sum = 0;
    for (size_t i = first; i < first + count && i < r->done; i++)
        sum += r->forward[i] + r->backward[i];
    return sum;
}

static void write_method(cli_json *json, const fig2 *a, size_t s, size_t m)
{
    const record *r = &a->record[s][m], *rk = &a->record[s][0];
    size_t tenth = (a->iterations + 9) / 10;
    cli_json_open(json, NULL, '{');
    cli_json_text(json, "method", methods[m].method);
    cli_json_text(json, "label", methods[m].label);
    cli_json_count(json, "iterations", r->done);
    cli_json_real(json, "evaluations_forward", median_of(r->forward, r->done));
    cli_json_real(json, "evaluations_backward", median_of(r->backward, r->done));
    cli_json_real(json, "evaluations_first_tenth", total(r, 0, tenth) / (double)tenth);
    cli_json_real(json, "evaluations_last_tenth", total(r, a->iterations - tenth, tenth) / (double)tenth);
    cli_json_real(json, "rk_over_this_first_tenth", total(rk, 0, tenth) / total(r, 0, tenth));
    cli_json_real(json, "rk_over_this", total(rk, 0, a->iterations) / total(r, 0, a->iterations));
    cli_json_real(json, "seconds", median_of(r->seconds, r->done));
    cli_json_real(json, "loss", r->done ? r->loss[r->done - 1] : NAN);
    cli_json_text(json, "failure", r->failure);
    cli_json_close(json, '}');
}

static int write_json(FILE *to, const void *figure)
{
    const fig2 *a = figure;
    cli_json json = { .file = to };
    cli_json_open(&json, NULL, '{');
    cli_json_text(&json, "figure", "fig2");
    cli_json_count(&json, "dim", DIM);
    cli_json_count(&json, "iterations", a->iterations);
    cli_json_real(&json, "tolerance", 1e-5);
    cli_json_open(&json, "settings", '[');
    for (size_t s = 0; s < SETTINGS; s++) {
        cli_json_open(&json, NULL, '{');
        cli_json_text(&json, "name", settings[s].name);
        cli_json_real(&json, "kappa", settings[s].kappa);
        cli_json_open(&json, "methods", '[');
        for (size_t m = 0; m < METHODS; m++)
            write_method(&json, a, s, m);
        cli_json_close(&json, ']');
        cli_json_close(&json, '}');
    }
    cli_json_close(&json, ']');
    cli_json_close(&json, '}');
    fputc('\n', to);
    return 0;
}

static int write_csv(FILE *to, const void *figure)
{
    const fig2 *a = figure;
    fprintf(to, "setting,method,iteration,loss,evaluations_forward,evaluations_backward,seconds\n");
    for (size_t s = 0; s < SETTINGS; s++)
        for (size_t m = 0; m < METHODS; m++)
            for (size_t i = 0; i < a->record[s][m].done; i++) {
                const record *r = &a->record[s][m];
                fprintf(to, "%s,%s,%zu,%.6f,%.4f,%.4f,%.5f\n", settings[s].name, methods[m].method, i + 1, r->loss[i],
                        r->forward[i], r->backward[i], r->seconds[i]);
            }
    return 0;
}

static int draw(FILE *g, const void *figure)
{
    const fig2 *a = figure;
    for (size_t s = 0; s < SETTINGS; s++)
        for (size_t m = 0; m < METHODS; m++) {
            const record *r = &a->record[s][m];
            fprintf(g, "$d%zu%zu << E\n", s, m);
            for (size_t i = 0; i < r->done; i++)
                fprintf(g, "%zu %g %g\n", i + 1, paper_filtered(r->forward, r->done, i),
                        paper_filtered(r->backward, r->done, i));
            fprintf(g, "E\n");
        }
    fprintf(g,
            "set multiplot layout 2,2\nset logscale y\nset xlabel 'iteration'\n"
            "set ytics (10, 20, 50, 100, 200, 500, 1000, 2000, 5000)\n"
            "set xrange [0:%zu]\n",
            a->record[0][0].done);
    for (size_t column = 2; column <= 3; column++)
        for (size_t s = 0; s < SETTINGS; s++) {
            double top = 1;
            for (size_t m = 0; m < METHODS; m++)
                for (size_t i = 0; i < a->record[s][m].done; i++)
                    top = fmax(top, (column == 2 ? a->record[s][m].forward : a->record[s][m].backward)[i]);
            fprintf(g, "%s\nset title '%s: %s'\nset ylabel 'evaluations per iteration'\nset yrange [*:%g]\nplot ",
                    column == 2 && s == 1 ? "set key top right maxrows 5 samplen 2"
                                          : "unset key", /* where there is room */
                    column == 2 ? "forward" : "backward", settings[s].title, 1.5 * top);
            for (size_t m = 0; m < METHODS; m++)
                if (a->record[s][m].done)
                    fprintf(g, "%s$d%zu%zu using 1:%zu with lines linewidth 2 linecolor rgb '%s' title '%s'",
                            m ? ", " : "", s, m, column, methods[m].colour, methods[m].label);
            fprintf(g, "\n");
        }
    fprintf(g, "unset multiplot\n");
    return 0;
}

static const paper_file files[] = { { "fig2.csv", write_csv, 0, 0 },
                                    { "fig2.json", write_json, 0, 0 },
                                    { "fig2.png", draw, 1200, 860 } };

static int run(const paper_settings *set)
{
    fig2 *a = calloc(1, sizeof *a);
    if (!a)
        return cli_no_memory(&paper_command);
    a->set = set;
    a->iterations = set->quick ? 3 : 150;
    int error = cli_make_directory(set->out), result;
    hl_status status = hl_context_create(&(hl_context_options){ .threads = (int)set->threads }, &a->ctx);
    make_data(a);
    if (error)
        result = cli_fail(&paper_command, CLI_WRONG, "cannot write to %s: %s", set->out, strerror(error));
    else if (status != HL_OK)
        result = cli_fail_library(&paper_command, NULL, status);
    else
        result = run_all(a);
    if (result == CLI_OK)
        result = paper_write(set, sizeof files / sizeof *files, files, a);
    if (result == CLI_STOPPED)
        cli_say(&paper_command, "stopped");
    hl_context_free(a->ctx);
    free(a->memory);
    free(a);
    return result;
}

const paper_item paper_fig2 = { "fig2", "evaluations in training by solver, for a non-stiff and a stiff flow", run };
