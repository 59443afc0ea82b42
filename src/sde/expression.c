/* expression.c - expressions as text: a parser that descends to a bounded depth, values, and graph.
 *
 * A tree is a list of terms in which operands come first, so that one pass from the first term to the last evaluates everything.
 * Derivatives by the constants go along (forward mode). */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sde/expression.h"

static const char *const functions[] = { "exp", "log", "sqrt", "sin", "cos", "tan", "tanh", "abs" };
enum { FUNCTIONS = sizeof functions / sizeof *functions };

typedef struct parser {
    hl_sde_forms *forms;
    const char *option, *text, *at;
    int depth;
    hl_status status;
} parser;

/* ---- words ---- */

static size_t failed(parser *p, const char *expected)
{
    if (p->status != HL_OK)
        return 0;
    size_t column = (size_t)(p->at - p->text) + 1, length = 0;
    while (p->at[length] && length < 20)
        length++;
    while (length > 0 && ((unsigned char)p->at[length] & 0xc0) == 0x80) /* not within a letter */
        length--;
    p->status = hl_fail(p->forms->ctx, HL_ERR_INVALID, "%s: column %zu: expected %s, found %s%.*s%s", p->option, column,
                        expected, length ? "'" : "the end", (int)length, p->at, length ? "'" : "");
    return 0;
}

static void skip(parser *p)
{
    while (isspace((unsigned char)*p->at))
        p->at++;
}

static bool take(parser *p, char c)
{
    skip(p);
    if (*p->at != c)
        return false;
    p->at++;
    return true;
}

static size_t add(parser *p, hl_form_term term)
{
    hl_sde_forms *f = p->forms;
    if (p->status != HL_OK)
        return 0;
    if (f->terms == HL_TERM_MOST) {
        p->status = hl_fail(f->ctx, HL_ERR_INVALID, "%s: more than %d operations", p->option, (int)HL_TERM_MOST);
        return 0;
    }
    f->term[f->terms] = term;
    return f->terms++;
}

/* Letters, digits and _ that begin with a letter or _. */
static size_t word_length(const char *at)
{
    size_t n = 0;
    while (isalpha((unsigned char)at[n]) || at[n] == '_' || (n > 0 && isdigit((unsigned char)at[n])))
        n++;
    return n;
}

/* The column (or time: dim) whose name stands here and is no shorter than the word; dim + 1: none. */
static size_t find_column(const parser *p, size_t word, size_t *length)
{
    const hl_sde_forms *f = p->forms;
    size_t best = f->dim + 1;
    *length = 0;
    for (size_t i = 0; i <= f->dim; i++) {
        size_t size = strlen(f->name[i]);
        if (size > *length && size >= word && strncmp(p->at, f->name[i], size) == 0) {
            best = i;
            *length = size;
        }
    }
    if (best > f->dim && word == 1 && *p->at == 't') { /* time, whatever its column is called */
        *length = 1;
        best = f->dim;
    }
    return best;
}

static size_t constant(parser *p, size_t length)
{
    hl_sde_forms *f = p->forms;
    size_t k = 0;
    while (k < f->constants && (strncmp(f->constant[k], p->at, length) != 0 || f->constant[k][length]))
        k++;
    if (k == HL_CONSTANTS_MOST || length >= HL_CONSTANT_NAME) {
        p->status = hl_fail(f->ctx, HL_ERR_INVALID, "%s: column %zu: more than %d constants, or a name of %d letters",
                            p->option, (size_t)(p->at - p->text) + 1, (int)HL_CONSTANTS_MOST, (int)HL_CONSTANT_NAME);
        return 0;
    }
    if (k == f->constants) {
        memcpy(f->constant[k], p->at, length);
        f->value[k] = 1;
        f->constants++;
    }
    p->at += length;
    return add(p, (hl_form_term){ .kind = HL_TERM_CONSTANT, .a = k });
}

/* ---- grammar ---- */

static size_t parse_sum(parser *p);

static size_t parse_name(parser *p)
{
    size_t word = word_length(p->at), length, column = find_column(p, word, &length);
    if (column <= p->forms->dim) {
        p->at += length;
        p->forms->time = p->forms->time || column == p->forms->dim;
        return add(p, (hl_form_term){ .kind = column < p->forms->dim ? HL_TERM_COLUMN : HL_TERM_TIME, .a = column });
    }
    if (!word)
        return failed(p, "a number, a column, a constant, a function or '('");
    if (word == 2 && strncmp(p->at, "pi", 2) == 0) {
        p->at += 2;
        return add(p, (hl_form_term){ .kind = HL_TERM_NUMBER, .number = 3.14159265358979323846 });
    }
    for (size_t k = 0; k < FUNCTIONS; k++)
        if (strlen(functions[k]) == word && strncmp(p->at, functions[k], word) == 0) {
            p->at += word;
            if (!take(p, '('))
                return failed(p, "'(' after a function");
            size_t a = parse_sum(p);
            return take(p, ')') ? add(p, (hl_form_term){ .kind = (hl_form_kind)(HL_TERM_EXP + k), .a = a })
                                : failed(p, "an operator or ')'");
        }
    const char *after = p->at + word;
    while (isspace((unsigned char)*after))
        after++;
    if (*after == '(')
        return failed(p, "a function (exp, log, sqrt, sin, cos, tan, tanh, abs)");
    return constant(p, word);
}

static size_t parse_primary(parser *p)
{
    skip(p);
    if (take(p, '(')) {
        size_t a = parse_sum(p);
        return take(p, ')') ? a : failed(p, "an operator or ')'");
    }
    if (!isdigit((unsigned char)*p->at) && *p->at != '.')
        return parse_name(p);
    char *end;
    if (*p->at == '0' && (p->at[1] == 'x' || p->at[1] == 'X'))
        return failed(p, "a decimal number");
    double value = strtod(p->at, &end);
    if (end == p->at || !isfinite(value))
        return failed(p, "a finite number");
    p->at = end;
    return add(p, (hl_form_term){ .kind = HL_TERM_NUMBER, .number = value });
}

static size_t parse_factor(parser *p)
{
    size_t a;
    if (p->status != HL_OK)
        return 0;
    if (++p->depth > HL_EXPRESSION_DEPTH) {
        p->status = hl_fail(p->forms->ctx, HL_ERR_INVALID, "%s: column %zu: the expression nests more than %d deep",
                            p->option, (size_t)(p->at - p->text) + 1, (int)HL_EXPRESSION_DEPTH);
        return 0;
    }
    if (take(p, '-')) {
        a = parse_factor(p);
        hl_form_term *last = p->forms->term + a;
        if (p->status == HL_OK && last->kind == HL_TERM_NUMBER)
            last->number = -last->number;
        else
            a = add(p, (hl_form_term){ .kind = HL_TERM_NEG, .a = a });
    } else if (take(p, '+')) {
        a = parse_factor(p);
    } else {
        a = parse_primary(p);
        if (p->status == HL_OK && take(p, '^')) {
            size_t b = parse_factor(p);
            a = add(p, (hl_form_term){ .kind = HL_TERM_POW, .a = a, .b = b });
        }
    }
    p->depth--;
    return a;
}

static size_t parse_term(parser *p)
{
    size_t a = parse_factor(p);
    while (p->status == HL_OK) {
        hl_form_kind kind = take(p, '*') ? HL_TERM_MUL : take(p, '/') ? HL_TERM_DIV : HL_TERM_KINDS;
        if (kind == HL_TERM_KINDS)
            break;
        size_t b = parse_factor(p);
        a = add(p, (hl_form_term){ .kind = kind, .a = a, .b = b });
    }
    return a;
}

static size_t parse_sum(parser *p)
{
    size_t a = parse_term(p);
    while (p->status == HL_OK) {
        hl_form_kind kind = take(p, '+') ? HL_TERM_ADD : take(p, '-') ? HL_TERM_SUB : HL_TERM_KINDS;
        if (kind == HL_TERM_KINDS)
            break;
        size_t b = parse_term(p);
        a = add(p, (hl_form_term){ .kind = kind, .a = a, .b = b });
    }
    return a;
}

hl_status hl_expression_parse(hl_sde_forms *f, size_t part, const char *option, const char *text)
{
    parser p = { .forms = f, .option = option, .text = text, .at = text };
    do {
        size_t length, column;
        skip(&p);
        column = find_column(&p, word_length(p.at), &length);
        if (column >= f->dim)
            failed(&p, "the name of a column of x");
        else if (f->root[part][column] != SIZE_MAX)
            failed(&p, "a column that has no expression yet");
        else
            p.at += length;
        if (p.status == HL_OK && !take(&p, '='))
            failed(&p, "'='");
        if (p.status == HL_OK)
            f->root[part][column] = parse_sum(&p);
        if (p.status == HL_OK && !take(&p, ';') && *p.at)
            failed(&p, "an operator, ';' or the end");
        skip(&p);
    } while (p.status == HL_OK && *p.at);
    return p.status;
}

/* ---- values ---- */

/* Values of terms of one or two operands, and their derivatives by them. */
static double combine(const hl_form_term *t, double a, double b, double *da, double *db)
{
    *db = 0;
    switch (t->kind) {
    case HL_TERM_ADD:
        *da = *db = 1;
        return a + b;
    case HL_TERM_SUB:
        *da = 1;
        *db = -1;
        return a - b;
    case HL_TERM_MUL:
        *da = b;
        *db = a;
        return a * b;
    case HL_TERM_DIV:
        *da = 1 / b;
        *db = -a / (b * b);
        return a / b;
    case HL_TERM_POW: {
        double y = pow(a, b);
        *da = b == 0 ? 0 : b * pow(a, b - 1);
        *db = a > 0 ? y * log(a) : 0;
        return y;
    }
    case HL_TERM_NEG:
        *da = -1;
        return -a;
    case HL_TERM_EXP:
        return *da = exp(a);
    case HL_TERM_LOG:
        *da = 1 / a;
        return log(a);
    case HL_TERM_SQRT:
        *da = 0.5 / sqrt(a);
        return sqrt(a);
    case HL_TERM_SIN:
        *da = cos(a);
        return sin(a);
    case HL_TERM_COS:
        *da = -sin(a);
        return cos(a);
    case HL_TERM_TAN:
        *da = 1 + tan(a) * tan(a);
        return tan(a);
    case HL_TERM_TANH:
        *da = 1 - tanh(a) * tanh(a);
        return tanh(a);
    default:
        *da = a < 0 ? -1 : 1;
        return fabs(a);
    }
}

double hl_expression_eval(const hl_sde_forms *f, size_t part, size_t column, double t, const double *x, double *slope,
                          double *work)
{
    size_t root = f->root[part][column], n = f->constants;
    if (root == SIZE_MAX)
        return NAN;
    double *d = work + f->terms; /* [terms][constants] */
    for (size_t k = 0; k <= root; k++) {
        const hl_form_term *e = &f->term[k];
        for (size_t c = 0; c < n && slope; c++)
            d[k * n + c] = e->kind == HL_TERM_CONSTANT && e->a == c;
        if (e->kind == HL_TERM_NUMBER) {
            work[k] = e->number;
        } else if (e->kind == HL_TERM_COLUMN) {
            work[k] = x[e->a];
        } else if (e->kind == HL_TERM_TIME) {
            work[k] = t;
        } else if (e->kind == HL_TERM_CONSTANT) {
            work[k] = f->value[e->a];
        } else {
            double da = 0, db = 0;
            work[k] = combine(e, work[e->a], work[e->b], &da, &db);
            for (size_t c = 0; c < n && slope; c++) {
                double u = d[e->a * n + c], v = d[e->b * n + c];
                d[k * n + c] = (u != 0 ? da * u : 0) + (v != 0 && db != 0 ? db * v : 0);
            }
        }
    }
    for (size_t c = 0; c < n && slope; c++)
        slope[c] = d[root * n + c];
    return work[root];
}

/* ---- graph ---- */

static hl_node node_of(const hl_sde_forms *f, const hl_form_term *e, hl_graph *g, hl_node t, hl_node x,
                       const hl_node *node)
{
    hl_node a = e->kind >= HL_TERM_ADD ? node[e->a] : HL_NONE, b = e->kind >= HL_TERM_ADD ? node[e->b] : HL_NONE;
    const hl_form_term *power = e->kind == HL_TERM_POW ? &f->term[e->b] : NULL;
    switch (e->kind) {
    case HL_TERM_NUMBER:
        return hl_const(g, e->number);
    case HL_TERM_COLUMN:
        return hl_reshape(g, hl_slice(g, x, 0, e->a, 1), 0, NULL);
    case HL_TERM_TIME:
        return t;
    case HL_TERM_CONSTANT:
        return hl_const(g, f->value[e->a]);
    case HL_TERM_ADD:
        return hl_add(g, a, b);
    case HL_TERM_SUB:
        return hl_sub(g, a, b);
    case HL_TERM_MUL:
        return hl_mul(g, a, b);
    case HL_TERM_DIV:
        return hl_div(g, a, b);
    case HL_TERM_POW:
        if (power->kind == HL_TERM_NUMBER && power->number == floor(power->number) && fabs(power->number) <= 64)
            return power->number < 0 ? hl_div(g, hl_const(g, 1), hl_powi(g, a, (int)-power->number))
                                     : hl_powi(g, a, (int)power->number);
        return hl_pow(g, a, b);
    case HL_TERM_NEG:
        return hl_neg(g, a);
    case HL_TERM_EXP:
        return hl_exp(g, a);
    case HL_TERM_LOG:
        return hl_log(g, a);
    case HL_TERM_SQRT:
        return hl_sqrt(g, a);
    case HL_TERM_SIN:
        return hl_sin(g, a);
    case HL_TERM_COS:
        return hl_cos(g, a);
    case HL_TERM_TAN:
        return hl_div(g, hl_sin(g, a), hl_cos(g, a));
    case HL_TERM_TANH:
        return hl_tanh(g, a);
    default:
        return hl_abs(g, a);
    }
}

hl_node hl_expression_node(const hl_sde_forms *f, size_t part, size_t column, hl_graph *g, hl_node t, hl_node x)
{
    size_t root = f->root[part][column];
    hl_node *node = hl_calloc(f->ctx, f->terms, sizeof *node);
    if (!node)
        return hl_graph_fail(g, HL_ERR_NOMEM, "out of memory");
    for (size_t k = 0; k <= root; k++)
        node[k] = node_of(f, &f->term[k], g, t, x, node);
    hl_node result = node[root];
    hl_free(f->ctx, node);
    return result;
}
