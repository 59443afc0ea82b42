/* graph.h - shapes, nodes and the type of an op's row. */
#ifndef HL_GRAPH_H
#define HL_GRAPH_H

#include <stdbool.h>

#include "base/base.h"
#include "hollow/graph.h"
#include "kernel/kernel.h"

typedef struct hl_shape {
    int rank;
    bool batched;
    size_t dim[HL_MAX_RANK];
} hl_shape;

/* Attributes of a node; each op uses the fields its row names. Unused fields are zero. */
typedef struct hl_attr {
    int i[4];
    double value;
    hl_shape shape;      /* target of broadcast and reshape */
    const int32_t *list; /* interned in the graph's arena: indices, permutations, taps */
    size_t list_len;
    const hl_mask *mask; /* interned in the graph's arena */
    const double *data;  /* values of a constant array; not interned */
    const char *name;    /* of an input or parameter */
} hl_attr;

typedef struct hl_op hl_op;

typedef struct hl_node_data {
    const hl_op *op;
    const hl_node *in; /* in the graph's arena */
    int inputs;
    hl_shape shape;
    hl_attr attr;
    uint64_t hash;
} hl_node_data;

typedef enum hl_op_kind {
    HL_KIND_LEAF,
    HL_KIND_UNARY,   /* elementwise; `kernel` is a HL_UN_ number */
    HL_KIND_BINARY,  /* HL_BI_ */
    HL_KIND_TERNARY, /* HL_TE_ */
    HL_KIND_VIEW,    /* same values in the same order: no work */
    HL_KIND_OTHER    /* src/exec has a case for it */
} hl_op_kind;

/* The instruction of an op (src/exec). */
typedef enum hl_code {
    HL_DO_NOTHING, /* leaves and views; for other ops hl_plan_create fails */
    HL_DO_UNARY,
    HL_DO_BINARY,
    HL_DO_TERNARY,
    HL_DO_SWISH, /* swish and its derivatives in one pass; only plans have it */
    HL_DO_LINEAR,
    HL_DO_LINEAR_T,
    HL_DO_OUTER,
    HL_DO_MATMUL,
    HL_DO_MASKED,
    HL_DO_SUM,
    HL_DO_MAX,
    HL_DO_CUMSUM,
    HL_DO_SUM_ROWS,
    HL_DO_BROADCAST,
    HL_DO_PERMUTE,
    HL_DO_GATHER,
    HL_DO_SCATTER,
    HL_DO_CONCAT,
    HL_DO_CONV,
    HL_DO_CONV_T,
    HL_DO_CONV_W
} hl_code;

/* How Taylor coefficients go through an op (src/ad/jet.c). */
typedef enum hl_jet_kind {
    HL_JET_RULE,    /* calls the row's jet */
    HL_JET_ZERO,    /* derivative zero */
    HL_JET_LINEAR,  /* y_k = op(x_k), every input in its place */
    HL_JET_BILINEAR /* y_k = sum_j op(a_j, b_{k-j}) */
} hl_jet_kind;

/* Second derivatives of an op, for curvature propagation (src/ad/curvature.c). */
typedef enum hl_bend {
    HL_BEND_DEFAULT,  /* by its Taylor rule: linear, bilinear, a function of one value; otherwise not known */
    HL_BEND_STRAIGHT, /* none */
    HL_BEND_BILINEAR, /* none while one input moves; otherwise not known */
    HL_BEND_PRODUCT,  /* those of a b */
    HL_BEND_QUOTIENT  /* none while the second input is fixed; otherwise not known */
} hl_bend;

typedef struct hl_work hl_work; /* shapes for which flops are counted; see below */

/* One row per primitive: all that the rest of the library asks about it. Rules emit nodes. */
struct hl_op {
    const char *name;
    int arity; /* -1: any number */
    hl_op_kind kind;
    int kernel;
    hl_jet_kind jet_kind;
    hl_code code;
    hl_bend bend;
    double flops;                     /* per output value, if `work` is NULL */
    double (*work)(const hl_work *w); /* flops per row */
    /* Does it treat the first axis of its batched inputs, of rank `rank`, index by index? NULL: never. */
    bool (*local)(const hl_node_data *d, int rank);
    /* From the inputs' shapes and the attributes, the result's shape; false with the graph's message set. */
    bool (*shape)(hl_graph *g, int inputs, const hl_node *in, const hl_attr *attr, hl_shape *out);
    /* gx[i] = cotangent of input i given gy of node y; left HL_NONE where zero. Batched and broadcast sizes are the
     * driver's business, except that a rule's own broadcasting is explicit in nodes. */
    void (*vjp)(hl_graph *g, hl_node y, const hl_node *x, hl_node gy, hl_node *gx);
    /* Coefficient k >= 1 from x[i][0..k] and y[0..k-1]; HL_NONE is zero. */
    hl_node (*jet)(hl_graph *g, hl_node node, int k, const hl_node *const *x, const hl_node *y);
    bool over_rows;                  /* sums over the rows: batched in, shared out */
    double (*eval)(const double *x); /* elementwise ops: the value in double, for constant folding */
    double domain[2];                /* where tests draw the inputs */
};

/* A node, the shapes of its first two inputs (w is NULL if there is one), and whether masked weights count as well. */
struct hl_work {
    const hl_node_data *node;
    const hl_shape *x, *w;
    bool dense;
};

struct hl_graph {
    hl_context *ctx;
    hl_arena arena;
    hl_node_data *node; /* [count + 1]; node 0 is not used */
    size_t count, capacity;
    hl_node *table; /* open-addressing hash table of nodes */
    size_t table_size;
    hl_node *inputs, *params;
    size_t input_count, param_count, input_capacity, param_capacity;
    hl_status status;
    char message[256]; /* of the first error */
    hl_node fresh;     /* first node of the differentiation at hand; 0 outside one */
};

/* Add a node (or find its equal). Inputs are checked; lists and masks in attr must be interned. */
hl_node hl_graph_add(hl_graph *g, const hl_op *op, int inputs, const hl_node *in, const hl_attr *attr);
/* Record the first error and return HL_BAD. */
hl_node hl_graph_fail(hl_graph *g, hl_status status, const char *format, ...) __attribute__((format(printf, 3, 4)));
const hl_node_data *hl_graph_node(const hl_graph *g, hl_node n); /* NULL if n is not a node of g */
/* May a builder look through node n and take its inputs instead, as in -(-x) = x? Only if the differentiation at hand made
 * it: any other node the user may know, and hold or differentiate by. */
bool hl_graph_through(const hl_graph *g, hl_node n);
const int32_t *hl_graph_list(hl_graph *g, const int32_t *list, size_t len); /* copies to the arena; NULL on failure */
/* A mask from lo and hi (copied), with its transpose's hull; NULL on failure. */
const hl_mask *hl_graph_mask(hl_graph *g, size_t out, size_t in, const uint32_t *lo, const uint32_t *hi);

size_t hl_shape_size(const hl_shape *s);
bool hl_shape_equal(const hl_shape *a, const hl_shape *b); /* dimensions, not batched */
/* NumPy's rule; batched if either is. False if they do not fit. */
bool hl_shape_join(const hl_shape *a, const hl_shape *b, hl_shape *out);
/* "batched [2, 3]" */
const char *hl_shape_text(const hl_shape *s, char *buffer, size_t size);

#endif
