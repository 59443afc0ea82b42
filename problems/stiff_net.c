/* stiff_net.c - see stiff_net.h. */
#include "stiff_net.h"

#include <math.h>
#include <string.h>

#include "numbers.h"
#include "program/program.h"

enum { D = STIFF_NET_DIM, ROWS = STIFF_NET_ROWS, SIZE = STIFF_NET_SIZE };
enum { POINTS = 20, POWERS = 50 }; /* of the power method */

static hl_net_param find(const hl_net *net, const char *name)
{
    hl_net_param p = { 0 };
    for (size_t i = 0; i < hl_net_param_count(net); i++)
        if (hl_net_param_get(net, i, &p) == HL_OK && strcmp(p.name, name) == 0)
            return p;
    return (hl_net_param){ 0 };
}

static void multiply(const hl_net *net, const char *name, double factor)
{
    hl_dtype dtype = hl_net_describe(net).dtype;
    hl_net_param p = find(net, name);
    for (size_t i = 0; i < p.size; i++)
        numbers_set(dtype, p.values, i, factor * numbers_get(dtype, p.values, i));
}

/* ---- stiffness and coupling ---- */

void stiff_net_weights(const hl_net *net, double kappa, uint64_t seed)
{
    hl_dtype dtype = hl_net_describe(net).dtype;
    hl_net_param u = find(net, "transformer.0.weight_x"), v = find(net, "transformer.1.weight");
    double total = 0;
    for (size_t k = 0; k < u.size; k++) {
        double in = .5 + fabs(hl_random_normal(seed + 1, 0, k)) / 2, out = -fabs(hl_random_normal(seed + 2, 0, k));
        numbers_set(dtype, u.values, k, in);
        numbers_set(dtype, v.values, k, out);
        total -= in * out;
    }
    multiply(net, "transformer.1.weight", kappa / total);
}

/* The median of (off-diagonal row sum) / |diagonal| at x0. */
static double coupling(const stiff_net *s)
{
    static const size_t index[ROWS] = { 0, 1, 2, 3, 4, 5, 6, 7 };
    static const double t[ROWS];
    double diagonal[SIZE], sum[SIZE] = { 0 }, v[SIZE], jv[SIZE];
    hl_rows at = { ROWS, index, t, s->x0 };
    s->rows.diagonal(s->rows.user, &at, NULL, diagonal);
    for (size_t j = 0; j < D; j++) {
        for (size_t i = 0; i < SIZE; i++)
            v[i] = i % D == j;
        s->rows.jvp(s->rows.user, &at, v, jv);
        for (size_t i = 0; i < SIZE; i++)
            sum[i] += i % D == j ? 0 : fabs(jv[i]) / fabs(diagonal[i]);
    }
    return numbers_median(sum, SIZE);
}

/* The coupling grows with s, from 0. */
static void set_coupling(const stiff_net *s, double c)
{
    double low = 0, high = 64, now = 1;
    for (int step = 0; step < 24; step++) {
        double middle = (low + high) / 2;
        multiply(s->net, "transformer.0.weight_h", middle / now);
        now = middle;
        if (coupling(s) > c)
            high = middle;
        else
            low = middle;
    }
}

double stiff_net_lipschitz(const stiff_net *s)
{
    static const size_t index[1];
    static const double t[1];
    double largest = 0, x[D], v[D], jv[D], norm = 0;
    for (uint64_t point = 0; point < POINTS; point++) {
        hl_rows at = { 1, index, t, x };
        for (size_t i = 0; i < D; i++) {
            x[i] = hl_random_normal(1000 + point, 0, i);
            v[i] = hl_random_normal(2000 + point, 0, i);
        }
        for (int step = 0; step < POWERS; step++) {
            norm = 0;
            for (int i = 0; i < D; i++)
                norm += v[i] * v[i];
            for (int i = 0; i < D; i++)
                v[i] /= sqrt(norm);
            s->rows.jvp(s->rows.user, &at, v, jv);
            s->rows.vjp(s->rows.user, &at, jv, v, NULL);
        }
        largest = fmax(largest, sqrt(sqrt(norm)));
    }
    return largest;
}

void stiff_net_scale(stiff_net *s, double factor)
{
    multiply(s->net, "transformer.1.weight", factor);
    multiply(s->net, "transformer.1.bias", factor);
}

/* ---- all rows as one ---- */

static int flat_rhs(void *user, const hl_rows *at, double *dy)
{
    static const size_t index[ROWS] = { 0, 1, 2, 3, 4, 5, 6, 7 };
    const stiff_net *s = user;
    double t[ROWS];
    for (size_t r = 0; r < at->count; r++) {
        for (size_t i = 0; i < ROWS; i++)
            t[i] = at->t[r];
        hl_rows rows = { ROWS, index, t, at->y + r * SIZE };
        int value = s->rows.rhs(s->rows.user, &rows, dy + r * SIZE);
        if (value)
            return value;
    }
    return 0;
}

hl_status stiff_net_create(stiff_net *s, hl_context *ctx, double kappa, double c, uint64_t seed, hl_dtype dtype)
{
    hl_net_spec spec = { .dim = D, .hidden = 64, .features = 16, .layers = 1, .width = 32, .dtype = dtype };
    memset(s, 0, sizeof *s);
    hl_status status = hl_net_create(ctx, &spec, &s->net);
    if (status == HL_OK)
        status = hl_net_init(s->net, seed);
    if (status == HL_OK)
        status = hl_field_create(s->net, ROWS, &s->field);
    if (status != HL_OK)
        return status;
    s->rows = hl_field_system(s->field);
    s->flat = (hl_system){ .n = SIZE, .rhs = flat_rhs, .rounding = s->rows.rounding, .user = s };
    for (size_t i = 0; i < SIZE; i++)
        s->x0[i] = hl_random_normal(seed + 3, 0, i);
    if (kappa > 0) {
        stiff_net_weights(s->net, kappa, seed);
        set_coupling(s, c);
    }
    return HL_OK;
}

void stiff_net_free(stiff_net *s)
{
    hl_field_free(s->field);
    hl_net_free(s->net);
    s->field = NULL;
    s->net = NULL;
}
