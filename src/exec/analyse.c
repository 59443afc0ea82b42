/* analyse.c - which nodes are live, when they can be computed, how, and along which leading axis. */
#include <string.h>

#include "exec/compile.h"
#include "op/op.h"

hl_node hl_storage(const hl_graph *g, hl_node n)
{
    while (g->node[n].op->kind == HL_KIND_VIEW)
        n = g->node[n].in[0];
    return n;
}

bool hl_elementwise(const hl_node_data *d)
{
    return d->op->kind == HL_KIND_UNARY || d->op->kind == HL_KIND_BINARY || d->op->kind == HL_KIND_TERNARY;
}

int hl_reads(const hl_compiler *c, hl_node n, const hl_node **list, hl_node buffer[3])
{
    const hl_node_data *d = hl_data(c, n);
    hl_form form = c->form[n];
    if (form <= HL_FORM_NODE) {
        *list = d->in;
        return d->inputs;
    }
    const hl_node_data *p = hl_data(c, c->partner[n]);
    if (form == HL_FORM_SLOPE) {
        buffer[0] = d->in[0] == c->partner[n] ? d->in[1] : d->in[0];
        buffer[1] = hl_data(c, p->in[1])->in[0];
        *list = buffer;
        return 2;
    }
    if (form == HL_FORM_SWISH) {
        buffer[0] = p->in[0];
        buffer[1] = d->in[0] == c->partner[n] ? d->in[1] : d->in[0];
        *list = buffer;
        return 2;
    }
    buffer[0] = p->in[0];
    buffer[1] = p->in[1];
    buffer[2] = d->in[0] == c->partner[n] ? d->in[1] : d->in[0];
    *list = buffer;
    return 3;
}

hl_node hl_swish_of(const hl_compiler *c, hl_node n)
{
    const hl_node_data *d = hl_data(c, n);
    if (c->form[n] == HL_FORM_SWISH)
        return hl_data(c, c->partner[n])->in[0];
    bool one = d->op == &hl_op_swish || d->op == &hl_op_swish_slope || d->op == &hl_op_swish_curve;
    return one && c->fuse && c->form[n] == HL_FORM_NODE && c->phase[n] == HL_PHASE_MAIN ? d->in[0] : HL_NONE;
}

bool hl_belongs(const hl_compiler *c, hl_node a, hl_node b)
{
    if (c->form[b] == HL_FORM_SLOPE)
        return c->form[a] == HL_FORM_NODE && hl_data(c, a)->op == &hl_op_tanh && c->partner[a] == b;
    return hl_swish_of(c, a) != HL_NONE && hl_swish_of(c, a) == hl_swish_of(c, b);
}

bool hl_joins(const hl_compiler *c, hl_node a, hl_node b)
{
    return hl_belongs(c, a, b) && c->segment[a] == c->segment[b] && c->run[a] == c->run[b] && !c->wide[a] &&
           !c->wide[b];
}

/* ---- live nodes and phases ---- */

static void mark_live(hl_compiler *c)
{
    for (size_t i = 0; i < c->outputs; i++)
        c->phase[c->output[i]] = HL_PHASE_MAIN;
    for (size_t n = c->g->count; n >= 1; n--)
        if (c->phase[n] != HL_PHASE_NONE)
            for (int i = 0; i < c->g->node[n].inputs; i++)
                c->phase[c->g->node[n].in[i]] = HL_PHASE_MAIN;
}

static hl_status assign_phases(hl_compiler *c)
{
    for (size_t n = 1; n <= c->g->count; n++) {
        const hl_node_data *d = hl_data(c, (hl_node)n);
        bool needs_sum = false, batched_input = false;
        if (c->phase[n] == HL_PHASE_NONE)
            continue;
        if (d->op->code == HL_DO_NOTHING && d->op->kind != HL_KIND_LEAF && d->op->kind != HL_KIND_VIEW)
            return hl_fail_at(c->plan->ctx, HL_ERR_UNSUPPORTED, hl_at_node(n), "op %s has no instruction", d->op->name);
        for (int i = 0; i < d->inputs; i++) {
            const hl_node_data *in = hl_data(c, d->in[i]);
            batched_input = batched_input || in->shape.batched;
            needs_sum = needs_sum || (!in->shape.batched && c->phase[d->in[i]] != HL_PHASE_PRE);
        }
        bool in_main = d->shape.batched || (d->op->over_rows && batched_input);
        if (in_main && needs_sum)
            return hl_fail_at(c->plan->ctx, HL_ERR_UNSUPPORTED, hl_at_node(n),
                              "op %s: a batched value depends on a sum over rows; use two plans", d->op->name);
        c->phase[n] = in_main ? HL_PHASE_MAIN : needs_sum ? HL_PHASE_POST : HL_PHASE_PRE;
    }
    return HL_OK;
}

static void count_uses(hl_compiler *c)
{
    for (size_t i = 0; i < c->outputs; i++)
        c->uses[c->output[i]] += 2; /* an output is never absorbed */
    for (size_t n = 1; n <= c->g->count; n++)
        if (c->phase[n] != HL_PHASE_NONE)
            for (int i = 0; i < c->g->node[n].inputs; i++)
                c->uses[c->g->node[n].in[i]]++;
}

/* ---- leading axes ---- */

/* A node runs along its first axis if it has two or more, or one and reads something that does. */
static void assign_axes(hl_compiler *c)
{
    for (size_t n = 1; n <= c->g->count; n++) {
        const hl_node_data *d = hl_data(c, (hl_node)n);
        if (c->phase[n] != HL_PHASE_MAIN)
            continue;
        const hl_shape *s = d->op->over_rows ? &hl_data(c, d->in[0])->shape : &d->shape;
        c->axis[n] = 1;
        if (s->rank == 0 || s->dim[0] < 2)
            continue;
        if (d->op->kind == HL_KIND_VIEW || d->op->kind == HL_KIND_LEAF) {
            if (d->inputs && c->axis[d->in[0]] == s->dim[0])
                c->axis[n] = s->dim[0];
            continue;
        }
        const hl_shape *x = d->inputs ? &hl_data(c, d->in[0])->shape : s;
        if (!d->op->local || !d->op->local(d, x->rank))
            continue;
        bool follows = s->rank >= 2 || x->rank >= 2;
        for (int i = 0; i < d->inputs && !follows; i++)
            follows = c->axis[d->in[i]] == s->dim[0];
        if (follows)
            c->axis[n] = s->dim[0];
    }
}

/* ---- operands that need no memory of their own ---- */

bool hl_fold_operand(const hl_compiler *c, hl_node n, hl_node u, hl_node *source, hl_operand *o)
{
    const hl_shape *t = &hl_data(c, n)->shape;
    bool main = t->batched;
    size_t axis = main ? c->axis[n] : 1, size = hl_shape_size(t);
    int skip = axis > 1 ? 1 : 0;
    *o = (hl_operand){ .step = HL_LANES, .ref = { .row_step = size * HL_LANES, .axis_step = size / axis * HL_LANES } };
    *source = u;
    if (hl_data(c, u)->op != &hl_op_broadcast)
        return true;
    *source = hl_data(c, u)->in[0];
    const hl_shape *s = &hl_data(c, *source)->shape;
    bool equal = true, ones = true, has_axis = skip && s->rank == t->rank && s->dim[0] == axis;
    for (int i = skip; i < t->rank; i++) {
        int at = i - (t->rank - s->rank);
        size_t dim = at < 0 ? 1 : s->dim[at];
        equal = equal && dim == t->dim[i];
        ones = ones && dim == 1;
    }
    size_t all = hl_shape_size(s), inner = has_axis ? all / axis : all;
    if (!main) {
        *o = (hl_operand){ .scalar = 1 };
        return all == 1;
    }
    if (s->batched)
        *o = (hl_operand){ .step = equal ? HL_LANES : 0,
                           .ref = { .row_step = all * HL_LANES, .axis_step = has_axis ? inner * HL_LANES : 0 } };
    else
        *o = (hl_operand){ .step = equal, .scalar = 1, .ref = { .axis_step = has_axis ? inner : 0 } };
    return equal || ones;
}

bool hl_folds(const hl_compiler *c, hl_node n, int i)
{
    if (c->form[n] == HL_FORM_PLUS)
        return i == 2;
    if (c->form[n] == HL_FORM_SWISH)
        return i == 1;
    return hl_elementwise(hl_data(c, n)) && hl_data(c, n)->op->kind != HL_KIND_UNARY;
}

/* Can the addend of a product be its starting value? A full tensor or a value per unit. */
static bool starts_from(const hl_compiler *c, hl_node n, hl_node addend)
{
    hl_node source;
    hl_operand o;
    return hl_fold_operand(c, n, addend, &source, &o) && (o.scalar ? o.step == 1 : o.step == HL_LANES) &&
           hl_data(c, n)->shape.rank <= (c->axis[n] > 1 ? 2 : 1);
}

/* ---- forms: fuse products with sums ---- */

static bool absorbable(const hl_compiler *c, hl_node user, hl_node n, const hl_op *op)
{
    return hl_data(c, n)->op == op && c->uses[n] == 1 && c->phase[n] == c->phase[user] && c->axis[n] == c->axis[user] &&
           c->form[n] == HL_FORM_NODE;
}

static void absorb(hl_compiler *c, hl_node n, hl_node product, hl_form form)
{
    c->form[n] = form;
    c->partner[n] = product;
    c->form[product] = HL_FORM_NONE;
}

/* Is n = 1 - b b? */
static bool is_slope(const hl_compiler *c, hl_node n)
{
    const hl_node_data *d = hl_data(c, n);
    double one;
    if (d->op != &hl_op_sub || !hl_scalar_value(c->g, d->in[0], &one) || one != 1 || c->phase[n] != HL_PHASE_MAIN)
        return false;
    const hl_node_data *square = hl_data(c, d->in[1]);
    return square->op == &hl_op_mul && square->in[0] == square->in[1] && c->uses[d->in[1]] == 1;
}

/* Slopes that only products use vanish into them: computing 1 - b b again is cheaper than reading it. */
static void choose_slopes(hl_compiler *c)
{
    uint32_t *products = c->run; /* not in use yet: products that could absorb a slope */
    for (size_t n = 1; n <= c->g->count; n++) {
        const hl_node_data *d = hl_data(c, (hl_node)n);
        if (c->form[n] == HL_FORM_NODE && d->op == &hl_op_mul && d->in[0] != d->in[1])
            for (int i = 0; i < 2; i++)
                if (is_slope(c, d->in[i]) && c->axis[d->in[i]] == c->axis[n] && !is_slope(c, d->in[1 - i]))
                    products[d->in[i]]++;
    }
    for (size_t n = 1; n <= c->g->count; n++) {
        const hl_node_data *d = hl_data(c, (hl_node)n);
        for (int i = 0; c->form[n] == HL_FORM_NODE && d->op == &hl_op_mul && i < 2; i++)
            if (products[d->in[i]] && products[d->in[i]] == c->uses[d->in[i]]) {
                c->form[n] = HL_FORM_SLOPE;
                c->partner[n] = d->in[i];
                c->form[d->in[i]] = HL_FORM_NONE;
                c->form[hl_data(c, d->in[i])->in[1]] = HL_FORM_NONE;
            }
    }
    memset(products, 0, (c->g->count + 1) * sizeof *products);
}

/* Does node n depend on node `on`? Inputs have lower numbers than what they are inputs of. */
static bool depends(hl_compiler *c, hl_node n, hl_node on)
{
    bool *mark = c->wide, result; /* not in use yet */
    if (n < on || on == HL_NONE)
        return false;
    mark[on] = true;
    for (hl_node k = on + 1; k <= n; k++)
        for (int i = 0; i < hl_data(c, k)->inputs && !mark[k]; i++)
            mark[k] = hl_data(c, k)->in[i] >= on && mark[hl_data(c, k)->in[i]];
    result = mark[n];
    memset(mark + on, 0, (size_t)(n - on + 1) * sizeof *mark);
    return result;
}

/* Swish of the same x, from which a factor must not follow, or the slope would be computed apart. */
static hl_node swish_beside(const hl_compiler *c, hl_node slope)
{
    return (hl_node)c->run[hl_data(c, slope)->in[0]];
}

static void choose_form(hl_compiler *c, hl_node n)
{
    const hl_node_data *d = hl_data(c, n);
    if (c->fuse && c->phase[n] == HL_PHASE_MAIN && d->op == &hl_op_mul && d->in[0] != d->in[1])
        for (int i = 0; i < 2; i++)
            if (absorbable(c, n, d->in[i], &hl_op_swish_slope) &&
                !depends(c, d->in[1 - i], swish_beside(c, d->in[i]))) {
                absorb(c, n, d->in[i], HL_FORM_SWISH);
                return;
            }
    if (c->fuse && c->phase[n] == HL_PHASE_MAIN && d->op == &hl_op_mul && d->in[0] != d->in[1])
        for (int i = 0; i < 2; i++)
            if (absorbable(c, n, d->in[i], &hl_op_mul)) {
                absorb(c, n, d->in[i], HL_FORM_MULMUL);
                return;
            }
    if (!c->fuse || c->phase[n] != HL_PHASE_MAIN || (d->op != &hl_op_add && d->op != &hl_op_sub) ||
        d->in[0] == d->in[1])
        return;
    for (int i = 0; i < 2 && d->op == &hl_op_add; i++)
        for (int t = 0; t < 2; t++)
            if (absorbable(c, n, d->in[i], t ? &hl_op_linear_t : &hl_op_linear) &&
                hl_data(c, d->in[i])->attr.i[0] == 0 && starts_from(c, n, d->in[1 - i])) {
                absorb(c, n, d->in[i], HL_FORM_PLUS);
                return;
            }
    for (int i = 0; i < 2; i++)
        if (absorbable(c, n, d->in[i], &hl_op_mul)) {
            absorb(c, n, d->in[i], d->op == &hl_op_add ? HL_FORM_MULADD : i == 0 ? HL_FORM_MULSUB : HL_FORM_SUBMUL);
            return;
        }
}

static void find_swish(hl_compiler *c)
{
    uint32_t *swish = c->run; /* of each x; not in use yet */
    for (size_t n = 1; n <= c->g->count; n++)
        if (c->form[n] == HL_FORM_NODE && c->phase[n] == HL_PHASE_MAIN && hl_data(c, (hl_node)n)->op == &hl_op_swish)
            swish[hl_data(c, (hl_node)n)->in[0]] = (uint32_t)n;
}

/* The first product with the slope of tanh whose other factor does not follow from it. */
static void find_slope(hl_compiler *c, hl_node n)
{
    const hl_node *in;
    hl_node buffer[3];
    hl_reads(c, n, &in, buffer);
    hl_node y = in[1];
    if (hl_data(c, y)->op == &hl_op_tanh && c->form[y] == HL_FORM_NODE && c->axis[y] == c->axis[n] &&
        c->partner[y] == HL_NONE && !depends(c, in[0], y))
        c->partner[y] = n;
}

/* Swish and its derivatives wait for the one of the same x that has a factor, tanh for its slope. */
static void find_factors(hl_compiler *c)
{
    uint32_t *factored = c->run; /* not in use yet */
    memset(factored, 0, (c->g->count + 1) * sizeof *factored);
    for (size_t n = 1; n <= c->g->count; n++)
        if (c->form[n] == HL_FORM_SWISH)
            factored[hl_swish_of(c, (hl_node)n)] = (uint32_t)n;
        else if (c->form[n] == HL_FORM_SLOPE)
            find_slope(c, (hl_node)n);
    for (size_t n = 1; n <= c->g->count; n++)
        if (c->form[n] == HL_FORM_NODE && hl_swish_of(c, (hl_node)n) != HL_NONE)
            c->partner[n] = (hl_node)factored[hl_swish_of(c, (hl_node)n)];
    memset(factored, 0, (c->g->count + 1) * sizeof *factored);
}

static void choose_forms(hl_compiler *c)
{
    for (size_t n = 1; n <= c->g->count; n++)
        if (c->phase[n] != HL_PHASE_NONE)
            switch (hl_data(c, (hl_node)n)->op->kind) {
            case HL_KIND_LEAF:
            case HL_KIND_VIEW:
                break;
            default:
                c->form[n] = HL_FORM_NODE;
            }
    if (c->fuse)
        choose_slopes(c);
    find_swish(c);
    for (size_t n = 1; n <= c->g->count; n++)
        if (c->form[n] == HL_FORM_NODE)
            choose_form(c, (hl_node)n);
    find_factors(c);
}

/* A broadcast is a value of its own only if something reads it that cannot fold it. */
static void fold_broadcasts(hl_compiler *c)
{
    uint32_t *needed = c->run; /* not in use yet */
    for (size_t i = 0; i < c->outputs; i++)
        needed[hl_storage(c->g, c->output[i])] = 1;
    for (size_t n = 1; n <= c->g->count; n++) {
        const hl_node *in;
        hl_node buffer[3], source;
        hl_operand o;
        if (c->form[n] == HL_FORM_NONE)
            continue;
        int reads = hl_reads(c, (hl_node)n, &in, buffer);
        for (int i = 0; i < reads; i++) {
            bool folded = hl_folds(c, (hl_node)n, i) && hl_fold_operand(c, (hl_node)n, in[i], &source, &o);
            needed[hl_storage(c->g, folded ? source : in[i])] = 1;
        }
    }
    for (size_t n = 1; n <= c->g->count; n++) {
        if (c->form[n] == HL_FORM_NODE && hl_data(c, (hl_node)n)->op == &hl_op_broadcast && !needed[n])
            c->form[n] = HL_FORM_NONE;
        needed[n] = 0;
    }
}

hl_status hl_analyse(hl_compiler *c)
{
    mark_live(c);
    if (assign_phases(c) != HL_OK)
        return HL_ERR_UNSUPPORTED;
    count_uses(c);
    assign_axes(c);
    choose_forms(c);
    fold_broadcasts(c);
    return HL_OK;
}
