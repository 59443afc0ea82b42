/* test_sde_fit.c - training: gradients of every objective against differences, learning a known equation, the same bits
 * for any threads and after going on from a saved state, no allocation in steps, every allocation failing, wrong uses. */
#include "net_support.h"

#include "hollow/sde.h"
#include "sde/sde.h"

enum { ROWS = 40 };

/* ---- gradients ---- */

static hl_sde_spec small_spec(size_t n, size_t dim)
{
    return (hl_sde_spec){ .dim = dim,
                          .network = n % 2 ? "mlp" : "hollow",
                          .time = n % 3 == 1,
                          .hidden = 6,
                          .layers = 2,
                          .net = { .hidden = 8, .width = 6, .features = 4 },
                          .components = 2,
                          .diagonal = n % 4 == 3,
                          .density_hidden = 5,
                          .density_layers = 1,
                          .flows = 2,
                          .flow = { .hidden = 5, .features = 4, .width = 4 },
                          .dtype = HL_F64 };
}

static const double known_row[] = { 0, 1, 0, 0, 0 };

static hl_node sine(void *user, hl_graph *g, hl_node t, hl_node x)
{
    (void)user;
    return hl_mul(g, t, hl_sin(g, hl_reshape(g, hl_slice(g, x, 0, 0, 1), 0, NULL)));
}

static const hl_sde_known known[5] = { { .drift = 1, .drift_linear = known_row, .diffusion = 1, .drift_form = sine } };

/* What the objective says network n minimises: the density -log p + lambda penalty, the others the penalty. */
static double loss_of(hl_sde_objective *o, size_t net, const double *const *input, double lambda)
{
    static double gradient[20000];
    double loss[2];
    assert_in_range(o->total, 1, 20000);
    hl_sde_objective_run(o, ROWS, input, lambda, loss, gradient);
    if (o->method == HL_SDE_PSEUDO_LIKELIHOOD)
        return net == 2 ? loss[1] : loss[0];
    return net == 2 ? loss[1] + lambda * loss[0] : loss[0];
}

static void check_gradient(hl_sde *sde, hl_sde_objective *o, const double *const *input, double lambda, bool stop,
                           const char *label)
{
    static double gradient[20000];
    double loss[2], *at = gradient;
    hl_sde_objective_run(o, ROWS, input, lambda, loss, gradient);
    for (size_t n = 0; n < HL_SDE_NETS; n++) {
        double largest = 0, worst = 0;
        for (size_t i = 0; i < hl_net_param_count(hl_sde_net(sde, n)); i++) {
            hl_net_param p = param(hl_sde_net(sde, n), i);
            for (size_t k = 0; k < p.size; at++, k++) {
                double *v = (double *)p.values + k, old = *v, h = 1e-5;
                if (k % 7 != i % 7 || old == 0) /* a share of them, none that a mask excludes */
                    continue;
                *v = old + h;
                double up = loss_of(o, n, input, stop ? 0 : lambda);
                *v = old - h;
                double down = loss_of(o, n, input, stop ? 0 : lambda);
                *v = old;
                worst = fmax(worst, fabs(*at - (up - down) / (2 * h)));
                largest = fmax(largest, fabs(*at));
            }
        }
        CHECK_LE(worst, 1e-6 * largest + 1e-9, label);
        CHECK(largest > 1e-5, label);
    }
}

static void test_gradients(void **state)
{
    static const hl_sde_fit_options cases[] = {
        { .penalty = HL_SDE_L1 },
        { .penalty = HL_SDE_L2 },
        { .penalty = HL_SDE_HUBER },
        { .penalty = HL_SDE_L2, .density_form = 1 },
        { .penalty = HL_SDE_L2, .stop_gradient = 1 },
        { .method = HL_SDE_PSEUDO_LIKELIHOOD, .variance_floor = 1e-3 },
        { .penalty = HL_SDE_HUBER, .between = 0.5 }, /* dt and dx are then the residual's places */
    };
    enum { CASES = sizeof cases / sizeof *cases };
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (size_t n = 0; n < 24; n++) {
        size_t d = (size_t[]){ 5, 1, 3, 2 }[n % 4];
        hl_sde_spec spec = small_spec(n, d);
        hl_sde_objective o;
        double t[ROWS], x[5 * ROWS], dt[ROWS], dx[5 * ROWS], end[ROWS];
        char label[60];
        spec.known = n % 3 == 2 && d > 1 ? known : NULL;
        spec.density = n < 12 ? "mixture" : "flow";
        hl_sde *sde;
        CHECK_OK(ctx, hl_sde_create(ctx, &spec, &sde));
        CHECK_OK(ctx, hl_sde_init(sde, n));
        for (size_t r = 0; r < ROWS; r++) {
            t[r] = 5 * hl_random_uniform(2, 1, r);
            dt[r] = 0.1 + hl_random_uniform(2, 2, r);
            end[r] = (double)(r % 2);
        }
        fill_normal_f64(x, d * ROWS, 3);
        fill_normal_f64(dx, d * ROWS, 4);
        CHECK_OK(ctx, hl_sde_objective_create(sde, &cases[n % CASES], &o));
        snprintf(label, sizeof label, "case %zu, objective %zu, d = %zu", n, n % CASES, d);
        check_gradient(sde, &o, (const double *[]){ t, x, dt, dx, end }, 0.3, cases[n % CASES].stop_gradient, label);
        hl_sde_objective_free(&o);
        hl_sde_free(sde);
    }
    test_context_free(ctx, NULL);
}

/* Where R is averaged, weights w add the gradient of sum w R to those of drift and diffusion, and nothing to the density's. */
static void test_averaged(void **state)
{
    static double with[20000], without[20000];
    double t[ROWS], x[2 * ROWS], w[ROWS], none[ROWS] = { 0 }, up[ROWS], down[ROWS], loss[2], *at = with;
    hl_context *ctx = test_context(NULL, 1);
    hl_sde_spec spec = small_spec(2, 2);
    hl_sde *sde;
    hl_sde_objective o;
    (void)state;
    CHECK_OK(ctx, hl_sde_create(ctx, &spec, &sde));
    CHECK_OK(ctx, hl_sde_init(sde, 5));
    CHECK_OK(ctx, hl_sde_objective_create(sde, &(hl_sde_fit_options){ .smooth = 0.5 }, &o));
    assert_in_range(o.total, 1, 20000);
    for (size_t r = 0; r < ROWS; r++)
        t[r] = 5 * hl_random_uniform(2, 1, r);
    fill_normal_f64(x, 2 * ROWS, 3);
    fill_normal_f64(w, ROWS, 4);
    hl_sde_objective_run(&o, ROWS, (const double *[]){ t, x, none }, 0.3, loss, without);
    hl_sde_objective_run(&o, ROWS, (const double *[]){ t, x, w }, 0.3, loss, with);
    for (size_t n = 0; n < HL_SDE_NETS; n++) {
        double largest = 0, worst = 0;
        for (size_t i = 0; i < hl_net_param_count(hl_sde_net(sde, n)); i++) {
            hl_net_param p = param(hl_sde_net(sde, n), i);
            for (size_t k = 0; k < p.size; at++, k++) {
                double *v = (double *)p.values + k, old = *v, h = 1e-5, slope = 0, gained = *at - without[at - with];
                if (old == 0)
                    continue;
                *v = old + h;
                CHECK_OK(ctx, hl_sde_eval(sde, ROWS, t, x, &(hl_sde_values){ .residual = up }));
                *v = old - h;
                CHECK_OK(ctx, hl_sde_eval(sde, ROWS, t, x, &(hl_sde_values){ .residual = down }));
                *v = old;
                for (size_t r = 0; r < ROWS && n < 2; r++)
                    slope += w[r] * (up[r] - down[r]) / (2 * h);
                worst = fmax(worst, fabs(gained - slope));
                largest = fmax(largest, fabs(gained));
            }
        }
        CHECK_LE(worst, 1e-6 * largest + 1e-9, n < 2 ? "the gradient of sum w R" : "none of the density");
        CHECK(n == 2 || largest > 1e-5, "there is one");
    }
    hl_sde_objective_free(&o);
    hl_sde_free(sde);
    test_context_free(ctx, NULL);
}

/* ---- losses ---- */

/* The penalty of one residual, written down once more. */
static double penalty_of(hl_sde_penalty kind, double r)
{
    if (kind == HL_SDE_L1)
        return fabs(r);
    return kind == HL_SDE_L2 || fabs(r) < 1 ? r * r / 2 : fabs(r) - 0.5;
}

/* Sums of penalties are those of hl_sde_eval's R, in both forms; residuals on both sides of Huber's 1. */
static void test_losses(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    int large = 0, small = 0;
    (void)state;
    for (size_t n = 0; n < 12; n++) {
        double t[ROWS], x[3 * ROWS], r[ROWS], logp[ROWS], loss[2], expected[2] = { 0 };
        static double gradient[20000];
        hl_sde_spec spec = small_spec(n, 1 + n % 3);
        hl_sde_fit_options options = { .penalty = (hl_sde_penalty)(n / 2 % 3), .density_form = n % 2 };
        hl_sde_objective o;
        hl_sde *sde;
        spec.density = n < 6 ? "mixture" : "flow";
        CHECK_OK(ctx, hl_sde_create(ctx, &spec, &sde));
        CHECK_OK(ctx, hl_sde_init(sde, n));
        CHECK_OK(ctx, hl_sde_objective_create(sde, &options, &o));
        for (size_t k = 0; k < ROWS; k++)
            t[k] = 5 * hl_random_uniform(2, 1, k);
        fill_normal_f64(x, spec.dim * ROWS, 3);
        for (size_t k = 0; k < spec.dim * ROWS; k++)
            x[k] *= 2;
        hl_sde_objective_run(&o, ROWS, (const double *[]){ t, x }, 0.3, loss, gradient);
        CHECK_OK(ctx, hl_sde_eval(sde, ROWS, t, x, &(hl_sde_values){ .residual = r, .logp = logp }));
        for (size_t k = 0; k < ROWS; k++) {
            expected[0] += penalty_of(options.penalty, r[k] * (options.density_form ? exp(logp[k]) : 1));
            expected[1] -= logp[k];
            large += n % 6 == 4 && fabs(r[k]) > 1;
            small += n % 6 == 4 && fabs(r[k]) < 1;
        }
        CHECK_NEAR(loss[0], expected[0], 1e-10 * expected[0], "the penalty");
        CHECK_NEAR(loss[1], expected[1], 1e-10 * fabs(expected[1]), "-log p");
        hl_sde_objective_free(&o);
        hl_sde_free(sde);
    }
    CHECK(large > 3 && small > 3, "Huber's penalty of both kinds");
    test_context_free(ctx, NULL);
}

/* Pseudo-likelihood of trajectories of several lengths with irregular steps, in odd units: the loss of a batch of all pairs
 * is that of Euler steps with the floor, standardised, without the step over a gap in the record; lambda falls along a line, and < 0 means none. */
static void test_pseudo_loss(void **state)
{
    enum { COUNT = 14 };
    static const size_t trajectory[COUNT] = { 4, 4, 4, 7, 7, 1, 2, 2, 2, 2, 2, 9, 9, 9 };
    double t[COUNT], x[2 * COUNT], f[2 * COUNT], g[2 * COUNT], first, last, mean[2], deviation[2], expected = 0;
    size_t pairs = 0;
    hl_context *ctx = test_context(NULL, 1);
    hl_sde_spec spec = small_spec(1, 2);
    hl_sde_fit_report report;
    hl_sde_fit *fit;
    hl_sde *sde;
    (void)state;
    for (size_t k = 0; k < COUNT; k++) {
        bool same = k && trajectory[k] == trajectory[k - 1];
        t[k] = (same ? t[k - 1] : 50) + 0.3 + 4 * hl_random_uniform(3, 1, k) + (k == 9 ? 60 : 0);
        x[2 * k] = 300 + 20 * hl_random_normal(3, 2, k);
        x[2 * k + 1] = 0.01 * hl_random_normal(3, 3, k);
    }
    hl_sde_data data = { COUNT, t, x, trajectory };
    CHECK_OK(ctx, hl_sde_create(ctx, &spec, &sde));
    CHECK_OK(ctx, hl_sde_init(sde, 1));
    CHECK_OK(ctx, hl_sde_fit_create(
                      sde, &data,
                      &(hl_sde_fit_options){ .method = HL_SDE_PSEUDO_LIKELIHOOD, .variance_floor = 0.05, .lambda = -1 },
                      &fit));
    CHECK_OK(ctx, hl_sde_eval(sde, COUNT, t, x, &(hl_sde_values){ .f = f, .g = g }));
    CHECK_OK(ctx, hl_sde_fit_step(fit, &report));
    hl_sde_get_scale(sde, &first, &last, mean, deviation);
    for (size_t k = 0; k + 1 < COUNT; k++)
        for (size_t i = 0; i < 2 && trajectory[k] == trajectory[k + 1] && k + 1 != 9; i++) {
            double dt = t[k + 1] - t[k], gap = x[2 * k + 2 + i] - x[2 * k + i] - f[2 * k + i] * dt;
            double v = g[2 * k + i] * g[2 * k + i] * dt / (deviation[i] * deviation[i]) + 0.05;
            expected += 0.5 * (gap * gap / (deviation[i] * deviation[i]) / v + log(v));
            pairs += i;
        }
    assert_int_equal(pairs, 8);
    CHECK_NEAR(report.loss, expected / 8, 1e-10 * fabs(expected), "Euler's loss");
    assert_true(report.lambda == 0);
    hl_sde_fit_free(fit);
    CHECK_OK(ctx, hl_sde_fit_create(sde, &data, &(hl_sde_fit_options){ .lambda = 0.4, .iterations = 5 }, &fit));
    for (int i = 0; i < 5; i++) {
        CHECK_OK(ctx, hl_sde_fit_step(fit, &report));
        CHECK_NEAR(report.lambda, 0.4 * (1 - i / 5.), 1e-15, "the schedule of lambda");
    }
    hl_sde_fit_free(fit);
    hl_sde_free(sde);
    test_context_free(ctx, NULL);
}

/* ---- estimated curvature ---- */

enum { POINTS = 3, DRAWS = 4096 };

static hl_sde *flow_model(hl_context *ctx, size_t dim, const char *curvature)
{
    hl_sde *sde;
    hl_sde_spec spec = small_spec(0, dim);
    spec.density = "flow";
    spec.curvature = curvature;
    CHECK_OK(ctx, hl_sde_create(ctx, &spec, &sde));
    CHECK_OK(ctx, hl_sde_init(sde, 5));
    return sde;
}

/* Every point DRAWS times; probe k of row r has the signs of bits(r), or random ones. */
static void fill_draws(size_t dim, size_t probe, double *t, double *x, double *first, double *second)
{
    for (size_t r = 0; r < POINTS * DRAWS; r++) {
        t[r] = 1 + (double)(r / DRAWS);
        for (size_t i = 0; i < dim; i++)
            x[r * dim + i] = hl_random_normal(4, 1, r / DRAWS * dim + i);
        for (size_t i = 0; i < probe; i++) {
            size_t all = r % DRAWS;
            bool few = 2 * probe <= 12; /* 4096 is a multiple of all there are */
            first[r * probe + i] = (few ? all >> i & 1 : hl_random_bits(6, 1, r * probe + i) & 1) ? 1 : -1;
            second[r * probe + i] = (few ? all >> (probe + i) & 1 : hl_random_bits(6, 2, r * probe + i) & 1) ? 1 : -1;
        }
    }
}

/* Losses and gradients of one objective: sums over the points. */
static void run_draws(hl_context *ctx, const char *curvature, size_t dim, const hl_sde_fit_options *options,
                      double *loss, double *gradient, size_t *total)
{
    hl_sde *sde = flow_model(ctx, dim, curvature);
    hl_sde_objective o;
    CHECK_OK(ctx, hl_sde_objective_create(sde, options, &o));
    size_t rows = POINTS * DRAWS, probe = o.probe ? o.probe : 1;
    double *t = test_malloc(rows * (1 + dim + 2 * probe) * sizeof *t), *x = t + rows, *first = x + rows * dim;
    fill_draws(dim, probe, t, x, first, first + rows * probe);
    assert_in_range(o.total, 1, 20000);
    hl_sde_objective_run(&o, rows, (const double *[]){ t, x, first, first + rows * probe }, 0.3, loss, gradient);
    *total = o.total;
    for (size_t k = 0; k < o.total; k++)
        gradient[k] /= DRAWS;
    loss[0] /= DRAWS;
    loss[1] /= DRAWS;
    test_free(t);
    hl_sde_objective_free(&o);
    hl_sde_free(sde);
}

/* Over all signs of both probes, the mean of a projected penalty and of its gradient is the exact one. */
static void test_projected(void **state)
{
    static double exact[20000], mean[20000];
    static const hl_sde_fit_options cases[] = { { .penalty = HL_SDE_L2 },
                                                { .penalty = HL_SDE_L2, .density_form = 1 },
                                                { .penalty = HL_SDE_L2, .stop_gradient = 1 } };
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (size_t n = 0; n < 6; n++) {
        size_t d = (size_t[]){ 1, 2, 3, 6, 5, 4 }[n], total;
        double loss[2][2];
        char label[60];
        snprintf(label, sizeof label, "d = %zu, objective %zu", d, n % 3);
        run_draws(ctx, "exact", d, &cases[n % 3], loss[0], exact, &total);
        run_draws(ctx, "projected", d, &cases[n % 3], loss[1], mean, &total);
        CHECK_NEAR(loss[1][0], loss[0][0], 1e-9 * loss[0][0], label);
        CHECK_NEAR(loss[1][1], loss[0][1], 1e-10 * fabs(loss[0][1]), label);
        CHECK_LE(relative_error_f64(mean, exact, total), 1e-8, label);
        CHECK(loss[0][0] > 1e-9, label);
    }
    test_context_free(ctx, NULL);
}

/* Propagated curvature has too many signs to go through all of them: the mean of R_1, from 4096 draws for a point, is
 * within 4 standard errors of R. */
static void test_propagated(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (size_t d = 1; d <= 5; d += 2) {
        hl_sde *sde = flow_model(ctx, d, "propagated");
        hl_sde_graph b;
        hl_plan *plan;
        size_t size, rows = POINTS * DRAWS;
        double exact[POINTS];
        hl_node estimate;
        CHECK_OK(ctx, hl_sde_graph_start(sde, &b));
        CHECK_OK(ctx, hl_sde_graph_motion(sde, &b, 2));
        CHECK_OK(ctx, hl_sde_graph_density(sde, &b, 0));
        CHECK_OK(ctx, hl_curvature_noise(b.g, b.fp.logp, b.x, &size));
        hl_node noise = hl_input(b.g, "noise", 1, &size);
        CHECK_OK(ctx, hl_sde_graph_slopes(&b));
        CHECK_OK(ctx, hl_curvature(b.g, b.fp.logp, b.x, noise, &estimate));
        b.fp.c = hl_add(b.g, estimate, hl_mul(b.g, b.fp.s, b.fp.s));
        CHECK_OK(ctx, hl_fp_build(b.g, &b.fp));
        CHECK_OK(ctx, hl_plan_create(ctx, b.g, 1, &b.fp.residual, &(hl_plan_options){ .dtype = HL_F64 }, &plan));
        double *t = test_malloc(rows * (2 + d + 2 * size) * sizeof *t), *x = t + rows, *r = x + rows * d;
        double *first = r + rows;
        fill_draws(d, size, t, x, first, first + rows * size);
        CHECK_OK(ctx, hl_plan_run(plan, rows, (const void *[]){ t, x, first }, sde->param, (void *[]){ r }));
        for (size_t p = 0; p < POINTS; p++) {
            double sum = 0, square = 0, *at = r + p * DRAWS;
            CHECK_OK(ctx, hl_sde_eval(sde, 1, t + p * DRAWS, x + p * DRAWS * d, &(hl_sde_values){ .residual = exact }));
            for (size_t k = 0; k < DRAWS; k++)
                sum += at[k] / DRAWS;
            for (size_t k = 0; k < DRAWS; k++)
                square += (at[k] - sum) * (at[k] - sum) / DRAWS;
            CHECK_LE(fabs(sum - exact[0]), 4 * sqrt(square / DRAWS), "the mean of the estimates");
            CHECK(square > 1e-8, "they are estimates");
        }
        test_free(t);
        hl_plan_free(plan);
        hl_sde_graph_end(sde, &b);
        hl_sde_free(sde);
    }
    test_context_free(ctx, NULL);
}

/* ---- learning ---- */

enum { PATHS = 400, TIMES = 12 };

/* dX = -(X - 20) / 2 dt + 3 dW from N(40, 2^2), times 100..104: rows by trajectory. */
static int returning(void *user, const hl_rows *at, double *f, double *g, double *dg)
{
    (void)user;
    for (size_t r = 0; r < at->count; r++) {
        if (f)
            f[r] = -(at->y[r] - 20) / 2;
        if (g)
            g[r] = 3;
        if (dg)
            dg[r] = 0;
    }
    return 0;
}

typedef struct table {
    double t[PATHS * TIMES], x[PATHS * TIMES];
    size_t trajectory[PATHS * TIMES];
} table;

static hl_sde_data make_data(hl_context *ctx, table *to)
{
    static double y[PATHS], t[PATHS];
    hl_simulator *simulator;
    hl_noise_system system = { 1, returning, 1, 0, NULL, NULL };
    for (size_t r = 0; r < PATHS; r++) {
        t[r] = 100;
        y[r] = 40 + 2 * hl_random_normal(8, 1, r);
    }
    CHECK_OK(ctx, hl_simulator_create(ctx, &system, &(hl_simulator_options){ .seed = 2, .level = 3 }, &simulator));
    CHECK_OK(ctx, hl_simulator_run(simulator, PATHS, 0, t, 4. / (TIMES - 1), TIMES - 1, y, to->x));
    hl_simulator_free(simulator);
    for (size_t k = 0; k < PATHS * TIMES; k++) {
        to->t[k] = 100 + 4. / (TIMES - 1) * (double)(k % TIMES);
        to->trajectory[k] = k / TIMES;
    }
    return (hl_sde_data){ PATHS * TIMES, to->t, to->x, to->trajectory };
}

/* Both methods find drift and diffusion, in the user's units. */
static void test_learns(void **state)
{
    static table data;
    hl_context *ctx = test_context(NULL, 1);
    hl_sde_data rows = make_data(ctx, &data);
    (void)state;
    for (int n = 0; n < 5; n++) { /* 3, 4: flows, with exact and with projected curvature */
        hl_sde *sde;
        hl_sde_fit *fit;
        hl_sde_fit_report report;
        hl_status status;
        double t[] = { 101, 101, 102 }, x[] = { 30, 34, 25 }, f[3], g[3], residual[3], first, last;
        hl_sde_spec spec = { .dim = 1,
                             .network = n == 2 ? "hollow" : "mlp",
                             .hidden = 24,
                             .layers = 2,
                             .density = n < 3 ? "mixture" : "flow",
                             .curvature = n == 4 ? "projected" : NULL,
                             .components = 2,
                             .density_hidden = 24,
                             .density_layers = 2,
                             .flows = 1,
                             .flow = { .hidden = 16 } };
        CHECK_OK(ctx, hl_sde_create(ctx, &spec, &sde));
        CHECK_OK(ctx, hl_sde_init(sde, 3));
        CHECK_OK(ctx, hl_sde_fit_create(sde, &rows,
                                        &(hl_sde_fit_options){ .method = n == 1,
                                                               .iterations = 800,
                                                               .batch = 128,
                                                               .optimizer = { .rate = 5e-3, .average = 0.98 } },
                                        &fit));
        while ((status = hl_sde_fit_step(fit, &report)) == HL_OK)
            assert_true(report.lambda <= 0.1 && report.lambda > 0);
        CHECK_STATUS(ctx, status, HL_STOPPED);
        CHECK_OK(ctx, hl_sde_fit_finish(fit));
        hl_sde_fit_free(fit);
        CHECK_OK(ctx, hl_sde_eval(sde, 3, t, x, &(hl_sde_values){ .f = f, .g = g, .residual = residual }));
        for (int k = 0; k < 3; k++) {
            double truth = -(x[k] - 20) / 2;
            char label[80];
            snprintf(label, sizeof label, "case %d: f(%g) = %.3f, g = %.3f", n, x[k], f[k], g[k]);
            CHECK_NEAR(f[k], truth, n == 1 ? 0.25 * fabs(truth) : 0.12 * fabs(truth), label); /* Euler shrinks it */
            CHECK_NEAR(g[k], 3, n == 1 ? 0.5 : 0.9, label);
            if (n != 1)
                CHECK_LE(fabs(residual[k]), 0.6, label);
        }
        hl_sde_get_scale(sde, &first, &last, NULL, NULL);
        assert_true(first == 100 && last == 104);
        hl_sde_free(sde);
    }
    test_context_free(ctx, NULL);
}

/* A density of three times can move between them alone, at no residual where the observations are: then the drift learns nothing.
 * Places between the times show it. */
static void test_few_times(void **state)
{
    static table data;
    static double f[PATHS * TIMES];
    hl_context *ctx = test_context(NULL, 1);
    hl_sde_data rows = make_data(ctx, &data);
    double error[2] = { 0 };
    size_t kept = 0;
    (void)state;
    for (size_t k = 0; k < rows.rows; k++)
        if (k % TIMES == 0 || k % TIMES == 5 || k % TIMES == TIMES - 1) {
            data.t[kept] = data.t[k];
            data.x[kept++] = data.x[k];
        }
    rows = (hl_sde_data){ kept, data.t, data.x, NULL };
    for (int n = 0; n < 2; n++) {
        hl_sde *sde;
        hl_sde_fit *fit;
        hl_sde_fit_options options = { .iterations = 800, .batch = 128, .between = n ? 0 : -1 };
        CHECK_OK(ctx, hl_sde_create(ctx, &(hl_sde_spec){ .dim = 1, .net = { .hidden = 16, .width = 16 } }, &sde));
        CHECK_OK(ctx, hl_sde_init(sde, 3));
        CHECK_OK(ctx, hl_sde_fit_create(sde, &rows, &options, &fit));
        while (hl_sde_fit_step(fit, NULL) == HL_OK)
            continue;
        hl_sde_fit_free(fit);
        CHECK_OK(ctx, hl_sde_eval(sde, kept, data.t, data.x, &(hl_sde_values){ .f = f }));
        for (size_t k = 0; k < kept; k++)
            error[n] += fabs(f[k] + (data.x[k] - 20) / 2) / (double)kept;
        hl_sde_free(sde);
    }
    CHECK_LE(error[1], 1.5, "with places between the times");
    CHECK_LE(2 * error[1], error[0], "without them it is worse");
    test_context_free(ctx, NULL);
}

/* One Gaussian at each time needs one, two modes need more; few rows are not asked. */
static void test_components(void **state)
{
    static table data;
    hl_context *ctx = test_context(NULL, 1);
    hl_sde_data rows = make_data(ctx, &data);
    hl_sde_spec spec = { .dim = 1, .density_hidden = 16, .density_layers = 2 };
    hl_sde_fit_options options = { .iterations = 300, .batch = 128, .optimizer = { .rate = 5e-3 } };
    size_t one = 0, two = 0, few = 7;
    (void)state;
    CHECK_OK(ctx, hl_sde_choose_components(ctx, &spec, &rows, &options, &one));
    for (size_t k = 0; k < rows.rows; k++)
        data.x[k] += data.trajectory[k] % 2 ? 30 : -30;
    CHECK_OK(ctx, hl_sde_choose_components(ctx, &spec, &rows, &options, &two));
    assert_true(one == 1 && two >= 2);
    rows.rows = 100;
    CHECK_OK(ctx, hl_sde_choose_components(ctx, &spec, &rows, NULL, &few));
    assert_int_equal(few, 0); /* the default */
    CHECK_STATUS(ctx, hl_sde_choose_components(ctx, &spec, &rows, NULL, NULL), HL_ERR_INVALID);
    CHECK_STATUS(NULL, hl_sde_choose_components(NULL, &spec, &rows, NULL, &few), HL_ERR_INVALID);
    test_context_free(ctx, NULL);
}

/* ---- the same bits ---- */

static hl_sde *make_model(hl_context *ctx, uint64_t seed, const char *curvature)
{
    hl_sde *sde;
    hl_sde_spec spec = small_spec(1, 1);
    spec.dtype = HL_F32;
    spec.density = curvature ? "flow" : "mixture";
    spec.curvature = curvature;
    CHECK_OK(ctx, hl_sde_create(ctx, &spec, &sde));
    CHECK_OK(ctx, hl_sde_init(sde, seed));
    return sde;
}

static size_t copy_values(const hl_sde *sde, float *to)
{
    size_t count = 0;
    for (size_t n = 0; n < HL_SDE_NETS; n++)
        for (size_t i = 0; i < hl_net_param_count(hl_sde_net(sde, n)); i++) {
            hl_net_param p = param(hl_sde_net(sde, n), i);
            memcpy(to + count, p.values, p.size * sizeof *to);
            count += p.size;
        }
    return count;
}

/* 60 iterations, past the end of an epoch, or 10 of a flow; with `save` going on in a new fit from there. Steps allocate nothing. */
static size_t run(int threads, size_t save, int n, float *values)
{
    static table data;
    test_allocator allocator;
    hl_context *ctx = test_context(&allocator, threads);
    hl_sde_data rows = make_data(ctx, &data);
    const char *curvature = (const char *const[]){ NULL, NULL, "exact", "projected", "propagated" }[n];
    hl_sde *sde = make_model(ctx, 1, curvature);
    hl_sde_fit *fit;
    size_t iterations = curvature ? 10 : 60;
    hl_sde_fit_options options = {
        .method = n == 1, .iterations = iterations, .batch = 100, .seed = 4, .optimizer = { .average = 0.9 }
    };
    CHECK_OK(ctx, hl_sde_fit_create(sde, &rows, &options, &fit));
    for (size_t i = 0; i < iterations; i++) {
        if (save && i == save) {
            double *saved = test_calloc(hl_sde_fit_state_size(fit), sizeof *saved);
            hl_sde_fit_get_state(fit, saved);
            hl_sde_fit_free(fit);
            hl_sde_free(sde);
            sde = make_model(ctx, 77, curvature);
            CHECK_OK(ctx, hl_sde_fit_create(sde, &rows, &options, &fit));
            CHECK_OK(ctx, hl_sde_fit_set_state(fit, saved));
            test_free(saved);
        }
        long before = allocator.calls;
        CHECK_OK(ctx, hl_sde_fit_step(fit, NULL));
        assert_int_equal(allocator.calls, before);
    }
    CHECK_STATUS(ctx, hl_sde_fit_step(fit, NULL), HL_STOPPED);
    CHECK_OK(ctx, hl_sde_fit_finish(fit));
    size_t count = copy_values(sde, values);
    hl_sde_fit_free(fit);
    hl_sde_free(sde);
    test_context_free(ctx, &allocator);
    return count;
}

static void test_same_bits(void **state)
{
    static float first[20000], other[20000];
    (void)state;
    for (int n = 0; n < 5; n++) {
        size_t count = run(1, 0, n, first);
        run(2, 0, n, other);
        assert_memory_equal(first, other, count * sizeof *first);
        run(1, n < 2 ? 23 : 4, n, other);
        assert_memory_equal(first, other, count * sizeof *first);
        run(1, n < 2 ? 50 : 9, n, other);
        assert_memory_equal(first, other, count * sizeof *first);
    }
}

/* ---- failures ---- */

typedef struct trial {
    const hl_sde_data *data;
    int n;
} trial;

static hl_status scenario(hl_context *ctx, void *user)
{
    const trial *at = user;
    int n = at->n;
    hl_sde_spec spec = { .dim = 2,
                         .network = n ? "hollow" : "mlp",
                         .hidden = 2,
                         .layers = 1,
                         .density = n < 2 ? "mixture" : "flow",
                         .curvature = n < 3    ? NULL
                                      : n == 3 ? "projected"
                                               : "propagated",
                         .components = 2,
                         .density_hidden = 2,
                         .density_layers = 1,
                         .known = known,
                         .net = { .hidden = 2, .width = 2, .features = 2, .hidden_layers = 1, .layers = 1 },
                         .flows = 2,
                         .flow = { .hidden = 2, .width = 2, .features = 2, .hidden_layers = 1 } };
    hl_sde *sde = NULL;
    hl_sde_fit *fit = NULL;
    hl_status status = hl_sde_create(ctx, &spec, &sde);
    if (status == HL_OK)
        status = hl_sde_init(sde, 1);
    if (status == HL_OK)
        status = hl_sde_fit_create(sde, at->data, &(hl_sde_fit_options){ .method = n == 1, .batch = 4 }, &fit);
    if (status == HL_OK)
        status = hl_sde_fit_step(fit, NULL);
    hl_sde_fit_free(fit);
    hl_sde_free(sde);
    return status;
}

static void test_allocations(void **state)
{
    double t[] = { 0, 1, 2, 3 }, x[] = { 1, 2, 3, 5, 2, 1, 0, 4 };
    hl_sde_data data = { 4, t, x, NULL };
    (void)state;
    for (int n = 0; n < 5; n++)
        check_every_allocation(1, scenario, &(trial){ &data, n });
}

static void refuse(hl_sde *sde, const hl_sde_data *data, hl_sde_method method, hl_status expected, const char *message)
{
    hl_sde_fit *fit = NULL;
    CHECK_STATUS(sde->ctx, hl_sde_fit_create(sde, data, &(hl_sde_fit_options){ .method = method }, &fit), expected);
    assert_null(fit);
    check_message(sde->ctx, message);
}

static void test_wrong_uses(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    hl_sde *sde = make_model(ctx, 1, NULL), *none = NULL;
    double t[] = { 0, 1, 1, 2 }, x[] = { 1, 2, 3, 5 }, bad[] = { 1, NAN, 2, 3 }, flat[] = { 7, 7, 7, 7 };
    size_t single[] = { 1, 2, 3, 4 }, two[] = { 1, 1, 2, 2 };
    double huge[] = { 1e300, -1e300, 3e299, 1e299 };
    hl_sde_fit *fit;
    (void)state;
    refuse(sde, &(hl_sde_data){ 4, t, bad, NULL }, HL_SDE_FOKKER_PLANCK, HL_ERR_NOT_FINITE, "row 1, value 0");
    refuse(sde, &(hl_sde_data){ 4, bad, x, NULL }, HL_SDE_FOKKER_PLANCK, HL_ERR_NOT_FINITE, "row 1: the time");
    refuse(sde, &(hl_sde_data){ 4, t, flat, NULL }, HL_SDE_FOKKER_PLANCK, HL_ERR_INVALID, "constant");
    refuse(sde, &(hl_sde_data){ 4, flat, x, NULL }, HL_SDE_FOKKER_PLANCK, HL_ERR_INVALID, "the same time");
    refuse(sde, &(hl_sde_data){ 4, t, x, NULL }, HL_SDE_PSEUDO_LIKELIHOOD, HL_ERR_INVALID,
           "row 2: time 1 is not later");
    refuse(sde, &(hl_sde_data){ 4, t, x, single }, HL_SDE_PSEUDO_LIKELIHOOD, HL_ERR_INVALID, "pairs");
    refuse(sde, &(hl_sde_data){ 1, t, x, NULL }, HL_SDE_FOKKER_PLANCK, HL_ERR_INVALID, "two rows");
    CHECK_STATUS(ctx,
                 hl_sde_fit_create(sde, &(hl_sde_data){ 4, t, x, two }, &(hl_sde_fit_options){ .between = 1.5 }, &fit),
                 HL_ERR_INVALID);
    refuse(sde, &(hl_sde_data){ 4, t, x, two }, (hl_sde_method)9, HL_ERR_INVALID, "out of range");
    CHECK_OK(ctx, hl_sde_fit_create(sde, &(hl_sde_data){ 4, t, x, two }, &(hl_sde_fit_options){ .method = 1 }, &fit));
    CHECK_OK(ctx, hl_sde_fit_step(fit, NULL));
    double nothing[1] = { -1 };
    CHECK_STATUS(ctx, hl_sde_fit_set_state(fit, nothing), HL_ERR_INVALID);
    hl_sde_fit_free(fit);
    CHECK_OK(ctx, hl_sde_fit_create(sde, &(hl_sde_data){ 4, t, huge, NULL }, NULL, &fit));
    CHECK_OK(ctx, hl_sde_fit_step(fit, NULL));
    hl_sde_fit_free(fit);
    CHECK_STATUS(ctx, hl_sde_create(ctx, &(hl_sde_spec){ .dim = 0 }, &none), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_sde_create(ctx, &(hl_sde_spec){ .dim = 2, .network = "plain" }, &none), HL_ERR_INVALID);
    check_message(ctx, "unknown network 'plain'");
    CHECK_STATUS(ctx, hl_sde_create(ctx, &(hl_sde_spec){ .dim = 2, .activation = "elu" }, &none), HL_ERR_INVALID);
    check_message(ctx, "unknown activation 'elu'");
    CHECK_STATUS(ctx, hl_sde_create(ctx, &(hl_sde_spec){ .dim = 2, .clamp = -1 }, &none), HL_ERR_INVALID);
    static const struct {
        hl_sde_spec spec;
        const char *message;
    } bad_specs[] = {
        { { .density = "gauss" }, "unknown density 'gauss'" },
        { { .density = "flow", .curvature = "guess" }, "unknown curvature 'guess'" },
        { { .density = "flow", .flows = 65 }, "1..64 networks" },
        { { .density = "flow", .flow = { .mlp = 3 } }, "1..64 networks" },
        { { .density = "flow", .flow = { .conditioner = "made" } }, "autoregressive or coupling" },
        { { .density = "flow", .flow = { .transformer = "shared" } }, "affine or monotone" },
        { { .density = "flow", .flow = { .activation = "swish" } }, "monotone activation" },
    };
    for (size_t k = 0; k < sizeof bad_specs / sizeof *bad_specs; k++) {
        hl_sde_spec spec = bad_specs[k].spec;
        spec.dim = 2;
        CHECK_STATUS(ctx, hl_sde_create(ctx, &spec, &none), HL_ERR_INVALID);
        check_message(ctx, bad_specs[k].message);
    }
    hl_sde *flow = make_model(ctx, 1, "projected");
    CHECK_STATUS(ctx,
                 hl_sde_fit_create(flow, &(hl_sde_data){ 4, t, x, NULL },
                                   &(hl_sde_fit_options){ .penalty = HL_SDE_HUBER }, &fit),
                 HL_ERR_INVALID);
    check_message(ctx, "penalty l2");
    hl_sde_spec described = hl_sde_describe(flow); /* all there is to make another one */
    CHECK_OK(ctx, hl_sde_create(ctx, &described, &none));
    assert_int_equal(hl_sde_param_total(none), hl_sde_param_total(flow));
    assert_string_equal(hl_sde_describe(none).curvature, "projected");
    hl_sde_free(none);
    hl_sde_free(flow);
    CHECK_STATUS(ctx, hl_sde_set_scale(sde, 1, 1, x, x), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_sde_eval(sde, 1, NULL, x, &(hl_sde_values){ 0 }), HL_ERR_INVALID);
    hl_sde_free(sde);
    hl_sde_free(NULL);
    hl_sde_fit_free(NULL);
    test_context_free(ctx, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_losses),     cmocka_unit_test(test_pseudo_loss), cmocka_unit_test(test_projected),
        cmocka_unit_test(test_propagated), cmocka_unit_test(test_gradients),   cmocka_unit_test(test_learns),
        cmocka_unit_test(test_few_times),  cmocka_unit_test(test_same_bits),   cmocka_unit_test(test_allocations),
        cmocka_unit_test(test_wrong_uses), cmocka_unit_test(test_averaged),    cmocka_unit_test(test_components),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
