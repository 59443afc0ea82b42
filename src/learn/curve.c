/* curve.c - the course of a training in few points, and the rows that it saw.
 *
 * In a model's file the course is a list of points, each an array of the members of hl_training_point in their order, with null for a
 * validation that there was not. The rows are {"rows": 1000, "sum": "hex", "limit": "hex", "least": ["hex", ...]}, with 16 digits for each hash. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "learn/curve.h"

enum { STRETCHES = 100, PHASES = 8, DIGITS = 16 };
/* A sketch keeps one hash in PER rows, but no fewer than LEAST and no more than MOST: of 4000 rows of the table eight are found in the mean. */
enum { PER = 500, LEAST = 64, MOST = 4096 };

/* ---- the course ---- */

void hl_curve_start(hl_curve *c, size_t iterations)
{
    *c = (hl_curve){ .stretch = iterations / STRETCHES + (iterations % STRETCHES != 0) };
    c->stretch = c->stretch ? c->stretch : 1;
}

void hl_curve_add(hl_curve *c, const hl_training_point *p)
{
    bool begins = !c->count || c->filled >= c->stretch || c->point[c->count - 1].phase != p->phase;
    if (begins && c->count < HL_CURVE_POINTS) {
        c->point[c->count++] = (hl_training_point){ .phase = p->phase, .validation = NAN };
        c->filled = 0;
    }
    hl_training_point *to = &c->point[c->count - 1];
    double share = 1 / (double)++c->filled;
    to->iteration = p->iteration;
    to->steps = p->steps;
    to->loss += (p->loss - to->loss) * share;
    to->evaluations += (p->evaluations - to->evaluations) * share;
}

static void halve(hl_curve *c)
{
    size_t kept = 0, before = 0; /* iterations before the point that is read */
    for (size_t i = 0; i < c->count; i++) {
        hl_training_point p = c->point[i];
        size_t own = p.iteration - before;
        bool joins = i + 1 < c->count && c->point[i + 1].phase == p.phase;
        if (joins) {
            const hl_training_point *q = &c->point[++i];
            double share = (double)(q->iteration - p.iteration) / (double)(q->iteration - before);
            p.loss += (q->loss - p.loss) * share;
            p.evaluations += (q->evaluations - p.evaluations) * share;
            own = q->iteration - before;
            p.iteration = q->iteration;
            p.steps = q->steps;
            if (q->validated) {
                p.validated = q->validated;
                p.validation = q->validation;
            }
        }
        before += own;
        c->filled = own;
        c->point[kept++] = p;
    }
    c->count = kept;
    c->stretch *= 2;
}

void hl_curve_extend(hl_curve *c, size_t iterations)
{
    while (iterations / c->stretch > STRETCHES)
        halve(c);
}

void hl_curve_validate(hl_curve *c, size_t iteration, double validation)
{
    if (!c->count || !isfinite(validation))
        return;
    c->point[c->count - 1].validation = validation;
    c->point[c->count - 1].validated = iteration;
}

static void from_point(const hl_training_point *p, double *to)
{
    const double field[HL_CURVE_FIELDS] = { (double)p->iteration, (double)p->phase,
                                            (double)p->steps,     p->loss,
                                            p->evaluations,       p->validated ? p->validation : 0,
                                            (double)p->validated };
    memcpy(to, field, sizeof field);
}

static bool is_count(double value)
{
    return value >= 0 && value <= 1e15 && value == floor(value);
}

static bool to_point(const double *f, hl_training_point *p)
{
    for (size_t i = 0; i < HL_CURVE_FIELDS; i++)
        if (!isfinite(f[i]))
            return false;
    if (!is_count(f[0]) || !is_count(f[1]) || f[1] >= PHASES || !is_count(f[2]) || !is_count(f[6]))
        return false;
    *p = (hl_training_point){ .iteration = (size_t)f[0],
                              .phase = (int)f[1],
                              .steps = (size_t)f[2],
                              .loss = f[3],
                              .evaluations = f[4],
                              .validation = f[6] > 0 ? f[5] : NAN,
                              .validated = (size_t)f[6] };
    return true;
}

void hl_curve_get_state(const hl_curve *c, double *state)
{
    memset(state, 0, HL_CURVE_STATE * sizeof *state);
    state[0] = (double)c->count;
    state[1] = (double)c->filled;
    for (size_t i = 0; i < c->count; i++)
        from_point(&c->point[i], state + 2 + i * HL_CURVE_FIELDS);
}

bool hl_curve_set_state(hl_curve *c, const double *state)
{
    hl_curve made = { .stretch = c->stretch };
    if (!is_count(state[0]) || state[0] > HL_CURVE_POINTS || !is_count(state[1]))
        return false;
    made.count = (size_t)state[0];
    made.filled = (size_t)state[1];
    for (size_t i = 0; i < made.count; i++)
        if (!to_point(state + 2 + i * HL_CURVE_FIELDS, &made.point[i]))
            return false;
    *c = made;
    return true;
}

void hl_curve_put(const hl_curve *c, hl_json_writer *w, const char *key)
{
    hl_json_open(w, key, '[');
    for (size_t i = 0; i < c->count; i++) {
        double field[HL_CURVE_FIELDS];
        from_point(&c->point[i], field);
        hl_json_open(w, NULL, '[');
        for (size_t k = 0; k < HL_CURVE_FIELDS; k++)
            if (k < 3 || k == 6)
                hl_json_put_integer(w, NULL, (int64_t)field[k]);
            else if (k == 5 && !c->point[i].validated)
                hl_json_put_null(w, NULL);
            else
                hl_json_put_real(w, NULL, field[k]);
        hl_json_close(w, ']');
    }
    hl_json_close(w, ']');
}

bool hl_curve_read(hl_curve *c, const hl_json *j)
{
    *c = (hl_curve){ .stretch = 1 };
    if (!j || j->kind != HL_JSON_ARRAY || j->count > HL_CURVE_POINTS)
        return false;
    for (const hl_json *p = j->first; p; p = p->next) {
        double field[HL_CURVE_FIELDS];
        size_t k = 0;
        if (!hl_json_is_array(p, HL_CURVE_FIELDS))
            return false;
        for (const hl_json *f = p->first; f; f = f->next) {
            if (!hl_json_is_number(f) && f->kind != HL_JSON_NULL)
                return false;
            field[k++] = f->kind == HL_JSON_NULL ? 0 : f->number;
        }
        if (!to_point(field, &c->point[c->count++]))
            return false;
    }
    return true;
}

/* ---- the rows ---- */

/* Every bit of the value changes half of the bits of the hash (the last steps of MurmurHash3). */
static uint64_t mix(uint64_t h)
{
    h = (h ^ h >> 33) * 0xff51afd7ed558ccdULL;
    h = (h ^ h >> 33) * 0xc4ceb9fe1a85ec53ULL;
    return h ^ h >> 33;
}

static uint64_t add_values(uint64_t hash, size_t count, const double *values)
{
    for (size_t i = 0; i < count; i++) {
        double value = values[i] == 0 ? 0 : values[i];
        uint64_t bits;
        memcpy(&bits, &value, sizeof bits);
        hash = mix(hash ^ bits) + 0x9e3779b97f4a7c15ULL;
    }
    return hash;
}

uint64_t hl_row_hash(size_t dim, const double *x, size_t context, const double *c)
{
    return mix(add_values(add_values(dim, dim, x), context, c));
}

static int by_size(const void *a, const void *b)
{
    uint64_t p = *(const uint64_t *)a, q = *(const uint64_t *)b;
    return (p > q) - (p < q);
}

hl_status hl_row_sketch_from(hl_context *ctx, size_t rows, uint64_t *hash, hl_row_sketch *s)
{
    size_t most = rows / PER < LEAST ? LEAST : rows / PER > MOST ? MOST : rows / PER, kept = 0;
    *s = (hl_row_sketch){ .rows = rows };
    for (size_t r = 0; r < rows; r++)
        s->sum += hash[r];
    qsort(hash, rows, sizeof *hash, by_size);
    for (size_t r = 0; r < rows; r++)
        if (!r || hash[r] != hash[r - 1])
            hash[kept++] = hash[r];
    s->limit = kept > most ? hash[most - 1] : UINT64_MAX;
    s->count = kept < most ? kept : most;
    s->hash = hl_alloc(ctx, (s->count ? s->count : 1) * sizeof *hash);
    if (s->hash)
        memcpy(s->hash, hash, s->count * sizeof *hash);
    return s->hash ? HL_OK : HL_ERR_NOMEM;
}

hl_status hl_row_sketch_make(hl_context *ctx, size_t rows, size_t dim, const double *x, size_t context, const double *c,
                             hl_row_sketch *s)
{
    uint64_t *hash = hl_alloc(ctx, hl_size_mul(rows ? rows : 1, sizeof *hash));
    *s = (hl_row_sketch){ .rows = rows };
    for (size_t r = 0; hash && r < rows; r++)
        hash[r] = hl_row_hash(dim, x + r * dim, context, context ? c + r * context : NULL);
    hl_status status = hash ? hl_row_sketch_from(ctx, rows, hash, s) : HL_ERR_NOMEM;
    hl_free(ctx, hash);
    return status;
}

void hl_row_sketch_free(hl_context *ctx, hl_row_sketch *s)
{
    hl_free(ctx, s->hash);
    *s = (hl_row_sketch){ 0 };
}

int hl_row_sketch_has(const hl_row_sketch *s, uint64_t hash)
{
    if (!s->count || hash > s->limit)
        return -1;
    return bsearch(&hash, s->hash, s->count, sizeof *s->hash, by_size) != NULL;
}

static void put_hex(hl_json_writer *w, const char *key, uint64_t value)
{
    char text[DIGITS + 1];
    snprintf(text, sizeof text, "%016" PRIx64, value);
    hl_json_put_text(w, key, text);
}

void hl_row_sketch_put(const hl_row_sketch *s, hl_json_writer *w)
{
    hl_json_put_integer(w, "rows", (int64_t)s->rows);
    put_hex(w, "sum", s->sum);
    put_hex(w, "limit", s->limit);
    hl_json_open(w, "least", '[');
    for (size_t i = 0; i < s->count; i++)
        put_hex(w, NULL, s->hash[i]);
    hl_json_close(w, ']');
}

static bool read_hex(const hl_json *j, uint64_t *value)
{
    const char *text = hl_json_text(j);
    if (!text || strspn(text, "0123456789abcdef") != DIGITS || text[DIGITS])
        return false;
    *value = strtoull(text, NULL, 16);
    return true;
}

hl_status hl_row_sketch_read(hl_context *ctx, const hl_json *j, hl_row_sketch *s, bool *good)
{
    const hl_json *rows = hl_json_get(j, "rows"), *least = hl_json_get(j, "least");
    *s = (hl_row_sketch){ 0 };
    *good = hl_json_is_integer(rows) && rows->integer >= 0 && least && least->kind == HL_JSON_ARRAY &&
            least->count <= MOST && read_hex(hl_json_get(j, "sum"), &s->sum) &&
            read_hex(hl_json_get(j, "limit"), &s->limit);
    if (!*good)
        return HL_OK;
    s->rows = (size_t)rows->integer;
    s->hash = hl_alloc(ctx, (least->count ? least->count : 1) * sizeof *s->hash);
    if (!s->hash)
        return HL_ERR_NOMEM;
    for (const hl_json *h = least->first; h && *good; h = h->next) {
        *good = read_hex(h, &s->hash[s->count]) && (!s->count || s->hash[s->count] > s->hash[s->count - 1]) &&
                s->hash[s->count] <= s->limit;
        s->count++;
    }
    return HL_OK;
}
