/* test_vae_evaluate.c - bounds of autoencoders against closed forms, the bias of a stochastic trace, and what must not change a bit.
 *
 * The linear-Gaussian autoencoder x = W z + b + s e has the posterior N(S W'(x - b) / s^2, S), S = (I + W'W / s^2)^-1, and
 * log p(x) = log N(x; b, W W' + s^2 I). With W = s L Q', L diagonal and Q orthogonal, S = Q diag(1 / (1 + L^2)) Q'. */
#include "vae_support.h"

enum { D = 4, ROWS = 5 };

#define LOG_2PI 1.8378770664093454836

static const double noise_s = 0.7, length[D] = { 0.5, 1, 1.5, 2.5 };

typedef struct truth {
    double q[D][D];   /* orthogonal */
    double lambda[D]; /* variances of the posterior along the columns of q */
    double w[D][D], b[D];
    double x[ROWS * D], log_p[ROWS];
} truth;

/* `turned`: Q is no identity, so the posterior has correlations. */
static truth make_truth(bool turned)
{
    truth t;
    double v[D] = { 1, -0.5, 0.8, 0.3 }, vv = 0;
    for (size_t i = 0; i < D; i++)
        vv += v[i] * v[i];
    for (size_t i = 0; i < D; i++) {
        t.lambda[i] = 1 / (1 + length[i] * length[i]);
        t.b[i] = 0.1 * (double)i - 0.2;
        for (size_t j = 0; j < D; j++)
            t.q[i][j] = (i == j) - (turned ? 2 * v[i] * v[j] / vv : 0);
    }
    for (size_t i = 0; i < D; i++)
        for (size_t j = 0; j < D; j++)
            t.w[i][j] = noise_s * length[i] * t.q[j][i];
    for (size_t r = 0; r < ROWS; r++) {
        t.log_p[r] = 0;
        for (size_t i = 0; i < D; i++) {
            double deviation = noise_s * sqrt(1 + length[i] * length[i]); /* W W' = s^2 L^2 */
            double away = 1.2 * hl_random_normal(3, r, i);
            t.x[r * D + i] = t.b[i] + deviation * away;
            t.log_p[r] -= 0.5 * (away * away + LOG_2PI) + log(deviation);
        }
    }
    return t;
}

/* m(x) = M (x - b) with M = Q diag(power(lambda)) Q' W' / s^2 for the mean, or any other function of S. */
static double function_of(const truth *t, double (*f)(double), size_t i, size_t j)
{
    double sum = 0;
    for (size_t k = 0; k < D; k++)
        sum += t->q[i][k] * f(t->lambda[k]) * t->q[j][k];
    return sum;
}

static double itself(double l)
{
    return l;
}

static double root(double l)
{
    return sqrt(l);
}

static double half_log(double l)
{
    return 0.5 * log(l);
}

/* The variance that softplus and its floor make of a bias. */
static double raw_variance(double variance)
{
    return log(expm1(variance - 1e-6));
}

/* Decoder and mean of the autoencoder: z0 has the mean f(S) W'(x - b) / s^2. */
static void set_linear(hl_vae *v, const truth *t, double (*f)(double))
{
    double *w = values_of(v, "decoder.0.weight"), *mean = values_of(v, "head.mean.weight");
    double *shift = values_of(v, "head.mean.bias");
    *values_of(v, "decoder.log_deviation") = log(noise_s);
    memcpy(values_of(v, "decoder.0.bias"), t->b, sizeof t->b);
    for (size_t i = 0; i < D; i++) {
        shift[i] = 0;
        for (size_t j = 0; j < D; j++) {
            w[i * D + j] = t->w[i][j];
            mean[i * D + j] = 0;
            for (size_t k = 0; k < D; k++)
                mean[i * D + j] += function_of(t, f, i, k) * t->w[j][k] / (noise_s * noise_s);
            shift[i] -= mean[i * D + j] * t->b[j];
        }
    }
}

static hl_vae *linear_vae(hl_context *ctx, const char *posterior, const char *trace)
{
    hl_vae_spec s = { .dim = D,
                      .net = "linear",
                      .likelihood = "gaussian",
                      .deviations = 1,
                      .latent = D,
                      .posterior = posterior,
                      .layers = -1,
                      .trace = trace,
                      .steps = 64,
                      .rank = 1,
                      .dtype = HL_F64 };
    hl_vae *v;
    CHECK_OK(ctx, hl_vae_create(ctx, &s, &v)); /* all parameters 0 */
    return v;
}

/* With the exact posterior every log weight is log p(x), whatever the noise and k. */
static void test_exact(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    truth t = make_truth(false);
    hl_vae *v = linear_vae(ctx, "vae", NULL);
    hl_vae_rows rows = { .rows = ROWS, .values = t.x };
    hl_vae_row_result row[ROWS];
    hl_vae_result all;
    double noise[ROWS * D], log_q[ROWS], log_joint[ROWS], z[ROWS * D], mean = 0;
    (void)state;
    set_linear(v, &t, itself);
    for (size_t i = 0; i < D; i++)
        values_of(v, "head.variance.bias")[i] = raw_variance(t.lambda[i]);
    hl_random_normals(1, 1, 0, ROWS * D, noise);
    CHECK_OK(ctx, hl_vae_push(v, &rows, noise, z, log_q, log_joint));
    hl_vae_eval_options o = { .samples = 7, .importance = 1000, .seed = 3 };
    CHECK_OK(ctx, hl_vae_evaluate(v, &rows, &o, row, &all));
    for (size_t r = 0; r < ROWS; r++) {
        CHECK_NEAR(log_joint[r] - log_q[r], t.log_p[r], 1e-10, "a log weight");
        CHECK_NEAR(row[r].elbo, t.log_p[r], 1e-10, "ELBO");
        CHECK_NEAR(row[r].iwae, t.log_p[r], 1e-10, "IWAE");
        CHECK_NEAR(row[r].effective, 1000, 1e-6, "equal weights");
        CHECK_NEAR(row[r].reconstruction + row[r].log_ratio, row[r].elbo, 1e-10, "its parts");
        mean += t.log_p[r] / ROWS;
    }
    CHECK_NEAR(all.elbo, mean, 1e-10, "the mean");
    assert_int_equal(all.active, D);
    hl_vae_free(v);
    test_context_free(ctx, NULL);
}

/* The best diagonal posterior of correlated z: its variances are 1 / (S^-1)_ii, and the ELBO is log p minus the closed KL. */
static void test_diagonal(void **state)
{
    enum { SAMPLES = 20000 };
    hl_context *ctx = test_context(NULL, 1);
    truth t = make_truth(true);
    hl_vae *v = linear_vae(ctx, "vae", NULL);
    hl_vae_rows rows = { .rows = ROWS, .values = t.x };
    hl_vae_row_result row[ROWS];
    double kl = 0;
    (void)state;
    set_linear(v, &t, itself);
    for (size_t i = 0; i < D; i++) {
        double precision = 0;
        for (size_t k = 0; k < D; k++)
            precision += t.q[i][k] * t.q[i][k] / t.lambda[k];
        values_of(v, "head.variance.bias")[i] = raw_variance(1 / precision);
        kl += 0.5 * (log(t.lambda[i]) + log(precision)); /* tr(S^-1 V) = D, so what is left is log det S / V */
    }
    hl_vae_eval_options o = { .samples = SAMPLES, .importance = SAMPLES };
    CHECK_OK(ctx, hl_vae_evaluate(v, &rows, &o, row, NULL));
    for (size_t r = 0; r < ROWS; r++) {
        CHECK_NEAR(row[r].elbo, t.log_p[r] - kl, 4 * 2.5 / sqrt(SAMPLES), "ELBO = log p - KL");
        CHECK(kl > 0.2, "there is a gap");
    }
    for (size_t i = 0; i < D; i++) /* wide enough for weights of finite variance */
        values_of(v, "head.variance.bias")[i] = raw_variance(1.5 * function_of(&t, itself, i, i));
    CHECK_OK(ctx, hl_vae_evaluate(v, &rows, &o, row, NULL));
    for (size_t r = 0; r < ROWS; r++) {
        CHECK_NEAR(row[r].iwae, t.log_p[r], 0.05, "IWAE-k comes near log p");
        CHECK(row[r].elbo < t.log_p[r] - kl, "no diagonal posterior is better than the best");
    }
    hl_vae_free(v);
    test_context_free(ctx, NULL);
}

/* z0 ~ N(S^-1/2 mean, I), and the linear field A = log(S) / 2 for a time of 1 is the matrix S^1/2: the exact posterior. */
static void test_linear_flow(void **state)
{
    enum { K = 2000 };
    hl_context *ctx = test_context(NULL, 1);
    truth t = make_truth(true);
    hl_vae_rows rows = { .rows = ROWS, .values = t.x };
    double variance = 0, bias = 0;
    (void)state;
    for (int stochastic = 0; stochastic < 2; stochastic++) {
        hl_vae *v = linear_vae(ctx, "ffjord", stochastic ? "hutchinson" : "exact");
        hl_vae_row_result row[ROWS];
        hl_vae_result all;
        set_linear(v, &t, root);
        for (size_t i = 0; i < D; i++) {
            values_of(v, "head.variance.bias")[i] = raw_variance(1);
            for (size_t j = 0; j < D; j++) {
                double a = function_of(&t, half_log, i, j);
                values_of(v, "ffjord.0.weight")[i * D + j] = a;
                variance += stochastic && i != j ? 2 * a * a : 0; /* of e' A e with signs e */
            }
        }
        hl_vae_eval_options o = { .samples = 4, .importance = K, .allow_biased = stochastic };
        CHECK_OK(ctx, hl_vae_evaluate(v, &rows, &o, row, &all));
        for (size_t r = 0; r < ROWS; r++) {
            if (!stochastic) {
                CHECK_NEAR(row[r].elbo, t.log_p[r], 1e-8, "ELBO with the exact trace");
                CHECK_NEAR(row[r].iwae, t.log_p[r], 1e-8, "IWAE with the exact trace");
            }
            bias += stochastic ? (row[r].iwae - t.log_p[r]) / ROWS : 0;
        }
        CHECK_LE(all.step_error, 1e-8, "steps");
        assert_int_equal(all.steps, 64);
        assert_true(all.evaluations == 4 * 64);
        if (!stochastic) {
            o.tolerance = 1e-9;
            CHECK_OK(ctx, hl_vae_evaluate(v, &rows, &o, row, &all));
            for (size_t r = 0; r < ROWS; r++)
                CHECK_NEAR(row[r].iwae, t.log_p[r], 1e-6, "IWAE by the adaptive solver");
            assert_int_equal(all.steps, 0);
            CHECK(all.evaluations > 6, "evaluations are counted");
            CHECK_LE(all.step_error, 1e-6, "the tolerance");
        }
        if (stochastic) {
            CHECK_NEAR(all.trace_bias, variance / 2, 0.4 * variance, "the estimate of the bias");
            o.allow_biased = 0;
            CHECK_STATUS(ctx, hl_vae_evaluate(v, &rows, &o, row, &all), HL_ERR_INVALID);
            CHECK(strstr(hl_context_message(ctx), "hutchinson"), "says why");
        } else
            CHECK_NEAR(all.trace_bias, 0, 0, "no noise");
        hl_vae_free(v);
    }
    /* log E exp(e' A e) of signs, by all of them: what the bias tends to, and about half the variance */
    truth u = make_truth(true);
    double expected = 0;
    for (int signs = 0; signs < 1 << D; signs++) {
        double sum = 0;
        for (size_t i = 0; i < D; i++)
            for (size_t j = 0; j < D; j++)
                if (i != j)
                    sum += function_of(&u, half_log, i, j) * (signs >> i & 1 ? 1 : -1) * (signs >> j & 1 ? 1 : -1);
        expected += exp(sum) / (1 << D);
    }
    CHECK_NEAR(bias, log(expected), 0.03, "the bias of the stochastic trace");
    CHECK(bias > 0.05, "there is a bias");
    test_context_free(ctx, NULL);
}

/* A row's bounds: the same bits beside other rows, in other chunks, for two threads; more samples give higher bounds. */
static void test_bits(void **state)
{
    (void)state;
    for (size_t i = 0; hl_vae_posteriors()[i]; i++) {
        hl_vae_row_result first[7], again[7];
        for (int way = 0; way < 5; way++) {
            hl_context *ctx = test_context(NULL, way == 1 ? 2 : 1);
            hl_vae_spec s = { .image = { 1, 6, 6 },
                              .net = "fc",
                              .latent = 3,
                              .posterior = hl_vae_posteriors()[i],
                              .trace = "exact" };
            hl_vae *v = small_vae(ctx, &s);
            unsigned char *bits = random_bits(7 * 36, 2);
            hl_vae_rows rows = { .rows = way == 2 ? 2 : 7, .bytes = way == 2 ? bits + 3 * 36 : bits };
            hl_vae_eval_options o = { .samples = 3, .importance = 40, .chunk = way == 3 ? 7 : way == 4 ? 1000 : 0 };
            CHECK_OK(ctx, hl_vae_evaluate(v, &rows, &o, way ? again : first, NULL));
            if (way == 2) /* rows 3 and 4 alone */
                assert_memory_equal(again, first + 3, 2 * sizeof *again);
            else if (way)
                assert_memory_equal(again, first, sizeof first);
            test_free(bits);
            hl_vae_free(v);
            test_context_free(ctx, NULL);
        }
        double gain = 0;
        for (size_t r = 0; r < 7; r++)
            gain += first[r].iwae - first[r].elbo;
        CHECK(gain > 0, "IWAE-40 is above the ELBO");
    }
}

/* Equal rows have samples of their own, so that the standard error of their mean is that of independent samples; the first of them has
 * those that it has alone. */
static void test_equal_rows(void **state)
{
    enum { COPIES = 200, TIMES = 30 };
    hl_context *ctx = test_context(NULL, 1);
    truth t = make_truth(false);
    hl_vae *v = linear_vae(ctx, "vae", NULL);
    double x[COPIES * D], sum = 0, square = 0, error = 0;
    hl_vae_row_result alone[2], row[COPIES], again[COPIES];
    hl_vae_result r;
    (void)state;
    set_linear(v, &t, itself);
    for (size_t i = 0; i < COPIES * D; i++) /* rows 0, 1, 0, 1, ... */
        x[i] = t.x[i % (2 * D)];
    hl_vae_rows rows = { .rows = COPIES, .values = x };
    CHECK_OK(ctx, hl_vae_evaluate(v, &(hl_vae_rows){ .rows = 2, .values = x }, NULL, alone, NULL));
    CHECK_OK(ctx, hl_vae_evaluate(v, &rows, NULL, row, NULL));
    CHECK_OK(ctx, hl_vae_evaluate(v, &rows, &(hl_vae_eval_options){ .chunk = 7 }, again, NULL));
    assert_memory_equal(row, again, sizeof row);
    for (size_t i = 0; i < 2; i++)
        CHECK_NEAR(row[i].elbo, alone[i].elbo, 0, "the first of equal rows");
    for (size_t i = 0; i < COPIES; i++)
        for (size_t j = 0; j < i; j++)
            CHECK(row[i].elbo != row[j].elbo, "samples of its own");
    for (size_t i = 0; i < COPIES * D; i++)
        x[i] = t.x[i % D];
    for (uint64_t seed = 0; seed < TIMES; seed++) {
        CHECK_OK(ctx, hl_vae_evaluate(v, &rows, &(hl_vae_eval_options){ .seed = seed }, NULL, &r));
        sum += r.elbo;
        square += r.elbo * r.elbo;
        error += r.elbo_error / TIMES;
    }
    double spread = sqrt((square - sum * sum / TIMES) / (TIMES - 1));
    CHECK(spread > 0.5 * error && spread < 2 * error, "the standard error of equal rows");
    hl_vae_free(v);
    test_context_free(ctx, NULL);
}

static int stop_at_once(size_t done, size_t rows, void *user)
{
    (void)done;
    (void)rows;
    return ++*(int *)user == 2;
}

static void test_wrong(void **state)
{
    test_allocator allocator;
    hl_context *ctx = test_context(&allocator, 1);
    hl_vae_spec s = { .dim = 6, .net = "linear", .latent = 2 };
    hl_vae *v = small_vae(ctx, &s);
    unsigned char bits[12] = { 0, 1, 0, 1, 1, 1, 0, 0, 0, 2 };
    double values[6] = { 0, 1, 0, 0.5, 0, 0 }, mean[12], z[4];
    hl_vae_result result;
    (void)state;
    CHECK_STATUS(ctx, hl_vae_evaluate(v, &(hl_vae_rows){ .rows = 2, .bytes = bits }, NULL, NULL, &result),
                 HL_ERR_INVALID);
    CHECK(strstr(hl_context_message(ctx), "row 2, column 4 is 2"), hl_context_message(ctx));
    CHECK_STATUS(ctx, hl_vae_evaluate(v, &(hl_vae_rows){ .rows = 1, .values = values }, NULL, NULL, &result),
                 HL_ERR_INVALID);
    CHECK(strstr(hl_context_message(ctx), "row 1, column 4 is 0.5"), hl_context_message(ctx));
    CHECK_STATUS(ctx, hl_vae_evaluate(v, &(hl_vae_rows){ .rows = 0, .bytes = bits }, NULL, NULL, &result),
                 HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_vae_evaluate(v, NULL, NULL, NULL, &result), HL_ERR_INVALID);
    bits[9] = 255;
    CHECK_OK(ctx, hl_vae_evaluate(v, &(hl_vae_rows){ .rows = 2, .bytes = bits, .gray = 1 }, NULL, NULL, &result));
    bits[9] = 1;
    int calls = 0;
    hl_vae_eval_options o = { .importance = 20, .progress = stop_at_once, .user = &calls };
    unsigned char many[40 * 6] = { 0 };
    CHECK_STATUS(ctx, hl_vae_evaluate(v, &(hl_vae_rows){ .rows = 40, .bytes = many }, &o, NULL, &result), HL_STOPPED);
    assert_int_equal(result.rows, 32);
    CHECK_STATUS(ctx, hl_vae_push(v, &(hl_vae_rows){ .rows = 2, .bytes = bits }, NULL, z, NULL, NULL), HL_ERR_INVALID);
    CHECK_OK(ctx, hl_vae_encode(v, &(hl_vae_rows){ .rows = 2, .bytes = bits }, 1, mean, z));
    CHECK_OK(ctx, hl_vae_decode(v, 2, z, mean));
    for (size_t i = 0; i < 12; i++)
        CHECK(mean[i] > 0 && mean[i] < 1, "a probability");
    /* memory does not grow with k */
    size_t peak[2];
    for (int n = 0; n < 2; n++) {
        allocator.peak_bytes = allocator.live_bytes;
        o = (hl_vae_eval_options){ .importance = n ? 3000 : 300 };
        CHECK_OK(ctx, hl_vae_evaluate(v, &(hl_vae_rows){ .rows = 2, .bytes = bits }, &o, NULL, &result));
        peak[n] = allocator.peak_bytes;
    }
    assert_int_equal(peak[0], peak[1]);
    hl_vae_free(v);
    test_context_free(ctx, &allocator);
}

/* Codes of zeros: the norms that planar and Sylvester divide by are 0. */
static void test_zeros(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    unsigned char zeros[2 * 9] = { 0 };
    (void)state;
    for (size_t i = 0; hl_vae_posteriors()[i]; i++) {
        hl_vae_spec s = { .dim = 9, .net = "fc", .latent = 3, .posterior = hl_vae_posteriors()[i] };
        hl_vae *v;
        hl_vae_result r;
        CHECK_OK(ctx, hl_vae_create(ctx, &s, &v));
        CHECK_OK(ctx, hl_vae_evaluate(v, &(hl_vae_rows){ .rows = 2, .bytes = zeros }, NULL, NULL, &r));
        CHECK_NEAR(r.log_det, 0, i == 2 ? 1e9 : 1e-5, s.posterior); /* iaf's gates are not 1 */
        CHECK_NEAR(r.reconstruction, -9 * log(2), 1e-5, "nine fair coins");
        hl_vae_free(v);
    }
    test_context_free(ctx, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_exact),       cmocka_unit_test(test_diagonal),
                                        cmocka_unit_test(test_linear_flow), cmocka_unit_test(test_bits),
                                        cmocka_unit_test(test_equal_rows),  cmocka_unit_test(test_wrong),
                                        cmocka_unit_test(test_zeros) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
