/* density.c - density models: columns in the units of the data around a flow between standardised columns and the base.
 *
 * A model's file is a table of tensors; its metadata are
 *
 *   format        "hollow-density 1"
 *   kind, flows   of the flow
 *   architecture  of its first network, as in a network's file
 *   columns       [{"name": "x1", "mean": 0.1, "deviation": 2}, ...], first those of x, then those of the context
 *   solver        {"method": "dopri5", "rtol": 1e-05, "atol": 1e-05}
 *   dtype         "f32" or "f64"
 *   note          any text
 *
 * and the parameters of network i are called "i.name". A tensor "factor", of dim x dim doubles, is there if the standardised
 * columns are this lower triangular matrix times what the flow sees. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "flow/flow.h"
#include "hollow/density.h"
#include "io/file.h"
#include "nn/model.h"

enum { CHUNK = 2048, NAME = 256, STREAM_BASE = 11 };
static const char format_text[] = "hollow-density 1";

typedef struct column {
    char name[NAME];
    double mean, deviation;
} column;

struct hl_density {
    hl_context *ctx;
    hl_flow *flow;
    size_t dim, context;
    column *column; /* [dim + context] */
    hl_flow_solver solver;
    char method[32]; /* of the solver */
    char *note;
    double *factor; /* L, dim x dim, or NULL */
    double *x, *c;  /* a chunk */
};

/* ---- creation ---- */

static hl_status check_column(hl_context *ctx, const hl_density_column *c, size_t index)
{
    if (!c->name || strlen(c->name) >= NAME)
        return hl_fail(ctx, HL_ERR_INVALID, "column %zu has no name, or one of %d bytes or more", index + 1, NAME);
    if (!hl_is_utf8(c->name))
        return hl_fail(ctx, HL_ERR_INVALID, "the name of column %zu is not UTF-8", index + 1);
    if (!isfinite(c->mean) || !isfinite(c->deviation) || !(c->deviation > 0))
        return hl_fail(ctx, HL_ERR_INVALID,
                       "column '%.60s': mean %g, deviation %g; they must be finite, and the deviation positive",
                       c->name, c->mean, c->deviation);
    return HL_OK;
}

static hl_status make_density(hl_density *m, const hl_flow_spec *flow, const hl_density_column *columns)
{
    hl_status status = hl_flow_create(m->ctx, flow, &m->flow);
    if (status != HL_OK)
        return status;
    m->dim = m->flow->dim;
    m->context = m->flow->context;
    m->column = hl_calloc(m->ctx, m->dim + m->context, sizeof *m->column);
    m->x = hl_calloc(m->ctx, hl_size_mul(CHUNK, m->dim), sizeof *m->x);
    m->c = hl_calloc(m->ctx, hl_size_mul(CHUNK, m->context + 1), sizeof *m->c);
    if (!m->column || !m->x || !m->c)
        return HL_ERR_NOMEM;
    for (size_t i = 0; i < m->dim + m->context && status == HL_OK; i++) {
        status = check_column(m->ctx, &columns[i], i);
        if (status != HL_OK)
            break;
        snprintf(m->column[i].name, NAME, "%s", columns[i].name);
        m->column[i].mean = columns[i].mean;
        m->column[i].deviation = columns[i].deviation;
    }
    if (status == HL_OK)
        status = hl_density_set_note(m, "");
    return status == HL_OK ? hl_density_set_solver(m, NULL) : status;
}

hl_status hl_density_create(hl_context *ctx, const hl_flow_spec *flow, const hl_density_column *columns,
                            hl_density **out)
{
    if (!ctx)
        return HL_ERR_INVALID;
    if (!flow || !columns || !out)
        return hl_fail(ctx, HL_ERR_INVALID, "hl_density_create: the flow, the columns or the result is NULL");
    *out = NULL;
    hl_density *m = hl_calloc(ctx, 1, sizeof *m);
    if (!m)
        return HL_ERR_NOMEM;
    m->ctx = ctx;
    hl_status status = make_density(m, flow, columns);
    if (status != HL_OK) {
        hl_density_free(m);
        return status;
    }
    *out = m;
    return HL_OK;
}

void hl_density_free(hl_density *m)
{
    if (!m)
        return;
    hl_flow_free(m->flow);
    hl_free(m->ctx, m->column);
    hl_free(m->ctx, m->factor);
    hl_free(m->ctx, m->x);
    hl_free(m->ctx, m->c);
    hl_free(m->ctx, m->note);
    hl_free(m->ctx, m);
}

size_t hl_density_dim(const hl_density *m)
{
    return m ? m->dim : 0;
}

size_t hl_density_context(const hl_density *m)
{
    return m ? m->context : 0;
}

hl_density_column hl_density_get_column(const hl_density *m, size_t index)
{
    if (!m || index >= m->dim + m->context)
        return (hl_density_column){ 0 };
    const column *c = &m->column[index];
    return (hl_density_column){ c->name, c->mean, c->deviation };
}

hl_flow *hl_density_flow(const hl_density *m)
{
    return m ? m->flow : NULL;
}

hl_status hl_density_set_solver(hl_density *m, const hl_flow_solver *given)
{
    static const hl_flow_solver defaults;
    if (!m)
        return HL_ERR_INVALID;
    hl_flow_solver s = given ? *given : defaults;
    bool single = m->flow->net[0]->dtype == HL_F32;
    s.trace = HL_TRACE_EXACT;
    s.method = s.method ? s.method : "dopri5";
    s.rtol = s.rtol != 0 ? s.rtol : single ? 1e-5 : 1e-6;
    s.atol = s.atol != 0 ? s.atol : single ? 1e-5 : 1e-8;
    if (!(s.rtol > 0 && isfinite(s.rtol) && s.atol > 0 && isfinite(s.atol)))
        return hl_fail(m->ctx, HL_ERR_INVALID, "rtol is %g and atol %g; they must be positive, or 0 for the default",
                       s.rtol, s.atol);
    hl_status status = hl_flow_set_solver(m->flow, &s);
    if (status != HL_OK)
        return status;
    if (s.method != m->method) /* as it is when the model's own solver is given back with a change */
        snprintf(m->method, sizeof m->method, "%s", s.method);
    m->solver = s;
    m->solver.method = m->method;
    return HL_OK;
}

hl_flow_solver hl_density_solver(const hl_density *m)
{
    return m ? m->solver : (hl_flow_solver){ 0 };
}

hl_status hl_density_set_note(hl_density *m, const char *note)
{
    if (!m)
        return HL_ERR_INVALID;
    note = note ? note : "";
    char *copy = hl_alloc(m->ctx, strlen(note) + 1);
    if (!copy)
        return HL_ERR_NOMEM;
    strcpy(copy, note);
    hl_free(m->ctx, m->note);
    m->note = copy;
    return HL_OK;
}

const char *hl_density_note(const hl_density *m)
{
    return m ? m->note : "";
}

hl_status hl_density_set_factor(hl_density *m, const double *factor)
{
    if (!m)
        return HL_ERR_INVALID;
    size_t dim = m->dim;
    double *copy = factor ? hl_calloc(m->ctx, hl_size_mul(dim, dim), sizeof *copy) : NULL;
    if (factor && !copy)
        return HL_ERR_NOMEM;
    for (size_t i = 0; i < dim && factor; i++)
        for (size_t j = 0; j <= i; j++) {
            copy[i * dim + j] = factor[i * dim + j];
            if (isfinite(factor[i * dim + j]) && (j < i || factor[i * dim + i] > 0))
                continue;
            hl_free(m->ctx, copy);
            return hl_fail(
                m->ctx, HL_ERR_INVALID,
                "the factor of the columns has %g in row %zu, column %zu; it must be finite, and its diagonal "
                "positive",
                factor[i * dim + j], i + 1, j + 1);
        }
    hl_free(m->ctx, m->factor);
    m->factor = copy;
    return HL_OK;
}

const double *hl_density_factor(const hl_density *m)
{
    return m ? m->factor : NULL;
}

/* ---- rows ---- */

/* y = L u of one row: to u from y, or back; in place. */
static void solve_factor(const double *l, size_t dim, double *y)
{
    for (size_t i = 0; i < dim; i++) {
        for (size_t j = 0; j < i; j++)
            y[i] -= l[i * dim + j] * y[j];
        y[i] /= l[i * dim + i];
    }
}

static void apply_factor(const double *l, size_t dim, double *u)
{
    for (size_t i = dim; i-- > 0;) {
        u[i] *= l[i * dim + i];
        for (size_t j = 0; j < i; j++)
            u[i] += l[i * dim + j] * u[j];
    }
}

void hl_density_standardise(const hl_density *m, size_t rows, double *x, double *context)
{
    for (size_t i = 0; m && x && i < rows * m->dim; i++)
        x[i] = (x[i] - m->column[i % m->dim].mean) / m->column[i % m->dim].deviation;
    for (size_t r = 0; m && m->factor && x && r < rows; r++)
        solve_factor(m->factor, m->dim, x + r * m->dim);
    for (size_t i = 0; m && context && i < rows * m->context; i++) {
        const column *c = &m->column[m->dim + i % m->context];
        context[i] = (context[i] - c->mean) / c->deviation;
    }
}

void hl_density_unstandardise(const hl_density *m, size_t rows, double *x)
{
    for (size_t r = 0; m && m->factor && x && r < rows; r++)
        apply_factor(m->factor, m->dim, x + r * m->dim);
    for (size_t i = 0; m && x && i < rows * m->dim; i++)
        x[i] = m->column[i % m->dim].mean + m->column[i % m->dim].deviation * x[i];
}

/* A chunk of the context to m->c; NULL without one. Where it is not finite, the row in m->x becomes NaN, so that this row
 * alone fails. */
static const double *load_context(hl_density *m, size_t start, size_t count, const double *context)
{
    if (!m->context)
        return NULL;
    memcpy(m->c, context + start * m->context, count * m->context * sizeof *m->c);
    hl_density_standardise(m, count, NULL, m->c);
    for (size_t i = 0; i < count * m->context; i++)
        if (!isfinite(m->c[i])) {
            m->c[i] = 0;
            m->x[i / m->context * m->dim] = NAN;
        }
    return m->c;
}

/* The status of a chunk that starts at row `start`; the first failure is the one that is reported. */
static void note_failure(hl_density *m, hl_status status, size_t start, hl_status *first, hl_kept_failure *kept)
{
    if (status == HL_OK)
        return;
    if (*first == HL_OK || status == HL_STOPPED) {
        *first = hl_fail_offset(m->ctx, status, start);
        hl_failure_keep(m->ctx, kept);
    } else {
        hl_failure_restore(m->ctx, kept);
    }
}

hl_status hl_density_logp(hl_density *m, size_t rows, const double *x, const double *context, double *logp)
{
    if (!m)
        return HL_ERR_INVALID;
    if (rows && (!x || !logp || (m->context && !context)))
        return hl_fail(m->ctx, HL_ERR_INVALID, "hl_density_logp: x, the context or the result is NULL");
    double scale = 0;
    hl_status first = HL_OK;
    hl_kept_failure kept;
    for (size_t i = 0; i < m->dim; i++)
        scale += log(m->column[i].deviation) + (m->factor ? log(m->factor[i * m->dim + i]) : 0);
    for (size_t start = 0; start < rows; start += CHUNK) {
        size_t count = rows - start < CHUNK ? rows - start : CHUNK;
        memcpy(m->x, x + start * m->dim, count * m->dim * sizeof *x);
        hl_density_standardise(m, count, m->x, NULL);
        const double *c = load_context(m, start, count, context);
        hl_status status = hl_flow_logp(m->flow, count, m->x, c, logp + start);
        note_failure(m, status, start, &first, &kept);
        for (size_t r = start; r < start + count; r++)
            logp[r] -= scale;
    }
    return first;
}

hl_status hl_density_sample(hl_density *m, uint64_t seed, size_t first, size_t rows, const double *context, double *x)
{
    if (!m)
        return HL_ERR_INVALID;
    if (rows && (!x || (m->context && !context)))
        return hl_fail(m->ctx, HL_ERR_INVALID, "hl_density_sample: the context or the result is NULL");
    hl_status first_status = HL_OK;
    hl_kept_failure kept;
    for (size_t start = 0; start < rows; start += CHUNK) {
        size_t count = rows - start < CHUNK ? rows - start : CHUNK;
        double *to = x + start * m->dim;
        for (size_t i = 0; i < count * m->dim; i++)
            m->x[i] = hl_random_normal(seed, STREAM_BASE, (first + start) * m->dim + i);
        const double *c = load_context(m, start, count, context);
        hl_status status = hl_flow_inverse(m->flow, count, m->x, c, to, NULL);
        note_failure(m, status, start, &first_status, &kept);
        hl_density_unstandardise(m, count, to);
    }
    return first_status;
}

/* ---- writing ---- */

static char *columns_text(const hl_density *m)
{
    hl_json_writer w = { .ctx = m->ctx };
    hl_json_open(&w, NULL, '[');
    for (size_t i = 0; i < m->dim + m->context; i++) {
        hl_json_open(&w, NULL, '{');
        hl_json_put_text(&w, "name", m->column[i].name);
        hl_json_put_real(&w, "mean", m->column[i].mean);
        hl_json_put_real(&w, "deviation", m->column[i].deviation);
        hl_json_close(&w, '}');
    }
    hl_json_close(&w, ']');
    return hl_json_finish(&w);
}

static char *solver_text(const hl_density *m)
{
    hl_json_writer w = { .ctx = m->ctx };
    hl_json_open(&w, NULL, '{');
    hl_json_put_text(&w, "method", m->method);
    hl_json_put_real(&w, "rtol", m->solver.rtol);
    hl_json_put_real(&w, "atol", m->solver.atol);
    hl_json_put_integer(&w, "steps", (int64_t)m->solver.steps);
    hl_json_close(&w, '}');
    return hl_json_finish(&w);
}

static hl_status write_metadata(const hl_density *m, hl_tensors *t)
{
    char flows[24], *text[] = { hl_net_architecture(m->flow->net[0]), columns_text(m), solver_text(m) };
    const char *keys[] = { "architecture", "columns", "solver" };
    snprintf(flows, sizeof flows, "%zu", m->flow->spec.flows);
    hl_status status = text[0] && text[1] && text[2] ? HL_OK : HL_ERR_NOMEM;
    if (status == HL_OK)
        status = hl_tensors_set_metadata(t, "format", format_text);
    if (status == HL_OK)
        status = hl_tensors_set_metadata(t, "kind", m->flow->kind->name);
    if (status == HL_OK)
        status = hl_tensors_set_metadata(t, "flows", flows);
    for (size_t i = 0; i < 3; i++) {
        if (status == HL_OK)
            status = hl_tensors_set_metadata(t, keys[i], text[i]);
        hl_free(m->ctx, text[i]);
    }
    if (status == HL_OK)
        status = hl_tensors_set_metadata(t, "dtype", hl_dtype_name(m->flow->net[0]->dtype));
    return status == HL_OK ? hl_tensors_set_metadata(t, "note", m->note) : status;
}

/* The model as a table of tensors, which borrows from it; the caller frees it, also after a failure. */
static hl_status gather(const hl_density *m, hl_tensors **table)
{
    hl_status status = hl_tensors_create(m->ctx, table);
    hl_tensors *t = *table;
    if (status == HL_OK)
        status = write_metadata(m, t);
    for (size_t i = 0; i < m->flow->nets && status == HL_OK; i++) {
        char prefix[24];
        snprintf(prefix, sizeof prefix, "%zu.", i);
        status = hl_net_check(m->flow->net[i]);
        if (status == HL_OK)
            status = hl_net_add_tensors(m->flow->net[i], prefix, t);
    }
    const size_t square[2] = { m->dim, m->dim };
    if (status == HL_OK && m->factor)
        status = hl_tensors_add(t, "factor", HL_F64, 2, square, m->factor);
    return status;
}

hl_status hl_density_save(const hl_density *m, const char *path)
{
    if (!m)
        return HL_ERR_INVALID;
    if (!path)
        return hl_fail(m->ctx, HL_ERR_INVALID, "hl_density_save: the path is NULL");
    hl_tensors *t = NULL;
    hl_status status = gather(m, &t);
    if (status == HL_OK)
        status = hl_tensors_write(t, path);
    hl_tensors_free(t);
    return status;
}

hl_status hl_density_write(const hl_density *m, void *bytes, size_t capacity, size_t *size)
{
    if (!m)
        return HL_ERR_INVALID;
    if (!size)
        return hl_fail(m->ctx, HL_ERR_INVALID, "hl_density_write: the size is NULL");
    hl_tensors *t = NULL;
    hl_status status = gather(m, &t);
    if (status == HL_OK)
        status = hl_tensors_write_memory(t, bytes, capacity, size);
    hl_tensors_free(t);
    return status;
}

/* ---- reading ---- */

typedef struct reader {
    hl_context *ctx;
    const char *path;
    const hl_tensors *t;
    hl_architecture *architecture;
    hl_flow_spec spec;
    hl_json_document columns, solver;
} reader;

static hl_status bad(const reader *r, const char *what)
{
    return hl_fail(r->ctx, HL_ERR_FORMAT, "%s: %s", hl_path_shown(r->path), what);
}

/* The metadata of a key; no root if they are missing or not JSON. */
static hl_status parse(const reader *r, const char *key, hl_json_document *document)
{
    const char *text = hl_tensors_metadata(r->t, key);
    hl_status status = text ? hl_json_parse(r->ctx, text, strlen(text), document) : HL_OK;
    return status == HL_ERR_NOMEM ? status : HL_OK;
}

static hl_status read_flow(reader *r)
{
    const char *flows = hl_tensors_metadata(r->t, "flows");
    hl_dtype dtype;
    hl_status status = hl_model_dtype(r->ctx, r->path, r->t, &dtype);
    if (status == HL_OK)
        status =
            hl_architecture_read(r->ctx, r->path, hl_tensors_metadata(r->t, "architecture"), dtype, &r->architecture);
    if (status != HL_OK)
        return status;
    r->spec.kind = hl_tensors_metadata(r->t, "kind");
    r->spec.net = r->architecture->spec[0];
    size_t digits = flows ? strspn(flows, "0123456789") : 0;
    if (digits >= 1 && digits <= 4 && !flows[digits])
        r->spec.flows = strtoul(flows, NULL, 10);
    if (!r->spec.kind || r->spec.flows < 1)
        return bad(r, "its kind or its number of flows is missing or wrong");
    if (!hl_flow_is_continuous(r->spec.kind)) /* these belong to the kind */
        r->spec.net.conditioner = r->spec.net.transformer = NULL;
    return HL_OK;
}

static hl_status read_columns(const reader *r, hl_density_column *columns)
{
    size_t count = r->spec.net.dim + r->spec.net.context;
    if (!hl_json_is_array(r->columns.root, count))
        return bad(r, "its columns are missing or not as many as the architecture has");
    const hl_json *c = r->columns.root->first;
    for (size_t i = 0; i < count; i++, c = c->next) {
        const hl_json *mean = hl_json_get(c, "mean"), *deviation = hl_json_get(c, "deviation");
        const char *name = hl_json_text(hl_json_get(c, "name"));
        if (!name || !hl_json_is_number(mean) || !hl_json_is_number(deviation))
            return bad(r, "a column has no name, mean or deviation");
        columns[i] = (hl_density_column){ name, mean->number, deviation->number };
    }
    return HL_OK;
}

/* What the flow's networks hold must be in the file before memory is taken for it. */
static hl_status check_nets(reader *r)
{
    hl_status status = hl_model_check_size(r->ctx, r->path, r->t, r->architecture->spec, r->spec.flows);
    size_t needed = 0, tensors = 0, flows = r->spec.flows;
    if (status == HL_OK)
        status = hl_model_count(r->ctx, r->path, r->architecture->spec, &tensors, &needed);
    if (status != HL_OK)
        return status;
    bool few = hl_size_mul(needed, flows) > hl_model_values(r->t, r->spec.net.dtype) ||
               hl_size_mul(tensors, flows) > hl_tensors_count(r->t);
    return few ? bad(r, "the tensors are too few for the architecture") : HL_OK;
}

static hl_status read_solver(const reader *r, hl_density *m)
{
    const hl_json *j = r->solver.root, *rtol = hl_json_get(j, "rtol"), *atol = hl_json_get(j, "atol");
    const hl_json *steps = hl_json_get(j, "steps");
    const char *method = hl_json_text(hl_json_get(j, "method"));
    if (!method || strlen(method) >= sizeof m->method || !hl_json_is_number(rtol) || !hl_json_is_number(atol) ||
        !hl_json_is_integer(steps) || steps->integer < 0 || steps->integer > 1000000)
        return bad(r, "its solver is missing or wrong");
    hl_flow_solver s = {
        .method = method, .rtol = rtol->number, .atol = atol->number, .steps = (size_t)steps->integer
    };
    hl_status status = hl_density_set_solver(m, &s);
    return status == HL_OK ? HL_OK : hl_model_blame(r->ctx, status, r->path, "solver: ");
}

static hl_status read_factor(const reader *r, hl_density *m)
{
    const hl_tensor *factor = hl_tensors_find(r->t, "factor");
    if (!factor)
        return HL_OK;
    if (factor->dtype != HL_F64 || factor->rank != 2 || factor->dims[0] != m->dim || factor->dims[1] != m->dim)
        return bad(r, "its factor of the columns is not a square of doubles as large as there are columns");
    hl_status status = hl_density_set_factor(m, factor->data);
    return status == HL_OK ? HL_OK : hl_model_blame(r->ctx, status, r->path, "");
}

static hl_status fill(const reader *r, hl_density *m)
{
    hl_status status = read_solver(r, m);
    if (status == HL_OK)
        status = read_factor(r, m);
    size_t tensors = m->factor ? 1 : 0;
    for (size_t i = 0; i < m->flow->nets && status == HL_OK; i++) {
        char prefix[24];
        snprintf(prefix, sizeof prefix, "%zu.", i);
        status = hl_net_check_tensors(m->flow->net[i], prefix, r->path, r->t);
        if (status == HL_OK)
            status = hl_net_take_tensors(m->flow->net[i], prefix, r->path, r->t);
        tensors += m->flow->net[i]->params;
    }
    if (status == HL_OK && tensors != hl_tensors_count(r->t))
        status = bad(r, "it has tensors that the architecture does not have");
    return status == HL_OK ? hl_density_set_note(m, hl_tensors_metadata(r->t, "note")) : status;
}

static hl_status read_density(reader *r, hl_density **out)
{
    hl_status status = hl_model_check_format(r->ctx, r->path, r->t, format_text, "a density model");
    if (status == HL_OK)
        status = read_flow(r);
    if (status == HL_OK)
        status = check_nets(r);
    if (status != HL_OK)
        return status;
    status = parse(r, "columns", &r->columns);
    if (status == HL_OK)
        status = parse(r, "solver", &r->solver);
    if (status != HL_OK)
        return status;
    hl_density_column *columns = hl_calloc(r->ctx, r->spec.net.dim + r->spec.net.context, sizeof *columns);
    status = columns ? read_columns(r, columns) : HL_ERR_NOMEM;
    if (status == HL_OK) {
        status = hl_density_create(r->ctx, &r->spec, columns, out);
        if (status == HL_ERR_INVALID)
            status = hl_model_blame(r->ctx, status, r->path, "");
    }
    hl_free(r->ctx, columns);
    return status == HL_OK ? fill(r, *out) : status;
}

/* Make a model of the table t, which it frees. */
static hl_status make_of(hl_context *ctx, const char *path, hl_tensors *t, hl_density **out)
{
    reader r = { .ctx = ctx, .path = path, .t = t };
    hl_status status = read_density(&r, out);
    if (status != HL_OK) {
        hl_density_free(*out);
        *out = NULL;
    }
    hl_architecture_free(r.architecture);
    hl_json_free(&r.columns);
    hl_json_free(&r.solver);
    hl_tensors_free(t);
    return status;
}

hl_status hl_density_load(hl_context *ctx, const char *path, hl_density **out)
{
    if (!ctx)
        return HL_ERR_INVALID;
    if (!path || !out)
        return hl_fail(ctx, HL_ERR_INVALID, "hl_density_load: the path or the result is NULL");
    hl_tensors *t = NULL;
    *out = NULL;
    hl_status status = hl_tensors_read(ctx, path, &t);
    return status == HL_OK ? make_of(ctx, path, t, out) : status;
}

hl_status hl_density_read(hl_context *ctx, const void *bytes, size_t size, hl_density **out)
{
    static const char name[] = "the model in memory";
    if (!ctx)
        return HL_ERR_INVALID;
    if (!bytes || !out)
        return hl_fail(ctx, HL_ERR_INVALID, "hl_density_read: the bytes or the result is NULL");
    hl_tensors *t = NULL;
    *out = NULL;
    hl_status status = hl_tensors_read_memory(ctx, name, bytes, size, &t);
    return status == HL_OK ? make_of(ctx, name, t, out) : status;
}
