/* net_support.h - what the tests of networks share: a network with generic weights and a batch of rows, and all results of a
 * call in one array. */
#ifndef HL_TESTS_NET_SUPPORT_H
#define HL_TESTS_NET_SUPPORT_H

#include "support.h"

#include <stdio.h>

#include "hollow/net.h"

enum { MAX_PIECES = 128, TOP = 8 /* highest order */ };

/* The n-th name of a list that ends with NULL, in turn. */
static inline size_t name_count(const char *const *names)
{
    size_t count = 0;
    while (names[count])
        count++;
    return count;
}

static inline const char *name_of(const char *const *names, size_t n)
{
    return names[n % name_count(names)];
}

/* What a network may be: the n-th of each kind, in turn. */
static inline const char *activation(size_t n)
{
    return name_of(hl_net_activations(), n);
}

static inline const char *transformer(size_t n)
{
    return n % 2 ? "per-dimension" : "shared";
}

static inline int depth(size_t n)
{
    return (int[]){ -1, 1, 2, 3 }[n % 4];
}

/* ---- a network with generic weights, and a batch ---- */

typedef struct setup {
    hl_context *ctx;
    hl_net *net;
    hl_net_spec spec; /* defaults filled in */
    size_t rows, params;
    void *x, *t, *context;
    char label[160];
} setup;

static inline void set(hl_dtype dtype, void *values, size_t at, double v)
{
    if (dtype == HL_F32)
        ((float *)values)[at] = (float)v;
    else
        ((double *)values)[at] = v;
}

static inline double get(hl_dtype dtype, const void *values, size_t at)
{
    return dtype == HL_F32 ? (double)((const float *)values)[at] : ((const double *)values)[at];
}

static inline void *normals(hl_dtype dtype, size_t count, uint64_t seed)
{
    void *values = test_malloc((count + 1) * hl_dtype_size(dtype));
    for (size_t i = 0; i < count; i++)
        set(dtype, values, i, hl_random_normal(seed, 0, i));
    return values;
}

static inline hl_net_param param(const hl_net *net, size_t i)
{
    hl_net_param p;
    assert_int_equal(hl_net_param_get(net, i, &p), HL_OK);
    return p;
}

static inline hl_net_param param_named(const hl_net *net, const char *name)
{
    for (size_t i = 0; i < hl_net_param_count(net); i++)
        if (strcmp(param(net, i).name, name) == 0)
            return param(net, i);
    fail_msg("no parameter '%s'", name);
    return (hl_net_param){ 0 };
}

static inline void check_message(const hl_context *ctx, const char *fragment)
{
    if (!strstr(hl_context_message(ctx), fragment))
        fail_msg("\"%s\" does not contain \"%s\"", hl_context_message(ctx), fragment);
}

static inline hl_net *make_net(hl_context *ctx, const hl_net_spec *spec)
{
    hl_net *net;
    CHECK_OK(ctx, hl_net_create(ctx, spec, &net));
    CHECK_OK(ctx, hl_net_init(net, 5));
    return net;
}

/* Random weights, and biases that are not zero. */
static inline void randomise(const setup *s, uint64_t seed)
{
    CHECK_OK(s->ctx, hl_net_init(s->net, seed));
    for (size_t i = 0; i < s->params; i++) {
        hl_net_param p = param(s->net, i);
        for (size_t k = 0; strstr(p.name, ".bias") && k < p.size; k++)
            set(s->spec.dtype, p.values, k, 0.4 * hl_random_normal(seed, 1000 + i, k));
    }
}

static inline setup make(hl_context *ctx, const hl_net_spec *spec, size_t rows)
{
    setup s = { .ctx = ctx, .rows = rows };
    CHECK_OK(ctx, hl_net_create(ctx, spec, &s.net));
    s.spec = hl_net_describe(s.net);
    s.params = hl_net_param_count(s.net);
    randomise(&s, 7);
    s.x = normals(s.spec.dtype, rows * s.spec.dim, 11);
    s.t = s.spec.time ? normals(s.spec.dtype, rows, 12) : NULL;
    s.context = s.spec.context ? normals(s.spec.dtype, rows * s.spec.context, 13) : NULL;
    snprintf(s.label, sizeof s.label, "%s d=%zu %s %s conditioner %d transformer %d %s time %d context %zu, %zu rows",
             hl_dtype_name(s.spec.dtype), s.spec.dim, s.spec.transformer, s.spec.conditioner, s.spec.hidden_layers,
             s.spec.layers, s.spec.activation, s.spec.time, s.spec.context, rows);
    return s;
}

static inline void drop(setup *s)
{
    test_free(s->x);
    if (s->t)
        test_free(s->t);
    if (s->context)
        test_free(s->context);
    hl_net_free(s->net);
}

static inline hl_operator *compile(const setup *s, int order, hl_diff_mode mode)
{
    hl_operator *op;
    hl_operator_options options = { .order = order, .mode = mode };
    CHECK_OK(s->ctx, hl_operator_create(s->net, &options, &op));
    return op;
}

/* ---- bundles: all results of a call in one array ---- */

typedef struct bundle {
    hl_dtype dtype;
    size_t pieces, total;
    struct {
        char name[64];
        size_t at, size;
    } piece[MAX_PIECES];
    void *data;
} bundle;

static inline void add_piece(bundle *b, const char *name, size_t size)
{
    assert_in_range(b->pieces, 0, MAX_PIECES - 1);
    snprintf(b->piece[b->pieces].name, sizeof b->piece[0].name, "%s", name);
    b->piece[b->pieces].at = b->total;
    b->piece[b->pieces++].size = size;
    b->total += size;
}

static inline void *piece(const bundle *b, size_t i)
{
    return (char *)b->data + b->piece[i].at * hl_dtype_size(b->dtype);
}

/* f, D^1 .. D^order, divergence: piece k is D^k. Cotangents are laid out the same way. */
static inline bundle value_bundle(const setup *s, int order, uint64_t seed)
{
    bundle b = { .dtype = s->spec.dtype };
    char name[16] = "f";
    for (int k = 0; k <= order; k++) {
        add_piece(&b, name, s->rows * s->spec.dim);
        snprintf(name, sizeof name, "D^%d", k + 1);
    }
    if (order)
        add_piece(&b, "divergence", s->rows);
    b.data = normals(b.dtype, b.total, seed);
    return b;
}

/* To x, t, context, parameters: parameter i is piece 3 + i. */
static inline bundle gradient_bundle(const setup *s)
{
    bundle b = { .dtype = s->spec.dtype };
    add_piece(&b, "x", s->rows * s->spec.dim);
    add_piece(&b, "t", s->t ? s->rows : 0);
    add_piece(&b, "context", s->rows * s->spec.context);
    for (size_t i = 0; i < s->params; i++)
        add_piece(&b, param(s->net, i).name, param(s->net, i).size);
    b.data = normals(b.dtype, b.total, 99); /* whoever is to fill it must overwrite it */
    return b;
}

static inline bundle evaluate(const setup *s, hl_operator *op, int order)
{
    bundle b = value_bundle(s, order, 98);
    void *d[TOP * 4];
    for (int k = 1; k <= order; k++)
        d[k - 1] = piece(&b, (size_t)k);
    CHECK_OK(s->ctx, hl_operator_eval(op, s->rows, s->x, s->t, s->context, piece(&b, 0), order ? d : NULL,
                                      order ? piece(&b, (size_t)order + 1) : NULL));
    return b;
}

static inline bundle gradient(const setup *s, hl_operator *op, int order, const bundle *cotangent)
{
    bundle b = gradient_bundle(s);
    const void *gd[TOP];
    void *gparam[MAX_PIECES];
    for (int k = 1; k <= order; k++)
        gd[k - 1] = piece(cotangent, (size_t)k);
    for (size_t i = 0; i < s->params; i++)
        gparam[i] = piece(&b, 3 + i);
    CHECK_OK(s->ctx, hl_operator_vjp(op, s->rows, s->x, s->t, s->context, piece(cotangent, 0), order ? gd : NULL,
                                     order ? piece(cotangent, (size_t)order + 1) : NULL, piece(&b, 0), piece(&b, 1),
                                     piece(&b, 2), gparam));
    return b;
}

/* Largest error of a piece relative to its largest value, or to `floor` times the largest value of all pieces. */
static inline void check_close(const setup *s, const bundle *a, const bundle *b, double tolerance, double floor)
{
    double largest = 0;
    assert_int_equal(a->total, b->total);
    for (size_t i = 0; i < b->total; i++)
        largest = fmax(largest, fabs(get(b->dtype, b->data, i)));
    for (size_t p = 0; p < a->pieces; p++) {
        double error = 0, scale = floor * largest;
        char label[256];
        for (size_t i = a->piece[p].at; i < a->piece[p].at + a->piece[p].size; i++) {
            double expected = get(b->dtype, b->data, i), e = fabs(get(a->dtype, a->data, i) - expected);
            error = e <= error ? error : e; /* takes a NaN and keeps it */
            scale = fmax(scale, fabs(expected));
        }
        snprintf(label, sizeof label, "%s: %s", s->label, a->piece[p].name);
        CHECK_LE(error, tolerance * scale, label);
    }
}

static inline void check_bits(const setup *s, const bundle *a, const bundle *b, const char *what)
{
    assert_int_equal(a->total, b->total);
    for (size_t p = 0; p < a->pieces; p++)
        if (memcmp(piece(a, p), piece(b, p), a->piece[p].size * hl_dtype_size(a->dtype)) != 0)
            fail_msg("%s: %s: %s differs in its bits", s->label, what, a->piece[p].name);
}

static inline void drop_bundle(bundle *b)
{
    test_free(b->data);
}

#endif
