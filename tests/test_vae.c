/* test_vae.c - autoencoders: gradients of the whole loss and log |det| of every posterior, networks, files, bad input. */
#include "vae_support.h"

#include "hollow/random.h"
#include "vae/loss.h"

static hl_vae_spec posterior_spec(const char *posterior)
{
    return (hl_vae_spec){ .dim = 5,
                          .net = "linear",
                          .latent = 4,
                          .posterior = posterior,
                          .flows = 3,
                          .columns = 2,
                          .hidden = 6,
                          .features = 4,
                          .width = 5,
                          .rank = 2,
                          .activation = "swish",
                          .dtype = HL_F64 };
}

/* ---- gradients ---- */

typedef struct batch {
    size_t rows;
    double *x, *noise, *probe, *beta, *weight, *term[HL_VAE_TERMS];
} batch;

static batch make_batch(const hl_vae *v, size_t rows)
{
    batch b = { .rows = rows };
    size_t latent = v->spec.latent;
    b.x = test_calloc(rows * v->dim, sizeof(double));
    b.noise = test_calloc(rows * latent, sizeof(double));
    b.probe = test_calloc(rows * latent, sizeof(double));
    b.beta = test_calloc(rows, sizeof(double));
    b.weight = test_calloc(rows, sizeof(double));
    for (size_t i = 0; i < HL_VAE_TERMS; i++)
        b.term[i] = test_calloc(rows, sizeof(double));
    for (size_t i = 0; i < rows * v->dim; i++)
        b.x[i] = v->gaussian ? hl_random_normal(1, 1, i) : hl_random_uniform(1, 1, i) < 0.4;
    hl_random_normals(1, 2, 0, rows * latent, b.noise);
    for (size_t i = 0; i < rows * latent; i++)
        b.probe[i] = hl_random_uniform(1, 3, i) < 0.5 ? -1 : 1;
    for (size_t i = 0; i < rows; i++) {
        b.beta[i] = 0.3 + 0.2 * (double)i;
        b.weight[i] = 0.5 + 0.25 * (double)i;
    }
    return b;
}

static void free_batch(batch *b)
{
    test_free(b->x);
    test_free(b->noise);
    test_free(b->probe);
    test_free(b->beta);
    test_free(b->weight);
    for (size_t i = 0; i < HL_VAE_TERMS; i++)
        test_free(b->term[i]);
}

/* The loss, put together from the terms here. */
static double loss_of(hl_context *ctx, hl_vae_loss *l, const batch *b)
{
    double sum = 0;
    size_t latent = l->vae->spec.latent;
    const hl_row_in input[HL_VAE_INPUTS] = { [HL_VAE_X] = { .p = b->x, .pitch = l->vae->dim },
                                             [HL_VAE_NOISE] = { .p = b->noise, .pitch = latent },
                                             [HL_VAE_PROBE] = { .p = b->probe, .pitch = latent },
                                             [HL_VAE_BETA] = { .p = b->beta, .pitch = 1 },
                                             [HL_VAE_WEIGHT] = { .p = b->weight, .pitch = 1 } };
    CHECK_OK(ctx, hl_vae_loss_run(l, b->rows, input, b->term));
    for (size_t i = 0; i < b->rows; i++) {
        double ratio = b->term[HL_VAE_LOG_PZ][i] - b->term[HL_VAE_LOG_Q0][i] + b->term[HL_VAE_LOG_DET][i];
        sum -= b->weight[i] * (b->term[HL_VAE_LOG_PX][i] + b->beta[i] * ratio);
    }
    return sum;
}

/* Along a random direction of each parameter by itself. */
static void check_gradient(hl_context *ctx, const hl_vae_spec *spec, size_t steps, bool frozen)
{
    hl_vae *v = small_vae(ctx, spec);
    hl_vae_loss *l;
    batch b = make_batch(v, 3);
    const double h = 1e-4;
    CHECK_OK(ctx, hl_vae_loss_create(v, steps, frozen, &l));
    loss_of(ctx, l, &b);
    double *gradient = test_calloc(v->params->size, sizeof *gradient);
    hl_params_read_gradients(v->params, gradient);
    for (size_t i = 0, at = 0; i < v->params->count; at += v->params->param[i++].size) {
        const hl_net_param *p = &v->params->param[i];
        double *w = p->values, *direction = test_calloc(p->size, 2 * sizeof *direction), *start = direction + p->size;
        double along = 0, end[4];
        bool trained = !frozen || (i >= v->part[HL_VAE_HEADS] && i < v->part[HL_VAE_DECODER]);
        memcpy(start, w, p->size * sizeof *w);
        hl_random_normals(4, i, 0, p->size, direction);
        bool masked = v->deviation[i] < 0 && strstr(p->name, "weight"); /* what a mask excludes must stay 0 */
        for (size_t k = 0; k < p->size; k++)
            direction[k] = masked && w[k] == 0 ? 0 : direction[k];
        for (size_t k = 0; k < p->size; k++)
            along += gradient[at + k] * direction[k];
        for (int n = 0; n < 4; n++) {
            for (size_t k = 0; k < p->size; k++)
                w[k] = start[k] + (double[]){ -2, -1, 1, 2 }[n] * h * direction[k];
            end[n] = loss_of(ctx, l, &b);
        }
        memcpy(w, start, p->size * sizeof *w);
        double difference = (8 * (end[2] - end[1]) - (end[3] - end[0])) / (12 * h);
        char label[120];
        snprintf(label, sizeof label, "%s, %s: %s", spec->posterior, spec->net, p->name);
        CHECK_NEAR(along, trained ? difference : 0, 1e-6 * (1 + fabs(difference)), label);
        test_free(direction);
    }
    test_free(gradient);
    free_batch(&b);
    hl_vae_loss_free(l);
    hl_vae_free(v);
}

static void test_gradients(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (size_t i = 0; hl_vae_posteriors()[i]; i++)
        for (int variant = 0; variant < 3; variant++) {
            hl_vae_spec s = posterior_spec(hl_vae_posteriors()[i]);
            s.trace = variant == 1 ? "hutchinson" : "exact";
            s.likelihood = variant == 2 ? "gaussian" : "bernoulli";
            if (variant != 1 || i >= 4)
                check_gradient(ctx, &s, 2, variant == 2);
            s.code = "weights";
            if (strcmp(s.posterior, "hollow") == 0)
                check_gradient(ctx, &s, 2, variant == 2);
        }
    for (size_t i = 0; i < 4; i++) {
        hl_vae_spec s = {
            .image = { 2, 7, 5 }, .net = hl_vae_nets()[i], .latent = 3, .dtype = HL_F64, .posterior = "vae"
        };
        if (strcmp(s.net, "paper") == 0) /* as all convolutional ones, and long */
            s.image[0] = 1, s.image[1] = s.image[2] = 4;
        check_gradient(ctx, &s, 1, false);
    }
    test_context_free(ctx, NULL);
}

/* ---- log |det| ---- */

static double log_abs_det(double *a, size_t n)
{
    double sum = 0;
    for (size_t c = 0; c < n; c++) {
        size_t pivot = c;
        for (size_t r = c; r < n; r++)
            pivot = fabs(a[r * n + c]) > fabs(a[pivot * n + c]) ? r : pivot;
        for (size_t k = 0; k < n; k++) {
            double swap = a[c * n + k];
            a[c * n + k] = a[pivot * n + k];
            a[pivot * n + k] = swap;
        }
        sum += log(fabs(a[c * n + c]));
        for (size_t r = c + 1; r < n; r++)
            for (size_t k = n; k-- > c;)
                a[r * n + k] -= a[r * n + c] / a[c * n + c] * a[c * n + k];
    }
    return sum;
}

enum { D = 4, ROWS = 3 };

/* z, log |det| and the Jacobian dz/dz0 by D exact derivatives. */
static void check_log_det(hl_context *ctx, const char *posterior, const char *code, size_t steps, double tolerance)
{
    hl_vae_spec s = posterior_spec(posterior);
    s.trace = "exact";
    s.code = code;
    hl_vae *v = small_vae(ctx, &s);
    hl_graph *g;
    hl_vae_builder b;
    hl_vae_pieces p;
    hl_node out[1 + D], log_q0, seed[D];
    hl_plan *plan;
    double x[ROWS * 5], noise[ROWS * D], log_det[ROWS], column[D][ROWS * D];
    CHECK_OK(ctx, hl_graph_create(ctx, &g));
    CHECK_OK(ctx, hl_vae_builder_init(&b, v, g));
    hl_node in = hl_input(g, "x", 1, &v->dim), e = hl_input(g, "noise", 1, &s.latent);
    hl_vae_build_pieces(&b, in, &p);
    hl_node z0 = hl_vae_build_start(&b, &p, e, &log_q0);
    hl_node z = hl_vae_build_flow(&b, &p, z0, HL_NONE, steps, &out[0]);
    for (size_t i = 0; i < D; i++) {
        double unit[D] = { 0 };
        unit[i] = 1;
        seed[i] = hl_add(g, hl_const_array(g, 1, &s.latent, unit), hl_scale(g, 1e-300, e));
        CHECK_OK(ctx, hl_jet(g, 1, 1, &z0, &seed[i], NULL, 1, &z, &out[1 + i]));
    }
    hl_status status = hl_plan_create(ctx, g, 1 + D, out, &(hl_plan_options){ .dtype = HL_F64 }, &plan);
    CHECK_OK(ctx, status);
    fill_uniform_f64(x, ROWS * 5, 0, 1, 3);
    hl_random_normals(8, 0, 0, ROWS * D, noise);
    CHECK_OK(ctx, hl_plan_run(plan, ROWS, (const void *[]){ x, noise }, hl_params_values(v->params),
                              (void *[]){ log_det, column[0], column[1], column[2], column[3] }));
    for (size_t r = 0; r < ROWS; r++) {
        double jacobian[D * D];
        for (size_t i = 0; i < D; i++)
            for (size_t k = 0; k < D; k++)
                jacobian[k * D + i] = column[i][r * D + k];
        CHECK_NEAR(log_det[r], log_abs_det(jacobian, D), tolerance, posterior);
        CHECK(fabs(log_det[r]) > 1e-3, "there is something to see");
    }
    hl_plan_free(plan);
    hl_vae_builder_free(&b);
    hl_graph_free(g);
    hl_vae_free(v);
}

static void test_log_det(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    check_log_det(ctx, "planar", NULL, 0, 1e-10);
    check_log_det(ctx, "iaf", NULL, 0, 1e-10);
    check_log_det(ctx, "sylvester", NULL, 0, 1e-10);
    check_log_det(ctx, "ffjord", NULL, 16, 1e-6);
    check_log_det(ctx, "hollow", "weights", 16, 1e-6);
    check_log_det(ctx, "hollow", "input", 16, 1e-6);
    test_context_free(ctx, NULL);
}

/* The trace of a hollow field, whose weights the code changes, against D exact derivatives; and the code matters. */
static void test_trace(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (int layers = -1; layers <= 3; layers += layers < 0 ? 2 : 1) {
        hl_vae_spec s = posterior_spec("hollow");
        s.layers = layers;
        s.code = "weights";
        hl_vae *v = small_vae(ctx, &s);
        hl_graph *g;
        hl_vae_builder b;
        hl_vae_pieces p;
        hl_node out[2 + D], trace, jacobian[D];
        hl_plan *plan;
        double x[ROWS * 5], z[ROWS * D], field[ROWS * D], result[ROWS], column[D][ROWS * D];
        CHECK_OK(ctx, hl_graph_create(ctx, &g));
        CHECK_OK(ctx, hl_vae_builder_init(&b, v, g));
        hl_vae_build_pieces(&b, hl_input(g, "x", 1, &v->dim), &p);
        hl_node at = hl_input(g, "z", 1, &s.latent);
        out[0] = hl_vae_build_field(&b, &p, at, HL_NONE, hl_const(g, 0.3), &trace);
        out[1] = trace;
        for (size_t i = 0; i < D; i++) {
            double unit[D] = { 0 };
            unit[i] = 1;
            hl_node seed = hl_add(g, hl_const_array(g, 1, &s.latent, unit), hl_scale(g, 1e-300, at));
            CHECK_OK(ctx, hl_jet(g, 1, 1, &at, &seed, NULL, 1, &out[0], &jacobian[i]));
            out[2 + i] = jacobian[i];
        }
        CHECK_OK(ctx, hl_plan_create(ctx, g, 2 + D, out, &(hl_plan_options){ .dtype = HL_F64 }, &plan));
        fill_uniform_f64(x, ROWS * 5, 0, 1, 3);
        hl_random_normals(8, 0, 0, ROWS * D, z);
        memcpy(z + D, z, D * sizeof *z); /* the second row differs from the first in its code only */
        CHECK_OK(ctx, hl_plan_run(plan, ROWS, (const void *[]){ x, z }, hl_params_values(v->params),
                                  (void *[]){ field, result, column[0], column[1], column[2], column[3] }));
        for (size_t r = 0; r < ROWS; r++) {
            double sum = 0, off = 0;
            for (size_t i = 0; i < D; i++) {
                sum += column[i][r * D + i];
                off += fabs(column[i][r * D + (i + 1) % D]);
            }
            CHECK_NEAR(result[r], sum, 1e-12, "trace");
            CHECK(fabs(sum) > 1e-4 && off > 1e-6, "there is something to see");
        }
        CHECK(fabs(result[0] - result[1]) > 1e-6, "the code changes the trace");
        hl_plan_free(plan);
        hl_vae_builder_free(&b);
        hl_graph_free(g);
        hl_vae_free(v);
    }
    test_context_free(ctx, NULL);
}

/* ---- sizes, names ---- */

static void test_spec(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    hl_vae *v;
    (void)state;
    hl_vae_spec paper = { .image = { 1, 28, 28 }, .net = "paper" };
    CHECK_OK(ctx, hl_vae_declare(ctx, &paper, &v));
    assert_int_equal(v->params->size, 3067105); /* the published network */
    hl_vae_free(v);
    const struct {
        hl_vae_spec spec;
        const char *message;
    } bad[] = {
        { { .dim = 0 }, "0 values" },
        { { .image = { 1, 28, 0 } }, "no pixels" },
        { { .image = { 1, 2, 2 }, .dim = 5 }, "4 pixels" },
        { { .dim = 9, .net = "small" }, "needs images" },
        { { .image = { 1, 3, 9 }, .net = "mid" }, "4 x 4" },
        { { .dim = 3, .net = "huge" }, "unknown net 'huge'; use one of fc, small, mid, paper, linear" },
        { { .dim = 3, .posterior = "glow" }, "use one of vae, planar, iaf, sylvester, ffjord, hollow" },
        { { .dim = 3, .likelihood = "poisson" }, "bernoulli, gaussian" },
        { { .dim = 3, .trace = "brute" }, "exact, hutchinson" },
        { { .dim = 3, .code = "both" }, "unknown code 'both'; use one of input, weights" },
        { { .dim = 3, .latent = 5000 }, "at most 4096" },
        { { .dim = 3, .latent = 2, .columns = 3, .posterior = "sylvester" }, "columns is 3" },
        { { .dim = 3, .layers = 9 }, "layers is 9" },
        { { .dim = 3, .features = 3 }, "even" },
        { { .dim = 3, .latent = 65, .posterior = "ffjord", .trace = "exact" }, "limited to 64" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK_STATUS(ctx, hl_vae_create(ctx, &bad[i].spec, &v), HL_ERR_INVALID);
        CHECK(strstr(hl_context_message(ctx), bad[i].message), hl_context_message(ctx));
        assert_null(v);
    }
    CHECK_STATUS(ctx, hl_vae_create(ctx, NULL, &v), HL_ERR_INVALID);
    hl_vae_free(NULL);
    hl_vae_spec one = { .dim = 3, .net = "linear" };
    CHECK_OK(ctx, hl_vae_create(ctx, &one, &v));
    assert_string_equal(hl_vae_describe(v).posterior, "vae");
    assert_int_equal(hl_vae_describe(v).latent, 3);
    CHECK_STATUS(ctx, hl_vae_set_steps(v, 4097), HL_ERR_INVALID);
    hl_vae_free(v);
    test_context_free(ctx, NULL);
}

/* ---- files ---- */

static void test_files(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    const char *path = "test_vae.hollow";
    unsigned char *bits = random_bits(6 * 5, 1);
    hl_vae_rows rows = { .rows = 6, .bytes = bits };
    (void)state;
    for (size_t i = 0; hl_vae_posteriors()[i]; i++) {
        hl_vae_spec s = posterior_spec(hl_vae_posteriors()[i]);
        s.dtype = i % 2 ? HL_F32 : HL_F64;
        s.code = "weights";
        s.trace = "exact";
        hl_vae *v = small_vae(ctx, &s), *w;
        hl_vae_result a, b;
        CHECK_OK(ctx, hl_vae_set_steps(v, 3));
        CHECK_OK(ctx, hl_vae_save(v, path));
        CHECK_OK(ctx, hl_vae_load(ctx, path, &w));
        CHECK_OK(ctx, hl_vae_evaluate(v, &rows, NULL, NULL, &a));
        CHECK_OK(ctx, hl_vae_evaluate(w, &rows, NULL, NULL, &b));
        assert_memory_equal(&a.elbo, &b.elbo, sizeof a.elbo);
        assert_string_equal(hl_vae_describe(w).posterior, s.posterior);
        assert_int_equal(hl_vae_describe(w).steps, 3);
        hl_vae_free(w);
        hl_vae_free(v);
    }
    FILE *f = fopen(path, "rb"); /* every prefix and many wrong bytes: an error, or a model that is sound */
    assert_non_null(f);
    static char data[1 << 16];
    size_t size = fread(data, 1, sizeof data, f);
    fclose(f);
    forget_checksum(data, size);
    for (size_t n = 0; n < 400; n++) {
        hl_vae *w;
        size_t keep = n < 40 ? n * size / 40 : size, at = (size_t)(hl_random_uniform(3, 1, n) * 900);
        char old = data[at];
        data[at] = n < 40 ? old : (char)hl_random_bits(3, 2, n);
        f = fopen(path, "wb");
        fwrite(data, 1, keep, f);
        fclose(f);
        data[at] = old;
        hl_status status = hl_vae_load(ctx, path, &w);
        if (n < 40)
            CHECK(status != HL_OK && !w, "a truncated file");
        hl_vae_free(w);
    }
    remove(path);
    hl_vae *w;
    CHECK_STATUS(ctx, hl_vae_load(ctx, path, &w), HL_ERR_IO);
    test_free(bits);
    test_context_free(ctx, NULL);
}

/* A file from before the code could change weights. */
static void test_old_file(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    static char data[1 << 16];
    size_t size;
    hl_vae *w;
    (void)state;
    hl_vae_spec s = posterior_spec("hollow");
    s.code = "input";
    hl_vae *v = small_vae(ctx, &s);
    CHECK_OK(ctx, hl_vae_write(v, data, sizeof data, &size));
    assert_true(size <= sizeof data);
    bool found = false;
    for (size_t i = 0; i + 4 < size; i++)
        if (memcmp(data + i, "code", 4) == 0 && memcmp(data + i + 4, "\\\":\\\"input", 9) == 0) {
            memcpy(data + i, "none", 4);
            found = true;
        }
    CHECK(found, "the entry is there");
    forget_checksum(data, size);
    CHECK_OK(ctx, hl_vae_read(ctx, data, size, &w));
    assert_string_equal(hl_vae_describe(w).code, "input");
    assert_int_equal(hl_params_size(hl_vae_params(w)), hl_params_size(hl_vae_params(v)));
    hl_vae_free(w);
    hl_vae_free(v);
    test_context_free(ctx, NULL);
}

/* Another file of hollow, and a hollow field with weights where its mask has none. */
static void test_foreign(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    const char *path = "test_vae_foreign.hollow";
    hl_net *net;
    hl_vae *v, *w;
    (void)state;
    CHECK_OK(ctx, hl_net_create(ctx, &(hl_net_spec){ .dim = 2 }, &net));
    CHECK_OK(ctx, hl_net_save(net, path));
    CHECK_STATUS(ctx, hl_vae_load(ctx, path, &w), HL_ERR_FORMAT);
    CHECK(strstr(hl_context_message(ctx), "not an autoencoder"), hl_context_message(ctx));
    hl_net_free(net);
    hl_vae_spec s = posterior_spec("hollow");
    v = small_vae(ctx, &s);
    double *weights = values_of(v, "conditioner.forward.0.weight");
    weights[D - 1] = 1; /* the first unit of the forward network does not see the last column */
    CHECK_OK(ctx, hl_vae_save(v, path));
    CHECK_STATUS(ctx, hl_vae_load(ctx, path, &w), HL_ERR_FORMAT);
    weights[0] = NAN;
    CHECK_STATUS(ctx, hl_vae_save(v, path), HL_ERR_NOT_FINITE);
    remove(path);
    hl_vae_free(v);
    test_context_free(ctx, NULL);
}

/* Encoder and decoder of another autoencoder; the rest stays. */
static void test_copy(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    hl_vae_spec a = { .dim = 4, .net = "fc", .latent = 2, .dtype = HL_F64 }, b = a;
    (void)state;
    b.posterior = "planar";
    hl_vae *v = small_vae(ctx, &a), *w = small_vae(ctx, &b);
    CHECK_OK(ctx, hl_vae_init(w, 99));
    double before = values_of(w, "head.mean.weight")[3];
    CHECK_OK(ctx, hl_vae_copy_networks(w, v));
    CHECK_NEAR(values_of(w, "decoder.2.weight")[5], values_of(v, "decoder.2.weight")[5], 0, "decoder");
    CHECK_NEAR(values_of(w, "encoder.1.weight")[5], values_of(v, "encoder.1.weight")[5], 0, "encoder");
    CHECK_NEAR(values_of(w, "head.mean.weight")[3], before, 0, "heads stay");
    hl_vae_free(w);
    b.latent = 3;
    w = small_vae(ctx, &b);
    CHECK_STATUS(ctx, hl_vae_copy_networks(w, v), HL_ERR_INVALID);
    hl_vae_free(v);
    hl_vae_free(w);
    test_context_free(ctx, NULL);
}

static hl_status all_of_it(hl_context *ctx, void *user)
{
    hl_vae_spec s = posterior_spec(user);
    s.code = "weights";
    hl_vae *v = NULL, *w = NULL;
    hl_vae_loss *l = NULL;
    static const unsigned char bits[10] = { 1, 0, 0, 1, 1, 0, 1, 0, 0, 0 };
    double mean[10];
    hl_status status = hl_vae_create(ctx, &s, &v);
    if (status == HL_OK)
        status = hl_vae_init(v, 1);
    if (status == HL_OK)
        status = hl_vae_loss_create(v, 1, false, &l);
    if (status == HL_OK)
        status = hl_vae_evaluate(v, &(hl_vae_rows){ .rows = 2, .bytes = bits },
                                 &(hl_vae_eval_options){ .chunk = 3, .allow_biased = 1, .importance = 2 }, NULL, NULL);
    if (status == HL_OK)
        status = hl_vae_sample(v, 2, 1, NULL, mean);
    if (status == HL_OK)
        status = hl_vae_save(v, "test_vae_alloc.hollow");
    if (status == HL_OK)
        status = hl_vae_load(ctx, "test_vae_alloc.hollow", &w);
    hl_vae_loss_free(l);
    hl_vae_free(w);
    hl_vae_free(v);
    return status;
}

static void test_allocations(void **state)
{
    (void)state;
    check_every_allocation(1, all_of_it, (void *)(uintptr_t) "iaf");
    check_every_allocation(1, all_of_it, (void *)(uintptr_t) "hollow");
    remove("test_vae_alloc.hollow");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradients), cmocka_unit_test(test_log_det),  cmocka_unit_test(test_spec),
        cmocka_unit_test(test_trace),     cmocka_unit_test(test_old_file), cmocka_unit_test(test_files),
        cmocka_unit_test(test_foreign),   cmocka_unit_test(test_copy),     cmocka_unit_test(test_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
