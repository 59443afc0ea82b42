/* hollow/plan.h - compile a graph once, run it many times.
 *
 * A plan is a copy: the graph may change or be freed afterwards. `run` allocates nothing and its memory does not depend on
 * the number of rows. Its results are the same bits for any number of threads, and a row's result does not depend on the
 * other rows. Arrays are plain, row by row, in the plan's precision. */
#ifndef HOLLOW_PLAN_H
#define HOLLOW_PLAN_H

#include "hollow/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hl_plan hl_plan; /* opaque */

/* Zero in any field means the default. */
typedef struct hl_plan_options {
    hl_dtype dtype; /* default HL_F32 */
    size_t
        chunk_rows; /* rows that go through together, at most 1024; default chosen from the graph; changes no row's bits */
    const char *isa; /* "avx512", "avx2", "base"; default the best that the machine runs */
    int dense_masks; /* nonzero: treat masked weights as any others, to measure what skipping them gains; their
                          * gradients are then not zero */
    int no_fusion;   /* nonzero: elementwise runs are not fused (to measure what fusion gains) */
} hl_plan_options;

/* Compile the graph for these outputs. Fails with the graph's first error if it has one. */
HL_API hl_status hl_plan_create(hl_context *context, const hl_graph *graph, size_t outputs, const hl_node *output,
                                const hl_plan_options *options, hl_plan **plan);
HL_API void hl_plan_free(hl_plan *plan); /* takes NULL */

/* Run over `rows` rows. input[i] is rows x the shape of the graph's input i, param[i] the shape of its parameter i (either
 * may be NULL if the outputs do not need it), output[i] receives rows x shape if batched, else shape. Outputs must not
 * overlap inputs or parameters. rows = 0 is allowed: sums over rows are then 0. */
HL_API hl_status hl_plan_run(hl_plan *plan, size_t rows, const void *const *input, const void *const *param,
                             void *const *output);

/* What the plan is made of. */
typedef struct hl_plan_info {
    hl_dtype dtype;
    size_t chunk_rows, bytes;                    /* rows per chunk; bytes of memory that the plan owns */
    size_t nodes, segments, instructions, fused; /* live nodes; segments; instructions; those inside fused runs */
    double flops_per_row;      /* executed multiply-adds (as 2) and elementwise work per row, masks skipped */
    double gemm_flops_per_row; /* the part of it in matrix products */
} hl_plan_info;
HL_API hl_plan_info hl_plan_describe(const hl_plan *plan);
/* A listing of segments and instructions, written to buffer as snprintf does; returns the length it needs. */
HL_API int hl_plan_text(const hl_plan *plan, char *buffer, size_t size);

/* Run `rounds` rounds of independent multiply-adds with the widest vectors of an instruction set (NULL: the best) and return
 * the number of floating-point operations done, so that a caller who times it knows the machine's peak; 0 if the machine does
 * not run that set. */
HL_API double hl_fma_burst(hl_dtype dtype, const char *isa, size_t rounds);

#ifdef __cplusplus
}
#endif

#endif
