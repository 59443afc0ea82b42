/* plan.c - the public face: create, run, describe. */
#include <string.h>

#include "exec/compile.h"
#include "op/op.h"

static hl_status compiler_init(hl_compiler *c)
{
    hl_context *ctx = c->plan->ctx;
    size_t n = c->g->count + 1;
    c->phase = hl_calloc(ctx, n, sizeof *c->phase);
    c->form = hl_calloc(ctx, n, sizeof *c->form);
    c->partner = hl_calloc(ctx, n, sizeof *c->partner);
    c->uses = hl_calloc(ctx, n, sizeof *c->uses);
    c->axis = hl_calloc(ctx, n, sizeof *c->axis);
    c->segment = hl_calloc(ctx, n, sizeof *c->segment);
    c->order = hl_calloc(ctx, n, sizeof *c->order);
    c->space = hl_calloc(ctx, n, sizeof *c->space);
    c->offset = hl_calloc(ctx, n, sizeof *c->offset);
    c->run = hl_calloc(ctx, n, sizeof *c->run);
    c->wide = hl_calloc(ctx, n, sizeof *c->wide);
    c->tiled_sum = hl_calloc(ctx, n, sizeof *c->tiled_sum);
    bool ok = c->phase && c->form && c->partner && c->uses && c->axis && c->segment && c->order && c->space &&
              c->offset && c->run && c->wide && c->tiled_sum;
    return ok ? HL_OK : HL_ERR_NOMEM;
}

static void compiler_free(hl_compiler *c)
{
    hl_context *ctx = c->plan->ctx;
    void *all[] = { c->phase, c->form,  c->partner, c->uses, c->axis, c->segment,
                    c->order, c->space, c->offset,  c->run,  c->wide, c->tiled_sum };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        hl_free(ctx, all[i]);
}

static hl_status check_outputs(hl_context *ctx, const hl_graph *g, size_t outputs, const hl_node *output)
{
    if (outputs == 0 || !output)
        return hl_fail(ctx, HL_ERR_INVALID, "hl_plan_create: no outputs");
    for (size_t i = 0; i < outputs; i++)
        if (!hl_graph_node(g, output[i]))
            return hl_fail(ctx, HL_ERR_INVALID, "hl_plan_create: output %zu is not a node of the graph", i);
    return HL_OK;
}

static hl_status compile(hl_plan *p, const hl_graph *g, size_t outputs, const hl_node *output, const hl_plan_options *o)
{
    hl_compiler c = { .plan = p, .g = g, .outputs = outputs, .output = output, .fuse = !o->no_fusion };
    hl_status status = compiler_init(&c);
    p->chunk_panels = (o->chunk_rows + HL_LANES - 1) / HL_LANES;
    if (p->chunk_panels > HL_CHUNK_PANELS)
        p->chunk_panels = HL_CHUNK_PANELS;
    if (status == HL_OK)
        status = hl_analyse(&c);
    for (size_t n = 1; status == HL_OK && n <= g->count; n++)
        p->nodes += c.phase[n] != HL_PHASE_NONE;
    if (status == HL_OK)
        status = hl_schedule(&c);
    if (status == HL_OK)
        status = hl_lower(&c);
    compiler_free(&c);
    return status;
}

hl_status hl_plan_create(hl_context *ctx, const hl_graph *g, size_t outputs, const hl_node *output,
                         const hl_plan_options *options, hl_plan **plan)
{
    static const hl_plan_options defaults;
    const hl_plan_options *o = options ? options : &defaults;
    if (!ctx)
        return HL_ERR_INVALID;
    if (!g || !plan)
        return hl_fail(ctx, HL_ERR_INVALID, "hl_plan_create: graph or plan is NULL");
    *plan = NULL;
    if (hl_graph_status(g) != HL_OK)
        return hl_fail(ctx, hl_graph_status(g), "%s", g->message);
    if (check_outputs(ctx, g, outputs, output) != HL_OK)
        return HL_ERR_INVALID;
    if (!hl_dtype_size(o->dtype))
        return hl_fail(ctx, HL_ERR_INVALID, "hl_plan_create: unknown dtype %d", (int)o->dtype);
    if (o->chunk_rows > 1 << 20)
        return hl_fail(ctx, HL_ERR_INVALID, "hl_plan_create: chunk_rows %zu is more than %d", o->chunk_rows, 1 << 20);
    const hl_kernels *k = hl_kernels_pick(o->dtype, o->isa);
    if (!k)
        return hl_fail(ctx, HL_ERR_UNSUPPORTED, "hl_plan_create: this machine has no kernels for '%s'", o->isa);
    hl_plan *p = hl_calloc(ctx, 1, sizeof *p);
    if (!p)
        return HL_ERR_NOMEM;
    p->ctx = ctx;
    p->k = k;
    p->element = hl_dtype_size(o->dtype);
    p->dense_masks = o->dense_masks != 0;
    hl_arena_init(&p->arena, ctx);
    hl_status status = compile(p, g, outputs, output, o);
    if (status != HL_OK) {
        hl_plan_free(p);
        return status;
    }
    p->flops = hl_plan_describe(p).flops_per_row;
    *plan = p;
    return HL_OK;
}

void hl_plan_free(hl_plan *p)
{
    if (!p)
        return;
    hl_context *ctx = p->ctx;
    hl_arena_free(&p->arena);
    hl_free(ctx, p->segment);
    hl_free(ctx, p->reduction);
    hl_free(ctx, p->slab);
    hl_free(ctx, p);
}

hl_status hl_plan_run(hl_plan *p, size_t rows, const void *const *input, const void *const *param, void *const *output)
{
    if (!p)
        return HL_ERR_INVALID;
    for (size_t i = 0; i < p->inputs && rows; i++)
        if (p->input[i].needed && (!input || !input[i]))
            return hl_fail(p->ctx, HL_ERR_INVALID, "hl_plan_run: input %zu is NULL", i);
    for (size_t i = 0; i < p->params; i++)
        if (p->param_needed[i] && (!param || !param[i]))
            return hl_fail(p->ctx, HL_ERR_INVALID, "hl_plan_run: parameter %zu is NULL", i);
    for (size_t i = 0; i < p->outputs; i++)
        if (!output || (!output[i] && (rows || !p->output[i].batched)))
            return hl_fail(p->ctx, HL_ERR_INVALID, "hl_plan_run: output %zu is NULL", i);
    hl_execute(p, rows, input, param, output);
    return HL_OK;
}

static bool is_product(hl_code code)
{
    return (code >= HL_DO_LINEAR && code <= HL_DO_MATMUL) || code >= HL_DO_CONV;
}

hl_plan_info hl_plan_describe(const hl_plan *p)
{
    hl_plan_info info = { 0 };
    if (!p)
        return info;
    info.dtype = p->k->dtype;
    info.chunk_rows = p->chunk_panels * HL_LANES;
    info.bytes = p->slab_bytes;
    info.nodes = p->nodes;
    info.segments = p->segments;
    info.instructions = p->instrs;
    info.fused = p->fused;
    for (size_t s = 0; s < p->segments; s++)
        for (size_t i = p->segment[s].first; i < p->segment[s].reduce_first + p->segment[s].reduce_count; i++) {
            info.flops_per_row += p->instr[i].flops;
            info.gemm_flops_per_row += is_product(p->instr[i].code) ? p->instr[i].flops : 0;
        }
    return info;
}

static const char *const space_name[] = { "shared", "param", "chunk", "tile", "panel" };

int hl_plan_text(const hl_plan *p, char *buffer, size_t size)
{
    hl_text text = hl_text_start(buffer, buffer ? size : 0);
    if (!p)
        return 0;
    hl_text_add(&text, "chunk of %zu panels, %zu segments, %zu instructions\n", p->chunk_panels, p->segments,
                p->instrs);
    for (size_t s = 0; s < p->segments; s++) {
        const hl_segment *g = &p->segment[s];
        hl_text_add(&text, "segment %zu: axis %zu, tile %zu, group %zu, %zu elements per panel of the tile\n", s,
                    g->axis, g->tile, g->group, g->tile_elements);
        for (size_t r = p->run_first[s]; r < p->run_first[s + 1]; r++)
            for (size_t i = p->run[r].first; i < p->run[r].first + p->run[r].count; i++) {
                const hl_instr *t = &p->instr[i];
                hl_text_add(&text, "  %c %%%d %s%s %zu -> %s (", p->run[r].fused ? '|' : ' ', (int)t->node, t->name,
                            t->inputs == 3 && t->code == HL_DO_TERNARY ? " (3)" : "", t->entries,
                            space_name[t->out.ref.space]);
                for (int j = 0; j < t->inputs; j++)
                    hl_text_add(&text, "%s%s", j ? ", " : "", space_name[t->in[j].ref.space]);
                hl_text_add(&text, ")\n");
            }
        for (size_t i = g->reduce_first; i < g->reduce_first + g->reduce_count; i++)
            hl_text_add(&text, "  + %%%d %s %zu\n", (int)p->instr[i].node, p->instr[i].name, p->instr[i].entries);
    }
    return (int)text.length;
}

const char *hl_context_isa(const hl_context *ctx)
{
    (void)ctx;
    return hl_kernels_pick(HL_F32, NULL)->isa;
}

double hl_fma_burst(hl_dtype dtype, const char *isa, size_t rounds)
{
    double sink[64];
    const hl_kernels *k = hl_dtype_size(dtype) ? hl_kernels_pick(dtype, isa) : NULL;
    return k ? k->fma_burst(rounds, sink) : 0;
}
