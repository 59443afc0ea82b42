/* plan.h - the compiled form of a graph.
 *
 * Panels of a chunk are numbered q = panel * axis + i, where i runs over the leading axis of a segment that has one (axis = 1
 * otherwise). A batched tensor of per-row shape [axis, rest] is, for one q, `rest` entries of 16 lanes, contiguous in q. */
#ifndef HL_PLAN_H
#define HL_PLAN_H

#include "graph/graph.h"
#include "hollow/plan.h"
#include "kernel/kernel.h"

#define HL_CHUNK_PANELS 64 /* most panels in a chunk: its sums over rows are one chain in the plan's precision */

/* Where a value lives. */
typedef enum hl_space {
    HL_SPACE_SHARED, /* one value for all rows: constants, prologue, epilogue, results of sums over rows */
    HL_SPACE_PARAM,  /* the user's parameter array; offset is its number */
    HL_SPACE_CHUNK,  /* batched, all panels of the chunk */
    HL_SPACE_TILE,   /* batched, the panels of the tile that a thread works on */
    HL_SPACE_PANEL   /* batched, one panel: inside a fused run */
} hl_space;

/* Element address for panel q of a tile:
 * CHUNK  base + offset + (q / axis) * row_step + (q % axis) * axis_step
 * TILE   base + offset + (q - first of the tile) * row_step;   PANEL  base + offset
 * SHARED base + offset + (q % axis) * axis_step;  PARAM  likewise in the user's array */
typedef struct hl_ref {
    hl_space space;
    size_t offset, row_step, axis_step;
} hl_ref;

/* An operand: where it lives and, for elementwise kernels, how entries step through it (see hl_arg). */
typedef struct hl_operand {
    hl_ref ref;
    int32_t step, scalar;
} hl_operand;

typedef struct hl_instr {
    hl_code code;
    int kernel; /* number of the elementwise function */
    bool wide;  /* elementwise over all panels of the tile in one call */
    int joined; /* swish, tanh: it computes the results of so many instructions after it too; -1: one before it does */
    hl_node node;        /* of the graph, for listings */
    const char *name;    /* the op's name */
    hl_operand out, *in; /* in: in the plan's arena */
    int inputs;
    size_t entries;           /* of the output, for one panel; elements if shared */
    hl_shape shape, in_shape; /* of output and first input, without the segment's axis */
    hl_attr attr;             /* lists and masks copied to the plan's arena */
    size_t m, n, k;   /* products: repetitions, units, inputs; conv: n, k the kernel's size; conv_w: m the height */
    size_t groups;    /* sums over rows: weights of their own along the axis; conv_w: the width */
    size_t reduction; /* number of the sum over rows that it feeds */
    double flops;     /* per row */
} hl_instr;

/* A sum over rows: `size` elements, summed in the plan's precision over about a thousand rows and then in double. */
typedef struct hl_reduction {
    size_t size;
    size_t value;   /* offset of the result in SHARED */
    size_t total;   /* offset of `size` doubles in the slab's double part */
    size_t partial; /* offset in the partial sums of a group, or unused */
    bool grouped;   /* summed tile by tile into the groups' partial sums */
    const hl_mask *mask;
    size_t output; /* user output that is this very value, or SIZE_MAX */
} hl_reduction;

/* A stretch of instructions without a meeting of threads. */
typedef struct hl_segment {
    size_t axis;                          /* 1: per panel */
    size_t first, count;                  /* instructions that run tile by tile */
    size_t reduce_first, reduce_count;    /* sums over rows after them, split by output */
    bool grouped;                         /* has grouped reductions */
    size_t tile, group;                   /* panels (q) per tile and per group */
    size_t tile_elements, panel_elements; /* memory per panel of the tile, and of one panel */
} hl_segment;

/* Runs of instructions inside a segment; fused ones go panel by panel. */
typedef struct hl_run {
    size_t first, count;
    bool fused;
} hl_run;

typedef struct hl_port {
    hl_ref ref;
    size_t elements; /* per row, or in all if shared */
    bool batched, needed;
    size_t reduction; /* output written in place by a sum over rows, or SIZE_MAX */
} hl_port;

/* Result of recent timings with several threads: when to try again, and the back-off factor (share.c). */
typedef struct hl_sharing {
    double alone_until, backoff;
    double woke; /* when the first of the last runs woke the threads; 0 if they shared the last run */
} hl_sharing;

struct hl_plan {
    hl_context *ctx;
    hl_arena arena;
    const hl_kernels *k;
    size_t element; /* bytes */
    bool dense_masks;
    size_t nodes, chunk_panels;
    hl_instr *instr;
    size_t instrs, pre_first, pre_count, post_first, post_count, fused;
    hl_segment *segment;
    size_t segments;
    hl_run *run; /* of all segments, in order; segment s has runs run_first[s] .. run_first[s + 1] */
    size_t *run_first;
    hl_reduction *reduction;
    size_t reductions, groups, group_elements; /* most groups in a chunk; elements of partial sums per group */
    hl_port *input, *output;
    size_t inputs, outputs, params;
    size_t *param_size, *param_copy; /* elements; offset of a padded copy in SHARED, or SIZE_MAX */
    bool *param_needed;
    /* one slab: totals (doubles); shared, chunk, group partials (elements); per thread: scratch and tile (elements) */
    char *slab;
    size_t slab_bytes, shared_elements, small_elements, chunk_elements, thread_elements, scratch_elements;
    char *shared, *chunk, *partials, *threads;
    double *totals;
    double flops; /* of a row */
    hl_sharing sharing;
};

/* Should the team share this run, or is the caller faster alone? If it should, may the run wait for threads that sleep? And, after a run that woke
 * them and went on alone, or was shared: from when to when, and how long the threads waited for each other. */
bool hl_share(const hl_plan *p, size_t rows, double now);
bool hl_share_waits(const hl_plan *p, size_t rows);
void hl_share_woke(hl_sharing *s, double start, double end);
void hl_share_learn(hl_sharing *s, int threads, double start, double end, double waited);

/* Run. An input that is NULL counts as zeros; an output that is NULL is not written. */
void hl_execute(hl_plan *p, size_t rows, const void *const *input, const void *const *param, void *const *output);

/* The same on rows of doubles, whatever the plan's precision: the one way from a caller's arrays through a network. */
typedef struct hl_row_in {
    const double *p;     /* NULL: zeros */
    size_t pitch;        /* values from one row to the next */
    const size_t *index; /* row r is at p + index[r] * pitch; NULL: at p + r * pitch */
} hl_row_in;
typedef struct hl_row_out {
    double *p; /* NULL: not written */
    size_t pitch;
    void *shared; /* of a result that is not batched, in the plan's precision; NULL: not written */
} hl_row_out;
void hl_execute_rows(hl_plan *p, size_t rows, const hl_row_in *input, const void *const *param,
                     const hl_row_out *output);

/* What an instruction runs on: the panels q0 <= q < q1 of a chunk whose panels below `full` have 16 valid rows, the others
 * `tail`. Prologue and epilogue run with axis 1, q0 = 0, q1 = 1. */
typedef struct hl_frame {
    const hl_plan *p;
    const void *const *param;
    char *tile, *panel, *scratch;            /* this thread's */
    char *partials;                          /* of the group at hand */
    bool first;                              /* the group's first tile: its sums start here */
    size_t axis, tile_q, q0, q1, full, tail; /* tile_q: the panel that `tile` starts with */
} hl_frame;
char *hl_address(const hl_frame *f, const hl_ref *r, size_t q);
/* Of `panels` panels from q on, `stride` apart, those that have rows in their first 8 lanes only; they are the last. */
size_t hl_half_panels(const hl_frame *f, size_t q, size_t panels, size_t stride);
void hl_instr_run(const hl_frame *f, const hl_instr *t); /* all panels of the frame */
/* Units of a product's result that can be computed apart (0: none); and results lo <= u < hi of it, for all panels. A unit's
 * bits are the same in any range, if no range has fewer than three. */
size_t hl_instr_units(const hl_instr *t);
void hl_instr_linear(const hl_frame *f, const hl_instr *t, size_t lo, size_t hi);
void hl_instr_panel(const hl_frame *f, const hl_instr *t, size_t q); /* elementwise, one panel */
void hl_instr_shared(const hl_frame *f, const hl_instr *t);          /* prologue and epilogue */
/* A sum over rows, over the whole chunk: share `part` of `parts` of its results into `value`. */
void hl_instr_reduce(const hl_frame *f, const hl_instr *t, size_t part, size_t parts, char *value, bool add);

/* Convolutions, for one panel (lanes 16) or a shared value (lanes 1); and units [lo, hi) of a kernel's gradient. */
void hl_conv_panels(const hl_frame *f, const hl_instr *t, size_t lanes); /* all of the frame's */
size_t hl_conv_room(const hl_instr *t);                                  /* elements of scratch for it */
void hl_conv_weights(const hl_frame *f, const hl_instr *t, size_t lo, size_t hi, size_t lanes, char *value, bool add);

/* Places for intervals of life: values that do not live at the same time may share memory. */
typedef struct hl_life {
    size_t size, first, last, offset;
    size_t next; /* of hl_life_place: the next one by offset */
} hl_life;
/* Assign offsets; returns the total size. */
size_t hl_life_place(hl_life *life, size_t count);

#endif
