/* fig4.c - `hollow paper fig4`: the paper's pendulum learned by Fokker-Planck matching.
 *
 * Trained on states without regard to which trajectory they are of. Then: the density of the position, the model's integrated
 * over the velocity; trajectories of the learned equation that start from the learned density at time 0; drift and diffusion
 * at states of fresh trajectories. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fig4.h"
#include "problems/numbers.h"

const double fig4_low = -2.4, fig4_high = 2.4;

double fig4_position(size_t cell)
{
    return fig4_low + (fig4_high - fig4_low) * ((double)cell + 0.5) / FIG4_POSITIONS;
}

/* ---- trajectories ---- */

/* From the learned density at time 0 on; and states of the density itself at every time. */
static hl_status follow_model(fig4 *a)
{
    hl_noise_system system;
    hl_simulator_options options = { .method = "srk", .seed = a->set->seed + 2000, .level = 2 };
    double *t = calloc(a->rows, sizeof *t), *y = calloc(a->rows, 2 * sizeof *y);
    hl_status status = t && y ? HL_OK : HL_ERR_NOMEM;
    for (size_t k = 0; k < SDE_TIMES && status == HL_OK; k++) {
        for (size_t r = 0; r < a->rows; r++)
            t[r] = sde_problem_time(k);
        status = hl_sde_sample(a->sde, a->rows, t, a->set->seed, 0, y);
        for (size_t r = 0; r < a->rows; r++)
            memcpy(a->sampled + (r * SDE_TIMES + k) * 2, y + 2 * r, 2 * sizeof *y);
    }
    for (size_t r = 0; r < a->rows && status == HL_OK; r++)
        memcpy(y + 2 * r, a->sampled + r * SDE_TIMES * 2, 2 * sizeof *y);
    if (status == HL_OK)
        status = hl_sde_system(a->sde, &system);
    if (status == HL_OK)
        status = sde_problem_follow(a->ctx, &system, &options, a->rows, y, a->learned);
    free(t);
    free(y);
    return status;
}

/* Wasserstein distance of the positions at time k in two sets of trajectories; work: 2 x rows. */
static double distance(const fig4 *a, const double *one, const double *other, size_t k, double *work)
{
    double sum = 0;
    for (size_t r = 0; r < a->rows; r++) {
        work[r] = one[(r * SDE_TIMES + k) * 2];
        work[a->rows + r] = other[(r * SDE_TIMES + k) * 2];
    }
    numbers_sort(work, a->rows);
    numbers_sort(work + a->rows, a->rows);
    for (size_t r = 0; r < a->rows; r++)
        sum += fabs(work[r] - work[a->rows + r]) / (double)a->rows;
    return sum;
}

static hl_status measure_distances(fig4 *a)
{
    double *work = calloc(a->rows, 2 * sizeof *work);
    for (size_t k = 0; k < SDE_TIMES && work; k++) {
        a->floor[k] = distance(a, a->truth, a->observed, k, work);
        a->sde_gap[k] = distance(a, a->truth, a->learned, k, work);
        a->density_gap[k] = distance(a, a->truth, a->sampled, k, work);
    }
    free(work);
    return work ? HL_OK : HL_ERR_NOMEM;
}

/* ---- densities ---- */

static void count_positions(const fig4 *a, const double *states, double *density)
{
    double width = (fig4_high - fig4_low) / FIG4_POSITIONS;
    for (size_t i = 0; i < a->rows * SDE_TIMES; i++) {
        double cell = floor((states[2 * i] - fig4_low) / width);
        if (cell >= 0 && cell < FIG4_POSITIONS)
            density[i % SDE_TIMES * FIG4_POSITIONS + (size_t)cell] += 1 / ((double)a->rows * width);
    }
}

/* The model's density of the position: the sum over velocities, far enough out, of p(t, p, v) dv. */
static hl_status integrate_density(fig4 *a)
{
    enum { P = FIG4_POSITIONS, V = FIG4_VELOCITIES, ROWS = P * V };
    double *t = calloc(ROWS, sizeof *t), *x = calloc(ROWS, 2 * sizeof *x), *logp = calloc(ROWS, sizeof *logp);
    double low = 1.25 * fig4_low, width = 1.25 * (fig4_high - fig4_low) / V;
    hl_status status = t && x && logp ? HL_OK : HL_ERR_NOMEM;
    for (size_t k = 0; k < SDE_TIMES && status == HL_OK; k++) {
        for (size_t i = 0; i < ROWS; i++) {
            t[i] = sde_problem_time(k);
            x[2 * i] = fig4_position(i / V);
            x[2 * i + 1] = low + width * ((double)(i % V) + 0.5);
        }
        status = hl_sde_eval(a->sde, ROWS, t, x, &(hl_sde_values){ .logp = logp });
        for (size_t i = 0; i < ROWS && status == HL_OK; i++)
            a->density[k * P + i / V] += exp(logp[i]) * width;
    }
    free(t);
    free(x);
    free(logp);
    return status;
}

/* ---- drift and diffusion ---- */

static hl_status measure_field(fig4 *a, fig4_field *field, size_t count)
{
    double *t = calloc(count, sizeof *t);
    double *x = calloc(count, 10 * sizeof *x);
    *field = (fig4_field){ count, x, x + 2 * count, x + 4 * count, x + 6 * count, x + 8 * count };
    for (size_t i = 0; i < count && x; i++)
        if (field == &a->grid) {
            x[2 * i] = 0.9 * (fig4_low + (fig4_high - fig4_low) * ((double)(i / FIG4_SIDE) + 0.5) / FIG4_SIDE);
            x[2 * i + 1] = 0.9 * (fig4_low + (fig4_high - fig4_low) * ((double)(i % FIG4_SIDE) + 0.5) / FIG4_SIDE);
        } else { /* far apart, so that all times come */
            memcpy(x + 2 * i, a->truth + i * (a->rows * SDE_TIMES / count) * 2, 2 * sizeof *x);
        }
    hl_status status = t && x ? HL_OK : HL_ERR_NOMEM;
    if (status == HL_OK)
        status = hl_sde_eval(a->sde, count, t, x, &(hl_sde_values){ .f = field->f, .g = field->g });
    if (status == HL_OK)
        sde_pendulum.coefficients(NULL, &(hl_rows){ .count = count, .t = t, .y = x }, field->true_f, field->true_g,
                                  NULL);
    free(t);
    return status;
}

static hl_status measure_residual(fig4 *a)
{
    size_t count = a->rows * SDE_TIMES;
    double *t = calloc(count, sizeof *t), *r = calloc(count, sizeof *r);
    hl_status status = t && r ? HL_OK : HL_ERR_NOMEM;
    for (size_t i = 0; i < count && status == HL_OK; i++)
        t[i] = sde_problem_time(i % SDE_TIMES);
    if (status == HL_OK)
        status = hl_sde_eval(a->sde, count, t, a->truth, &(hl_sde_values){ .residual = r });
    for (size_t i = 0; i < count && status == HL_OK; i++)
        a->residual += fabs(r[i]) / (double)count;
    free(t);
    free(r);
    return status;
}

/* ---- the work ---- */

static hl_status learn(fig4 *a)
{
    hl_sde_spec spec = { .network = "mlp" };
    hl_sde_fit_options fit = { .smooth = -1, .seed = a->set->seed, .iterations = a->iterations };
    hl_sde_data data;
    hl_status status = sde_problem_observe(&sde_pendulum, a->rows, a->observed, 1, a->set->seed, &data);
    if (status == HL_OK)
        status = sde_problem_learn(&sde_pendulum, a->ctx, &spec, &fit, &data, &a->sde, &a->outcome);
    if (status == HL_OK)
        status =
            sde_problem_judge(&sde_pendulum, a->sde, a->rows < SDE_FRESH ? a->rows : SDE_FRESH, a->truth, &a->outcome);
    sde_problem_forget(&data);
    return status;
}

static hl_status allocate(fig4 *a)
{
    double **states[] = { &a->observed, &a->truth, &a->learned, &a->sampled };
    double **densities[] = { &a->data_density, &a->density, &a->sde_density };
    for (size_t i = 0; i < sizeof states / sizeof *states; i++)
        if (!(*states[i] = calloc(a->rows * SDE_TIMES, 2 * sizeof(double))))
            return HL_ERR_NOMEM;
    for (size_t i = 0; i < sizeof densities / sizeof *densities; i++)
        if (!(*densities[i] = calloc(SDE_TIMES, FIG4_POSITIONS * sizeof(double))))
            return HL_ERR_NOMEM;
    return HL_OK;
}

static hl_status compute(fig4 *a)
{
    hl_status status = hl_context_create(&(hl_context_options){ .threads = (int)a->set->threads }, &a->ctx);
    if (status == HL_OK)
        status = allocate(a);
    if (status == HL_OK)
        status = sde_problem_simulate(&sde_pendulum, a->ctx, a->rows, a->set->seed, a->observed);
    if (status == HL_OK)
        status = sde_problem_simulate(&sde_pendulum, a->ctx, a->rows, a->set->seed + 1000, a->truth);
    if (status == HL_OK)
        status = learn(a);
    if (status == HL_OK)
        status = follow_model(a);
    if (status == HL_OK)
        status = measure_distances(a);
    if (status == HL_OK)
        status = integrate_density(a);
    if (status == HL_OK)
        status = measure_field(a, &a->states, FIG4_STATES);
    if (status == HL_OK)
        status = measure_field(a, &a->grid, FIG4_SIDE * FIG4_SIDE);
    if (status == HL_OK)
        status = measure_residual(a);
    if (status == HL_OK) {
        count_positions(a, a->observed, a->data_density);
        count_positions(a, a->learned, a->sde_density);
    }
    return status;
}

static void report(const fig4 *a)
{
    const sde_outcome *o = &a->outcome;
    fprintf(stderr,
            "Pendulum by Fokker-Planck matching, %zu trajectories, %zu iterations, %.1f s\n"
            "  mean absolute error of the drift       %.4f\n"
            "  mean absolute error of the diffusion   %.4f\n"
            "  mean -log p, mean |residual|           %.4f, %.4f\n"
            "Wasserstein distance of the position, from fresh trajectories, mean over times:\n"
            "  the training data (noise floor)        %.4f\n"
            "  the learned density                    %.4f\n"
            "  the learned equation                   %.4f\n",
            a->rows, a->iterations, o->seconds, o->drift, o->diffusion, o->nll, a->residual,
            paper_mean(a->floor, SDE_TIMES, NULL), paper_mean(a->density_gap, SDE_TIMES, NULL),
            paper_mean(a->sde_gap, SDE_TIMES, NULL));
}

/* ---- the files ---- */

static int write_density(FILE *out, const void *figure)
{
    const fig4 *a = figure;
    fprintf(out, "t,p,data,density,sde\n");
    for (size_t i = 0; i < SDE_TIMES * FIG4_POSITIONS; i++)
        fprintf(out, "%.6g,%.6g,%.6g,%.6g,%.6g\n", sde_problem_time(i / FIG4_POSITIONS),
                fig4_position(i % FIG4_POSITIONS), a->data_density[i], a->density[i], a->sde_density[i]);
    return 0;
}

static void write_set(FILE *out, const char *name, const double *states)
{
    for (size_t i = 0; i < FIG4_PATHS * SDE_TIMES; i++)
        fprintf(out, "%s,%zu,%.6g,%.6g,%.6g\n", name, i / SDE_TIMES + 1, sde_problem_time(i % SDE_TIMES), states[2 * i],
                states[2 * i + 1]);
}

static int write_paths(FILE *out, const void *figure)
{
    const fig4 *a = figure;
    fprintf(out, "source,trajectory,t,p,v\n");
    write_set(out, "true", a->truth);
    write_set(out, "learned", a->learned);
    return 0;
}

static int write_field(FILE *out, const void *figure)
{
    const fig4 *a = figure;
    const fig4_field *w = &a->states;
    fprintf(out, "p,v,f_p,f_v,g_p,g_v,true_f_p,true_f_v,true_g_p,true_g_v\n");
    for (size_t i = 0; i < 2 * w->count; i += 2)
        fprintf(out, "%.6g,%.6g,%.6g,%.6g,%.6g,%.6g,%.6g,%.6g,%.6g,%.6g\n", w->x[i], w->x[i + 1], w->f[i], w->f[i + 1],
                w->g[i], w->g[i + 1], w->true_f[i], w->true_f[i + 1], w->true_g[i], w->true_g[i + 1]);
    return 0;
}

static int write_json(FILE *out, const void *figure)
{
    const fig4 *a = figure;
    cli_json json = { .file = out };
    cli_json_open(&json, NULL, '{');
    cli_json_text(&json, "paper", "fig4");
    cli_json_count(&json, "trajectories", a->rows);
    cli_json_count(&json, "iterations", a->iterations);
    cli_json_count(&json, "seed", a->set->seed);
    cli_json_bool(&json, "quick", a->set->quick);
    cli_json_real(&json, "drift_mae", a->outcome.drift);
    cli_json_real(&json, "diffusion_mae", a->outcome.diffusion);
    cli_json_real(&json, "nll", a->outcome.nll);
    cli_json_real(&json, "residual", a->residual);
    cli_json_real(&json, "seconds", a->outcome.seconds);
    cli_json_real(&json, "cpu_seconds", a->outcome.cpu_seconds);
    cli_json_real(&json, "distance_floor", paper_mean(a->floor, SDE_TIMES, NULL));
    cli_json_real(&json, "distance_density", paper_mean(a->density_gap, SDE_TIMES, NULL));
    cli_json_real(&json, "distance_sde", paper_mean(a->sde_gap, SDE_TIMES, NULL));
    cli_json_open(&json, "times", '[');
    for (size_t k = 0; k < SDE_TIMES; k++) {
        cli_json_open(&json, NULL, '{');
        cli_json_real(&json, "t", sde_problem_time(k));
        cli_json_real(&json, "distance_floor", a->floor[k]);
        cli_json_real(&json, "distance_density", a->density_gap[k]);
        cli_json_real(&json, "distance_sde", a->sde_gap[k]);
        cli_json_close(&json, '}');
    }
    cli_json_close(&json, ']');
    cli_json_close(&json, '}');
    fputc('\n', out);
    return 0;
}

static const paper_file files[] = { { "fig4_density.csv", write_density, 0, 0 },
                                    { "fig4_paths.csv", write_paths, 0, 0 },
                                    { "fig4_field.csv", write_field, 0, 0 },
                                    { "fig4.json", write_json, 0, 0 },
                                    { "fig4_density.png", fig4_draw_density, FIG4_DENSITY_WIDTH, FIG4_DENSITY_HEIGHT },
                                    { "fig4_field.png", fig4_draw_field, FIG4_FIELD_WIDTH, FIG4_FIELD_HEIGHT } };

static int run(const paper_settings *set)
{
    fig4 a = { .set = set, .rows = set->quick ? 500 : SDE_TRAIN, .iterations = set->quick ? 100 : 2000 };
    int error = cli_make_directory(set->out), result = CLI_OK;
    if (error)
        return cli_fail(&paper_command, CLI_WRONG, "cannot write to %s: %s", set->out, strerror(error));
    hl_status status = compute(&a);
    if (status == HL_STOPPED)
        result = CLI_STOPPED;
    else if (status != HL_OK)
        result = cli_fail_library(&paper_command, a.ctx, status);
    if (result == CLI_OK) {
        report(&a);
        result = paper_write(set, sizeof files / sizeof *files, files, &a);
    }
    if (result == CLI_STOPPED)
        cli_say(&paper_command, "stopped");
    double *memory[] = { a.observed, a.truth,       a.learned,  a.sampled, a.data_density,
                         a.density,  a.sde_density, a.states.x, a.grid.x };
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++)
        free(memory[i]);
    hl_sde_free(a.sde);
    hl_context_free(a.ctx);
    return result;
}

const paper_item paper_fig4 = { "fig4", "a noisy pendulum learned by Fokker-Planck matching", run };
