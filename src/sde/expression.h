/* expression.h - expressions of t, x and named constants: parsing, values with derivatives by the constants, graph. */
#ifndef HL_EXPRESSION_H
#define HL_EXPRESSION_H

#include "base/base.h"
#include "hollow/graph.h"
#include "sde/sde.h"

enum { HL_TERM_MOST = 300, HL_CONSTANTS_MOST = 16, HL_EXPRESSION_DEPTH = 60, HL_CONSTANT_NAME = 64 };

enum { HL_EXPRESSION_WORK = HL_TERM_MOST * (HL_CONSTANTS_MOST + 1) };

typedef enum hl_form_kind {
    HL_TERM_NUMBER,
    HL_TERM_COLUMN,
    HL_TERM_TIME,
    HL_TERM_CONSTANT,
    HL_TERM_ADD,
    HL_TERM_SUB,
    HL_TERM_MUL,
    HL_TERM_DIV,
    HL_TERM_POW,
    HL_TERM_NEG,
    HL_TERM_EXP, /* functions from here on */
    HL_TERM_LOG,
    HL_TERM_SQRT,
    HL_TERM_SIN,
    HL_TERM_COS,
    HL_TERM_TAN,
    HL_TERM_TANH,
    HL_TERM_ABS,
    HL_TERM_KINDS
} hl_form_kind;

/* A node of a tree; its operands stand before it. */
typedef struct hl_form_term {
    hl_form_kind kind;
    size_t a, b; /* operands; the number of a column or a constant */
    double number;
} hl_form_term;

struct hl_sde_forms {
    hl_context *ctx;
    size_t dim, terms, constants;
    hl_form_term *term;        /* [HL_TERM_MOST] */
    size_t *root[2];           /* [dim]: the last term of f_i, of g_i; SIZE_MAX: none */
    char *text[2];             /* as given, or NULL */
    char (*name)[HL_SDE_NAME]; /* dim + 1 */
    char (*constant)[HL_CONSTANT_NAME];
    double *value, *covariance; /* [HL_CONSTANTS_MOST], [constants][constants] */
    struct hl_sde_form {        /* what the graph's callbacks get */
        const struct hl_sde_forms *forms;
        size_t column;
    } * form;  /* [dim] */
    bool time; /* an expression has t */
};

/* Fills in root[part] of an object that has dim, names and terms. */
hl_status hl_expression_parse(hl_sde_forms *forms, size_t part, const char *option, const char *text);
/* Value of f_i or g_i, and its derivatives by the constants to `slope` unless NULL. work: HL_EXPRESSION_WORK values. */
double hl_expression_eval(const hl_sde_forms *forms, size_t part, size_t column, double t, const double *x,
                          double *slope, double *work);
hl_node hl_expression_node(const hl_sde_forms *forms, size_t part, size_t column, hl_graph *g, hl_node t, hl_node x);

hl_status hl_sde_forms_copy(hl_context *ctx, const hl_sde_forms *from, hl_sde_forms **to);
/* Marks the columns that have expressions as known, with forms that borrow from `forms`. */
void hl_sde_forms_apply(const hl_sde_forms *forms, hl_sde_known *known);
/* As text for a file, which the caller frees (NULL without memory); and back. */
char *hl_sde_forms_text(const hl_sde_forms *forms);
hl_status hl_sde_forms_read(hl_context *ctx, const char *path, const char *text, size_t dim, const char *const *names,
                            hl_sde_forms **forms);

#endif
