/* test_sde_operator.c - the Fokker-Planck residual: zero for equations with known densities and far from it for wrong
 * ones; equal to brute force and to differences of p for random models; draws from a model's density; what is known is
 * kept. */
#include "net_support.h"

#include "hollow/plan.h"
#include "hollow/sde.h"
#include "sde/sde.h"

static const double log_2pi = 1.8378770664093454836;

/* ---- densities in closed form ---- */

typedef struct world {
    hl_graph *g;
    hl_node t, x, e; /* e: cos, sin and the like go here as needed */
} world;

static hl_node c(world *w, double v)
{
    return hl_const(w->g, v);
}

/* Entry i of x as a scalar. */
static hl_node at(world *w, size_t i)
{
    return hl_reshape(w->g, hl_slice(w->g, w->x, 0, i, 1), 0, NULL);
}

static hl_node pair(world *w, hl_node a, hl_node b)
{
    size_t one = 1;
    hl_node parts[] = { hl_reshape(w->g, a, 1, &one), hl_reshape(w->g, b, 1, &one) };
    return hl_concat(w->g, 2, parts, 0);
}

/* log N(y; m, v), scalars. */
static hl_node normal(world *w, hl_node y, hl_node m, hl_node v)
{
    hl_graph *g = w->g;
    hl_node gap = hl_sub(g, y, m);
    return hl_sub(g, hl_scale(g, -0.5, hl_add(g, hl_div(g, hl_mul(g, gap, gap), v), hl_log(g, v))),
                  c(w, 0.5 * log_2pi));
}

/* dX = -k X dt + s dW from N(1.5, 0.2). */
static hl_node ou_density(world *w, double wrong, hl_node *f, hl_node *g)
{
    double k = 1.3, s = 0.6;
    hl_graph *b = w->g;
    hl_node decay = hl_exp(b, hl_scale(b, -k, w->t)), square = hl_mul(b, decay, decay);
    hl_node v = hl_add(b, hl_scale(b, 0.2, square), hl_scale(b, s * s / (2 * k), hl_sub(b, c(w, 1), square)));
    *f = hl_scale(b, -k * wrong, w->x);
    *g = hl_add(b, hl_scale(b, 0, w->x), c(w, s));
    return normal(w, at(w, 0), hl_scale(b, 1.5, decay), v);
}

/* dX = a X dt + b X dW, log X from N(0.3, 0.1). */
static hl_node gbm_density(world *w, double wrong, hl_node *f, hl_node *g)
{
    double a = 1.1, s = 0.5;
    hl_graph *b = w->g;
    hl_node y = hl_log(b, at(w, 0)), m = hl_add(b, c(w, 0.3), hl_scale(b, a - 0.5 * s * s, w->t));
    *f = hl_scale(b, a * wrong, w->x);
    *g = hl_scale(b, s, w->x);
    return hl_sub(b, normal(w, y, m, hl_add(b, c(w, 0.1), hl_scale(b, s * s, w->t))), y);
}

/* dp = v dt, dv = -q^2 p dt + s dW, from N((1, 0), 0.1^2 I): with C = cos qt, S = sin qt the mean is (C, -q S) and the
 * covariance
 *   0.01 (C^2 + S^2/q^2, C S (1/q - q); q^2 S^2 + C^2) + s^2 ((t/2 - sin(2qt)/(4q))/q^2, S^2/(2 q^2); t/2 +
 * sin(2qt)/(4q)). */
static hl_node pendulum_density(world *w, double wrong, hl_node *f, hl_node *g)
{
    double q = sqrt(2), s = 0.2, v0 = 0.01;
    hl_graph *b = w->g;
    hl_node C = hl_cos(b, hl_scale(b, q, w->t)), S = hl_sin(b, hl_scale(b, q, w->t));
    hl_node CC = hl_mul(b, C, C), SS = hl_mul(b, S, S), CS = hl_mul(b, C, S);
    hl_node half = hl_scale(b, 0.5, w->t), bend = hl_scale(b, 0.25 / q, hl_sin(b, hl_scale(b, 2 * q, w->t)));
    hl_node pp = hl_add(b, hl_scale(b, v0, hl_add(b, CC, hl_scale(b, 1 / (q * q), SS))),
                        hl_scale(b, s * s / (q * q), hl_sub(b, half, bend)));
    hl_node pv = hl_add(b, hl_scale(b, v0 * (1 / q - q), CS), hl_scale(b, s * s / (2 * q * q), SS));
    hl_node vv =
        hl_add(b, hl_scale(b, v0, hl_add(b, hl_scale(b, q * q, SS), CC)), hl_scale(b, s * s, hl_add(b, half, bend)));
    hl_node y = hl_sub(b, at(w, 0), C), z = hl_sub(b, at(w, 1), hl_scale(b, -q, S));
    hl_node det = hl_sub(b, hl_mul(b, pp, vv), hl_mul(b, pv, pv));
    hl_node form = hl_add(b, hl_mul(b, vv, hl_mul(b, y, y)), hl_mul(b, pp, hl_mul(b, z, z)));
    form = hl_div(b, hl_sub(b, form, hl_scale(b, 2, hl_mul(b, pv, hl_mul(b, y, z)))), det);
    *f = pair(w, at(w, 1), hl_scale(b, -q * q * wrong, at(w, 0)));
    *g = pair(w, hl_scale(b, 0, at(w, 0)), hl_add(b, hl_scale(b, 0, at(w, 0)), c(w, s)));
    return hl_sub(b, hl_scale(b, -0.5, hl_add(b, form, hl_log(b, det))), c(w, log_2pi));
}

typedef hl_node density_fn(world *w, double wrong, hl_node *f, hl_node *g);

/* Largest and mean |R|, and the largest |p R|, over rows of (t, x). */
static void residuals(hl_context *ctx, density_fn *density, double wrong, size_t dim, size_t rows, const double *t,
                      const double *x, double *most, double *mean, double *most_p)
{
    world w;
    hl_fp_nodes n = { 0 };
    hl_plan *plan;
    hl_node d[2];
    double *r = test_malloc(2 * rows * sizeof *r);
    CHECK_OK(ctx, hl_graph_create(ctx, &w.g));
    w.t = hl_input(w.g, "t", 0, NULL);
    w.x = hl_input(w.g, "x", 1, &dim);
    hl_node logp = density(&w, wrong, &n.f, &n.g);
    CHECK_OK(ctx, hl_fp_derive(w.g, n.f, w.x, 1, &n.df));
    CHECK_OK(ctx, hl_fp_derive(w.g, n.g, w.x, 2, d));
    n.dg = d[0];
    n.d2g = d[1];
    CHECK_OK(ctx, hl_fp_derive_density(w.g, logp, w.t, w.x, &n));
    CHECK_OK(ctx, hl_fp_build(w.g, &n));
    CHECK_OK(ctx, hl_plan_create(ctx, w.g, 2, (hl_node[]){ n.residual, n.residual_p },
                                 &(hl_plan_options){ .dtype = HL_F64 }, &plan));
    CHECK_OK(ctx, hl_plan_run(plan, rows, (const void *[]){ t, x }, NULL, (void *[]){ r, r + rows }));
    *most = *mean = *most_p = 0;
    for (size_t k = 0; k < rows; k++) {
        *most = fabs(r[k]) <= *most ? *most : fabs(r[k]); /* takes a NaN and keeps it */
        *most_p = fabs(r[rows + k]) <= *most_p ? *most_p : fabs(r[rows + k]);
        *mean += fabs(r[k]) / (double)rows;
    }
    hl_plan_free(plan);
    hl_graph_free(w.g);
    test_free(r);
}

static void test_known_densities(void **state)
{
    enum { ROWS = 200 };
    static const struct {
        const char *name;
        density_fn *density;
        size_t dim;
    } cases[] = { { "Ornstein-Uhlenbeck", ou_density, 1 },
                  { "geometric Brownian motion", gbm_density, 1 },
                  { "linear pendulum", pendulum_density, 2 } };
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        double t[ROWS], x[2 * ROWS], most, mean, most_p;
        for (size_t r = 0; r < ROWS; r++) {
            double a = hl_random_normal(1, 1, r), b = hl_random_normal(1, 2, r), q = sqrt(2);
            t[r] = 0.2 + 2 * hl_random_uniform(1, 3, r);
            if (cases[k].dim == 2) {
                x[2 * r] = cos(q * t[r]) + 0.15 * a;
                x[2 * r + 1] = -q * sin(q * t[r]) + 0.2 * b;
            } else {
                x[r] = k == 0 ? 1.5 * exp(-1.3 * t[r]) + 0.4 * a : exp(0.3 + 0.975 * t[r] + 0.5 * a);
            }
        }
        residuals(ctx, cases[k].density, 1, cases[k].dim, ROWS, t, x, &most, &mean, &most_p);
        CHECK_LE(most, 1e-10, cases[k].name);
        CHECK_LE(most_p, 1e-10, cases[k].name);
        residuals(ctx, cases[k].density, 1.1, cases[k].dim, ROWS, t, x, &most, &mean, &most_p);
        CHECK(mean > 0.1, cases[k].name);
    }
    test_context_free(ctx, NULL);
}

/* ---- random models ---- */

static hl_sde *make_model(hl_context *ctx, const hl_sde_spec *spec, uint64_t seed)
{
    hl_sde *sde;
    CHECK_OK(ctx, hl_sde_create(ctx, spec, &sde));
    CHECK_OK(ctx, hl_sde_init(sde, seed));
    for (size_t n = 0; n < HL_SDE_NETS; n++) /* generic: nothing is zero but what a mask excludes */
        for (size_t i = 0; i < hl_net_param_count(hl_sde_net(sde, n)); i++) {
            hl_net_param p = param(hl_sde_net(sde, n), i);
            for (size_t k = 0; k < p.size && strstr(p.name, "bias"); k++)
                set(spec->dtype, p.values, k,
                    get(spec->dtype, p.values, k) + 0.3 * hl_random_normal(seed, 50 + n * 30 + i, k));
        }
    return sde;
}

static void fill_points(const hl_sde *sde, size_t rows, double *t, double *x)
{
    size_t d = hl_sde_describe(sde).dim;
    double first, last, mean[8], deviation[8];
    hl_sde_get_scale(sde, &first, &last, mean, deviation);
    for (size_t r = 0; r < rows; r++) {
        t[r] = first + (last - first) * hl_random_uniform(4, 1, r);
        for (size_t i = 0; i < d; i++)
            x[r * d + i] = mean[i] + deviation[i] * hl_random_normal(4, 2, r * d + i);
    }
}

/* R from f and g without D and log p alone, by jets. What is compared with it takes D and, of mixtures, derivatives
 * written out, of flows reverse mode. */
static void brute_force(hl_context *ctx, hl_sde *sde, size_t rows, const double *t, const double *x, double *r)
{
    hl_sde_graph b;
    hl_node d[2];
    hl_plan *plan;
    CHECK_OK(ctx, hl_sde_graph_start(sde, &b));
    CHECK_OK(ctx, hl_sde_graph_motion(sde, &b, 0));
    CHECK_OK(ctx, hl_sde_graph_density(sde, &b, 0));
    CHECK_OK(ctx, hl_fp_derive(b.g, b.fp.f, b.x, 1, &b.fp.df));
    CHECK_OK(ctx, hl_fp_derive(b.g, b.fp.g, b.x, 2, d));
    b.fp.dg = d[0];
    b.fp.d2g = d[1];
    CHECK_OK(ctx, hl_fp_derive_density(b.g, b.fp.logp, b.t, b.x, &b.fp));
    CHECK_OK(ctx, hl_fp_build(b.g, &b.fp));
    CHECK_OK(ctx, hl_plan_create(ctx, b.g, 1, &b.fp.residual, &(hl_plan_options){ .dtype = HL_F64 }, &plan));
    CHECK_OK(ctx, hl_plan_run(plan, rows, (const void *[]){ t, x }, sde->param, (void *[]){ r }));
    hl_plan_free(plan);
    hl_sde_graph_end(sde, &b);
}

/* What a model may be, in turn. */
static hl_sde_spec model_spec(size_t n, size_t dim)
{
    return (hl_sde_spec){ .dim = dim,
                          .network = n % 2 ? "mlp" : "hollow",
                          .time = n % 3 == 1,
                          .hidden = 12,
                          .layers = 2,
                          .activation = (const char *const[]){ "swish", "tanh", "softplus" }[n % 3],
                          .net = { .hidden = 14, .width = 10 },
                          .components = 1 + n % 4,
                          .diagonal = n % 5 == 3,
                          .density_hidden = 10,
                          .density_layers = 2,
                          .diffusion_start = n % 4 == 2 ? 1.75 : 0,
                          .drift_scale = n % 3 == 2 ? 2.5 : 0,
                          .flows = 1 + n % 3,
                          .flow = { .hidden = 12,
                                    .transformer = n % 4 == 1 ? "affine" : NULL,
                                    .conditioner = n % 5 == 2 ? "coupling" : NULL },
                          .dtype = HL_F64 };
}

static void test_brute_force(void **state)
{
    enum { ROWS = 50 };
    static const size_t dims[] = { 1, 2, 5 };
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (size_t n = 0; n < 36; n++) {
        double t[ROWS], x[5 * ROWS], a[ROWS], b[ROWS];
        char label[80];
        hl_sde_spec spec = model_spec(n, dims[n / 2 % 3]);
        spec.density = n < 18 ? "mixture" : "flow";
        hl_sde *sde = make_model(ctx, &spec, n + 1);
        fill_points(sde, ROWS, t, x);
        CHECK_OK(ctx, hl_sde_eval(sde, ROWS, t, x, &(hl_sde_values){ .residual = a }));
        brute_force(ctx, sde, ROWS, t, x, b);
        snprintf(label, sizeof label, "model %zu, d = %zu, %s, %s", n, spec.dim, spec.network, spec.density);
        CHECK_LE(relative_error_f64(a, b, ROWS), 1e-10, label);
        CHECK(fabs(b[0]) > 1e-3, label);
        hl_sde_free(sde);
    }
    test_context_free(ctx, NULL);
}

/* ---- in the user's units, from outside ---- */

typedef struct sight {
    double f, g, p;
} sight;

static sight look(hl_context *ctx, hl_sde *sde, double t, const double *x, size_t i)
{
    double f[8], g[8], logp;
    CHECK_OK(ctx, hl_sde_eval(sde, 1, &t, x, &(hl_sde_values){ .f = f, .g = g, .logp = &logp }));
    return (sight){ f[i], g[i], exp(logp) };
}

/* (dp/dt + sum d(f p)/dx - d^2(g^2 p)/dx^2 / 2) / p by differences. */
static double differences(hl_context *ctx, hl_sde *sde, double t, const double *x0, const double *unit,
                          double time_unit)
{
    size_t d = hl_sde_describe(sde).dim;
    double x[8], step_t = 1e-4 * time_unit, sum;
    memcpy(x, x0, d * sizeof *x);
    sum = (look(ctx, sde, t + step_t, x, 0).p - look(ctx, sde, t - step_t, x, 0).p) / (2 * step_t);
    sight here = look(ctx, sde, t, x, 0);
    for (size_t i = 0; i < d; i++) {
        double h = 2e-4 * unit[i];
        sight mid = look(ctx, sde, t, x, i);
        x[i] = x0[i] + h;
        sight up = look(ctx, sde, t, x, i);
        x[i] = x0[i] - h;
        sight down = look(ctx, sde, t, x, i);
        x[i] = x0[i];
        sum += (up.f * up.p - down.f * down.p) / (2 * h);
        sum -= 0.5 * (up.g * up.g * up.p - 2 * mid.g * mid.g * mid.p + down.g * down.g * down.p) / (h * h);
    }
    return sum / here.p;
}

/* Known forms: sin(t) x_0^2 / 10 for a drift, x_1^2 / 2000 for a diffusion. */
static hl_node drift_form(void *user, hl_graph *g, hl_node t, hl_node x)
{
    hl_node first = hl_reshape(g, hl_slice(g, x, 0, 0, 1), 0, NULL);
    return hl_scale(g, *(const double *)user, hl_mul(g, hl_sin(g, t), hl_mul(g, first, first)));
}

static hl_node diffusion_form(void *user, hl_graph *g, hl_node t, hl_node x)
{
    hl_node second = hl_reshape(g, hl_slice(g, x, 0, 1, 1), 0, NULL);
    (void)user, (void)t;
    return hl_scale(g, 1. / 2000, hl_mul(g, second, second));
}

static hl_node wrong_form(void *user, hl_graph *g, hl_node t, hl_node x)
{
    (void)user, (void)t, (void)g;
    return x;
}

static void test_differences(void **state)
{
    enum { ROWS = 12 };
    static const double mean[] = { 3, -200, 0.01, 5, 0 }, unit[] = { 2, 50, 0.003, 1, 1e4 };
    static const double row[] = { 0.1, 0.02, -30, 0.4, 1e-4 };
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (size_t n = 0; n < 16; n++) {
        double t[ROWS], x[5 * ROWS], r[ROWS], dg[5 * ROWS], score[5 * ROWS], truth[ROWS];
        size_t d = n % 4 == 3 ? 5 : n % 4 + 1;
        double tenth = 0.1;
        hl_sde_known known[5] = { { .drift = 1, .drift_constant = 0.3, .drift_linear = row },
                                  { .diffusion = 1, .diffusion_value = 2.5 } };
        bool formed = n % 4 == 1 || n % 8 == 7;
        if (formed) {
            known[0].drift_form = drift_form;
            known[0].user = &tenth;
            known[1].diffusion_form = diffusion_form;
            known[2].diffusion_form = wrong_form; /* not known, not called */
        }
        hl_sde_spec spec = model_spec(n, d);
        spec.known = n % 2 ? known : NULL;
        spec.density = n < 8 ? "mixture" : "flow";
        hl_sde *sde = make_model(ctx, &spec, n + 1);
        CHECK_OK(ctx, hl_sde_set_scale(sde, 10, 24, mean, unit));
        fill_points(sde, ROWS, t, x);
        CHECK_OK(ctx, hl_sde_eval(sde, ROWS, t, x, &(hl_sde_values){ .residual = r, .dg = dg, .score = score }));
        for (size_t k = 0; k < ROWS; k++) {
            const double *xk = x + k * d;
            truth[k] = differences(ctx, sde, t[k], xk, unit, 2.8);
            double move[8], h = 1e-5 * unit[0];
            memcpy(move, xk, d * sizeof *move);
            move[0] = xk[0] + h;
            sight up = look(ctx, sde, t[k], move, 0);
            move[0] = xk[0] - h;
            sight down = look(ctx, sde, t[k], move, 0);
            CHECK_NEAR(dg[k * d], (up.g - down.g) / (2 * h), 1e-7 * (1 + fabs(up.g)) / unit[0], "dg");
            CHECK_NEAR(score[k * d] * unit[0], log(up.p / down.p) / (2 * h) * unit[0], 1e-4, "score");
            if (spec.known)
                CHECK_NEAR(look(ctx, sde, t[k], xk, 0).f,
                           0.3 + 0.1 * xk[0] + (d > 1 ? 0.02 * xk[1] : 0) + (d > 2 ? -30 * xk[2] : 0) +
                               (d > 3 ? 0.4 * xk[3] + 1e-4 * xk[4] : 0) +
                               (formed ? 0.1 * sin(t[k]) * xk[0] * xk[0] : 0),
                           1e-9, "the known drift");
            if (spec.known && d > 1)
                CHECK_NEAR(look(ctx, sde, t[k], xk, 1).g, 2.5 + (formed ? xk[1] * xk[1] / 2000 : 0), 1e-11,
                           "the known diffusion");
        }
        CHECK_LE(relative_error_f64(r, truth, ROWS), 2e-5, spec.network);
        hl_sde_free(sde);
    }
    test_context_free(ctx, NULL);
}

static void test_wrong_form(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    hl_sde_spec spec = model_spec(0, 2);
    hl_sde_known known[2] = { { .drift = 1, .drift_form = wrong_form } };
    hl_sde *sde = NULL;
    (void)state;
    spec.known = known;
    CHECK_STATUS(ctx, hl_sde_create(ctx, &spec, &sde), HL_ERR_SHAPE);
    check_message(ctx, "component 0 is not a scalar");
    assert_null(sde);
    test_context_free(ctx, NULL);
}

/* p integrates to 1, and draws follow it: E s = 0 and E (x_i - a) s_j = -1 if i = j, else 0 (Stein). */
static void test_draws(void **state)
{
    enum { ROWS = 40000 };
    static double t[ROWS], x[2 * ROWS], score[2 * ROWS], again[2];
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (int n = 0; n < 4; n++) { /* mixtures, full and diagonal; a monotone and an affine flow */
        hl_sde_spec spec = model_spec(1, 2);
        spec.components = 3;
        spec.diagonal = n == 1;
        spec.density = n < 2 ? "mixture" : "flow";
        spec.flow.transformer = n == 2 ? "monotone" : "affine";
        hl_sde *sde = make_model(ctx, &spec, 4);
        double first[2] = { 0 }, second[2][2] = { { 0 } }, mass = 0, unit[] = { 2, 0.5 }, mean[] = { 1, -3 };
        CHECK_OK(ctx, hl_sde_set_scale(sde, 0, 10, mean, unit));
        for (size_t r = 0; r < ROWS; r++)
            t[r] = 4;
        CHECK_OK(ctx, hl_sde_sample(sde, ROWS, t, 3, 0, x));
        CHECK_OK(ctx, hl_sde_sample(sde, 1, t, 3, 777, again));
        assert_memory_equal(again, x + 2 * 777, sizeof again);
        CHECK_OK(ctx, hl_sde_eval(sde, ROWS, t, x, &(hl_sde_values){ .score = score }));
        for (size_t k = 0; k < 2 * ROWS; k++) {
            first[k % 2] += score[k] * unit[k % 2] / ROWS;
            for (size_t j = 0; j < 2; j++)
                second[k % 2][j] += (x[k] - mean[k % 2]) / unit[k % 2] * score[k / 2 * 2 + j] * unit[j] / ROWS;
        }
        for (size_t i = 0; i < 2; i++) {
            CHECK_NEAR(first[i], 0, 0.05, "E s");
            for (size_t j = 0; j < 2; j++)
                CHECK_NEAR(second[i][j], i == j ? -1 : 0, 0.06, "E x s");
        }
        double span = n < 2 ? 14 : 40;
        for (size_t r = 0; r < ROWS; r++) { /* a grid of 200 x 200 */
            x[2 * r] = mean[0] + unit[0] * span * ((double)(r % 200) / 200 - 0.5);
            x[2 * r + 1] = mean[1] + unit[1] * span * ((double)(r / 200) / 200 - 0.5);
        }
        CHECK_OK(ctx, hl_sde_eval(sde, ROWS, t, x, &(hl_sde_values){ .logp = score }));
        for (size_t r = 0; r < ROWS; r++)
            mass += exp(score[r]) * unit[0] * unit[1] * span * span / ROWS;
        CHECK_NEAR(mass, 1, 1e-3, "p integrates to 1");
        hl_sde_free(sde);
    }
    test_context_free(ctx, NULL);
}

/* A simulation of the model itself: the same bits for any number of threads. */
static void test_model_paths(void **state)
{
    enum { ROWS = 70 };
    double y[2][2 * ROWS];
    (void)state;
    for (int n = 0; n < 2; n++) {
        hl_context *ctx = test_context(NULL, n + 1);
        hl_sde_spec spec = model_spec(4, 2);
        spec.dtype = HL_F32;
        hl_sde *sde = make_model(ctx, &spec, 4);
        double t[ROWS];
        hl_noise_system system;
        hl_simulator *simulator;
        for (size_t r = 0; r < ROWS; r++)
            t[r] = 0.01 * (double)r;
        CHECK_OK(ctx, hl_sde_sample(sde, ROWS, t, 1, 0, y[n]));
        CHECK_OK(ctx, hl_sde_system(sde, &system));
        CHECK_OK(ctx, hl_simulator_create(ctx, &system, &(hl_simulator_options){ .method = "milstein", .level = 2 },
                                          &simulator));
        CHECK_OK(ctx, hl_simulator_run(simulator, ROWS, 0, t, 0.1, 5, y[n], NULL));
        CHECK_NEAR(t[3], 0.53, 1e-12, "every row at its own time");
        hl_simulator_free(simulator);
        hl_sde_free(sde);
        test_context_free(ctx, NULL);
    }
    assert_memory_equal(y[0], y[1], sizeof y[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_densities), cmocka_unit_test(test_brute_force), cmocka_unit_test(test_differences),
        cmocka_unit_test(test_wrong_form),      cmocka_unit_test(test_draws),       cmocka_unit_test(test_model_paths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
