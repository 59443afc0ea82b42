/* compile.h - what the stages of compilation hand on. Each array has one entry per node of the graph. */
#ifndef HL_COMPILE_H
#define HL_COMPILE_H

#include "exec/plan.h"

typedef enum hl_phase {
    HL_PHASE_NONE, /* not live */
    HL_PHASE_PRE,  /* shared, from parameters and constants alone */
    HL_PHASE_MAIN, /* batched, or a sum over rows */
    HL_PHASE_POST  /* shared, needs a sum over rows */
} hl_phase;

/* How a node is computed. */
typedef enum hl_form {
    HL_FORM_NONE,   /* no work: leaf, view, folded broadcast, or absorbed by its only user */
    HL_FORM_NODE,   /* one instruction of its own op */
    HL_FORM_MULADD, /* add(mul(a, b), c) */
    HL_FORM_MULSUB, /* sub(mul(a, b), c) */
    HL_FORM_SUBMUL, /* sub(c, mul(a, b)) */
    HL_FORM_MULMUL, /* mul(mul(a, b), c) */
    HL_FORM_SLOPE,  /* mul(a, 1 - b b): the derivative of tanh, times a */
    HL_FORM_SWISH,  /* mul(swish_slope(x), a) */
    HL_FORM_PLUS    /* add(linear(x, w), c): the product starts from c */
} hl_form;

typedef struct hl_compiler {
    hl_plan *plan;
    const hl_graph *g;
    size_t outputs;
    const hl_node *output;
    bool fuse;
    hl_phase *phase;
    hl_form *form;
    hl_node *partner; /* what a MULADD..PLUS form absorbed: a product, or a slope; of swish and tanh: see hl_swish_of */
    uint32_t *uses;
    size_t *axis;    /* leading axis of the segment it runs in; 1 for none; 0 for not in a segment */
    size_t *segment; /* segment it runs in */
    hl_node *order;  /* nodes with work, in order: prologue, segments, epilogue */
    size_t ordered;
    hl_space *space;
    size_t *offset;
    uint32_t *run;   /* run of its segment that it belongs to */
    bool *wide;      /* elementwise over all panels of a tile at once */
    bool *tiled_sum; /* a sum over rows that runs tile by tile */
} hl_compiler;

static inline const hl_node_data *hl_data(const hl_compiler *c, hl_node n)
{
    return &c->g->node[n];
}

/* The node whose memory a node's value is: itself, or what a chain of views looks at. */
hl_node hl_storage(const hl_graph *g, hl_node n);
/* The nodes whose values the instruction of node n reads; the broadcasts among them may be folded. At most 3 + inputs. */
int hl_reads(const hl_compiler *c, hl_node n, const hl_node **list, hl_node buffer[3]);
/* Operand u of an elementwise node n: fills how it is stepped through, or returns false if it must be a value of its own.
 * *source is the node that is read. */
bool hl_fold_operand(const hl_compiler *c, hl_node n, hl_node u, hl_node *source, hl_operand *operand);
/* May operand i of node n's instruction be folded at all? */
bool hl_folds(const hl_compiler *c, hl_node n, int i);
/* The node that operand i really reads (a folded broadcast's source), behind views. */
hl_node hl_read_source(const hl_compiler *c, hl_node n, int i, hl_node u);
bool hl_elementwise(const hl_node_data *d);
/* Swish and its derivatives of the same x are computed in one pass if they stand one after the other, and so are tanh and a product with its
 * slope. The node that the others are to wait for, as it has a factor, is their partner. The x of swish or of a derivative; HL_NONE for
 * all other nodes. */
hl_node hl_swish_of(const hl_compiler *c, hl_node n);
/* Can nodes a and b be computed in one pass? And are they, as neighbours in c->order, after hl_schedule? */
bool hl_belongs(const hl_compiler *c, hl_node a, hl_node b);
bool hl_joins(const hl_compiler *c, hl_node a, hl_node b);

hl_status hl_analyse(hl_compiler *c);  /* analyse.c: live, phase, axis, form */
hl_status hl_schedule(hl_compiler *c); /* schedule.c: order, segments, runs */
hl_status hl_lower(hl_compiler *c);    /* lower.c: memory and instructions */

#endif
