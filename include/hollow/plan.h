/* hollow/plan.h - compile a graph once, run it many times.
 *
 * A plan is independent of its graph, which may be changed or freed afterwards. Running a plan allocates nothing, and its memory does
 * not depend on the number of rows. Results are bitwise identical for any number of threads; the result of a row does not depend on
 * the other rows. Arrays are contiguous, row by row, in the plan's precision. */
#ifndef HOLLOW_PLAN_H
#define HOLLOW_PLAN_H

#include "hollow/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hl_plan hl_plan; /* opaque */

/* Zero in any field means the default. */
typedef struct hl_plan_options {
    /* Precision. Default HL_F32. */
    hl_dtype dtype;
    /* Rows that are processed together, at most 1024. Default chosen from the graph. Does not change results. */
    size_t chunk_rows;
    /* Instruction set: "avx512", "avx2" or "base". Default the best that the machine supports. */
    const char *isa;
    /* For benchmarks. Nonzero: do not skip masked weights. Their gradients are then not zero. */
    int dense_masks;
    /* For benchmarks. Nonzero: do not fuse elementwise operations. */
    int no_fusion;
} hl_plan_options;

/* Compile the graph for these outputs. If the graph has an error, this call returns it. */
HL_API hl_status hl_plan_create(hl_context *context, const hl_graph *graph, size_t outputs, const hl_node *output,
                                const hl_plan_options *options, hl_plan **plan);
HL_API void hl_plan_free(hl_plan *plan); /* takes NULL */

/* Run the plan. input[i] has rows x the shape of the graph's input i, param[i] has the shape of parameter i; inputs and parameters that
 * the outputs do not use may be NULL. output[i] receives rows x its shape if it is batched, else its shape. Outputs must not overlap
 * inputs or parameters. With rows = 0, sums over rows are 0. */
HL_API hl_status hl_plan_run(hl_plan *plan, size_t rows, const void *const *input, const void *const *param,
                             void *const *output);

/* Properties of a plan. */
typedef struct hl_plan_info {
    hl_dtype dtype;
    size_t chunk_rows; /* rows per chunk */
    size_t bytes;      /* memory that the plan owns */
    size_t nodes;      /* nodes that the outputs use */
    size_t segments, instructions;
    size_t fused;              /* instructions in fused groups */
    double flops_per_row;      /* floating-point operations per row; a multiply-add counts as 2, masked weights as 0 */
    double gemm_flops_per_row; /* those in matrix products */
} hl_plan_info;
HL_API hl_plan_info hl_plan_describe(const hl_plan *plan);
/* Write a listing of segments and instructions to buffer, as snprintf does. Returns the length of the whole listing. */
HL_API int hl_plan_text(const hl_plan *plan, char *buffer, size_t size);

/* Measure the machine's peak: run `rounds` rounds of independent multiply-adds with the widest vectors of an instruction set (NULL: the
 * best), and return the number of floating-point operations. The caller measures the time. Returns 0 if the machine does not support
 * the instruction set. */
HL_API double hl_fma_burst(hl_dtype dtype, const char *isa, size_t rounds);

#ifdef __cplusplus
}
#endif

#endif
