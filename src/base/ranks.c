/* ranks.c - processes that work on one training.
 *
 * A sum over a batch is a tree over its shares: share k is leaf k, and a node of level l is the sum of the two of level l - 1 below it. A
 * rank adds up what it can of its own leaves; the largest nodes that it has whole go to all, who add up the rest. Each addition is
 * the same one whoever makes it. */
#include "base/ranks.h"

#include <stdio.h>
#include <string.h>

#include "hollow/ranks.h"

enum { LEVELS = 8 * sizeof(size_t) };

typedef struct node {
    size_t level, index;
    double *sum;
} node;

struct hl_shares {
    hl_context *ctx;
    size_t rows, share, size, count; /* count: of shares in all */
    size_t next, open;               /* the share to come; nonzero: the last node is being filled */
    node own[2 * LEVELS];            /* whole nodes of this rank, from left to right */
    size_t owned;
    double *memory; /* of own sums */
    double *all;    /* what all ranks gave; NULL if there is one */
    size_t *bytes;  /* that each rank gives */
    node *tree;     /* nodes of all ranks */
};

/* ---- the context ---- */

hl_status hl_context_set_ranks(hl_context *ctx, const hl_ranks *ranks)
{
    if (!ctx)
        return HL_ERR_INVALID;
    if (!ranks) {
        ctx->ranks = (hl_ranks){ 0 };
        return HL_OK;
    }
    if (!ranks->size || ranks->rank >= ranks->size || (ranks->size > 1 && !ranks->gather))
        return hl_fail(ctx, HL_ERR_INVALID, "hl_context_set_ranks: rank %zu of %zu is invalid%s", ranks->rank,
                       ranks->size, ranks->gather ? "" : ", or the gather function is NULL");
    ctx->ranks = *ranks;
    return HL_OK;
}

size_t hl_context_ranks(const hl_context *ctx)
{
    return ctx && ctx->ranks.size > 1 ? ctx->ranks.size : 1;
}

double hl_context_gathered(const hl_context *ctx)
{
    return ctx ? ctx->gathered : 0;
}

static hl_status gather(hl_context *ctx, const void *mine, const size_t *bytes, void *all)
{
    double start = hl_clock();
    int failed = ctx->ranks.gather(mine, bytes, all, ctx->ranks.user);
    ctx->gathered += hl_clock() - start;
    return failed ? hl_fail(ctx, HL_ERR_CALLBACK, "communication between ranks failed") : HL_OK;
}

/* ---- parts ---- */

static size_t part_start(size_t rank, size_t ranks, size_t count)
{
    size_t each = count / ranks, more = count % ranks;
    return rank * each + (rank < more ? rank : more);
}

void hl_ranks_part(const hl_context *ctx, size_t count, size_t *first, size_t *end)
{
    size_t ranks = hl_context_ranks(ctx), rank = ranks > 1 ? ctx->ranks.rank : 0;
    *first = part_start(rank, ranks, count);
    *end = part_start(rank + 1, ranks, count);
}

hl_status hl_ranks_complete(hl_context *ctx, size_t count, double *values)
{
    size_t ranks = hl_context_ranks(ctx), first, end;
    if (ranks == 1)
        return HL_OK;
    hl_ranks_part(ctx, count, &first, &end);
    size_t *bytes = hl_calloc(ctx, ranks, sizeof *bytes);
    double *mine = hl_calloc(ctx, end - first, sizeof *mine);
    hl_status status = bytes && mine ? HL_OK : HL_ERR_NOMEM;
    for (size_t k = 0; k < ranks && status == HL_OK; k++)
        bytes[k] = (part_start(k + 1, ranks, count) - part_start(k, ranks, count)) * sizeof *values;
    if (status == HL_OK) {
        memcpy(mine, values + first, (end - first) * sizeof *mine);
        status = gather(ctx, mine, bytes, values);
    }
    hl_free(ctx, bytes);
    hl_free(ctx, mine);
    return status;
}

hl_status hl_ranks_most(hl_context *ctx, double *value)
{
    size_t ranks = hl_context_ranks(ctx);
    if (ranks == 1)
        return HL_OK;
    double *all = hl_calloc(ctx, ranks, sizeof *all);
    if (!all)
        return HL_ERR_NOMEM;
    all[ctx->ranks.rank] = *value;
    hl_status status = hl_ranks_complete(ctx, ranks, all);
    for (size_t k = 0; k < ranks && status == HL_OK; k++)
        *value = all[k] > *value ? all[k] : *value;
    hl_free(ctx, all);
    return status;
}

typedef struct verdict {
    hl_status status;
    char message[512];
} verdict;

hl_status hl_ranks_agree(hl_context *ctx, hl_status status)
{
    size_t ranks = hl_context_ranks(ctx);
    if (ranks == 1)
        return status;
    size_t *bytes = hl_calloc(ctx, ranks, sizeof *bytes);
    verdict mine = { .status = status }, *all = hl_calloc(ctx, ranks, sizeof *all);
    hl_status agreed = bytes && all ? HL_OK : HL_ERR_NOMEM;
    if (status != HL_OK)
        snprintf(mine.message, sizeof mine.message, "%s", ctx->message);
    for (size_t k = 0; k < ranks && agreed == HL_OK; k++)
        bytes[k] = sizeof mine;
    if (agreed == HL_OK)
        agreed = gather(ctx, &mine, bytes, all);
    size_t k = 0;
    while (agreed == HL_OK && k < ranks && all[k].status == HL_OK)
        k++;
    if (agreed == HL_OK && k < ranks) {
        all[k].message[sizeof all[k].message - 1] = '\0';
        agreed = k == ctx->ranks.rank ? all[k].status : hl_fail(ctx, all[k].status, "%s", all[k].message);
    }
    hl_free(ctx, bytes);
    hl_free(ctx, all);
    return agreed;
}

hl_status hl_ranks_compare(hl_context *ctx, const char *what, const void *mine, size_t size)
{
    size_t ranks = hl_context_ranks(ctx);
    if (!ctx || !what || (size && !mine))
        return HL_ERR_INVALID;
    if (ranks == 1)
        return HL_OK;
    size_t *bytes = hl_calloc(ctx, ranks, sizeof *bytes);
    char *all = hl_calloc(ctx, ranks, size);
    hl_status status = bytes && all ? HL_OK : HL_ERR_NOMEM;
    for (size_t k = 0; k < ranks && status == HL_OK; k++)
        bytes[k] = size;
    if (status == HL_OK)
        status = gather(ctx, mine, bytes, all);
    for (size_t k = 1; k < ranks && status == HL_OK; k++)
        if (memcmp(all, all + k * size, size) != 0)
            status = hl_fail(ctx, HL_ERR_INVALID, "rank %zu has a different %s than rank 0", k, what);
    hl_free(ctx, bytes);
    hl_free(ctx, all);
    return status;
}

/* ---- the tree ---- */

/* Add up the last two nodes as long as they are the halves of one; with `sums`, their numbers as well. */
static size_t merge(node *nodes, size_t count, size_t size)
{
    while (count >= 2) {
        node *left = &nodes[count - 2], *right = &nodes[count - 1];
        if (left->level != right->level || left->index % 2 != 0 || right->index != left->index + 1)
            break;
        for (size_t i = 0; i < size && left->sum; i++)
            left->sum[i] += right->sum[i];
        left->level++;
        left->index /= 2;
        count--;
    }
    return count;
}

/* The whole nodes of a rank that has the shares `first` up to `end`; returns their number, and with *most that at its largest. */
static size_t whole_nodes(size_t first, size_t end, node *nodes, size_t *most)
{
    size_t count = 0;
    *most = 0;
    for (size_t k = first; k < end; k++) {
        nodes[count++] = (node){ .index = k };
        *most = count > *most ? count : *most;
        count = merge(nodes, count, 0);
    }
    return count;
}

static hl_status make_room(hl_shares *s)
{
    hl_context *ctx = s->ctx;
    size_t ranks = hl_context_ranks(ctx), first, end, most, unused, total = 0;
    hl_ranks_part(ctx, s->count, &first, &end);
    whole_nodes(first, end, s->own, &most);
    s->memory = hl_calloc(ctx, hl_size_mul(most ? most : 1, s->size), sizeof *s->memory);
    s->bytes = hl_calloc(ctx, ranks, sizeof *s->bytes);
    if (!s->memory || !s->bytes)
        return HL_ERR_NOMEM;
    for (size_t k = 0; k < ranks; k++) {
        size_t nodes = whole_nodes(part_start(k, ranks, s->count), part_start(k + 1, ranks, s->count), s->own, &unused);
        s->bytes[k] = nodes * s->size * sizeof(double);
        total += nodes;
    }
    s->tree = hl_calloc(ctx, total, sizeof *s->tree);
    if (ranks > 1)
        s->all = hl_calloc(ctx, hl_size_mul(total, s->size), sizeof *s->all);
    return s->tree && (s->all || ranks == 1) ? HL_OK : HL_ERR_NOMEM;
}

hl_status hl_shares_create(hl_context *ctx, size_t rows, size_t share, size_t size, hl_shares **out)
{
    hl_shares *s = hl_calloc(ctx, 1, sizeof *s);
    if (!s)
        return HL_ERR_NOMEM;
    s->ctx = ctx;
    s->rows = rows;
    s->share = share;
    s->size = size;
    s->count = rows / share + (rows % share != 0);
    hl_status status = make_room(s);
    if (status != HL_OK) {
        hl_shares_free(s);
        return status;
    }
    *out = s;
    return HL_OK;
}

void hl_shares_free(hl_shares *s)
{
    if (!s)
        return;
    void *const blocks[] = { s->memory, s->all, s->bytes, s->tree };
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        hl_free(s->ctx, blocks[i]);
    hl_free(s->ctx, s);
}

void hl_shares_rows(const hl_shares *s, size_t *first, size_t *end)
{
    hl_ranks_part(s->ctx, s->count, first, end);
    *first = *first * s->share < s->rows ? *first * s->share : s->rows;
    *end = *end * s->share < s->rows ? *end * s->share : s->rows;
}

static void close_share(hl_shares *s)
{
    if (s->open)
        s->owned = merge(s->own, s->owned, s->size);
    s->open = 0;
}

bool hl_shares_next(hl_shares *s, size_t *first, size_t *end, double **sum)
{
    size_t start, stop;
    hl_ranks_part(s->ctx, s->count, &start, &stop);
    close_share(s);
    if (!s->owned)
        s->next = start;
    if (s->next >= stop)
        return false;
    *first = s->next * s->share;
    *end = *first + s->share < s->rows ? *first + s->share : s->rows;
    *sum = s->memory + s->owned * s->size;
    s->own[s->owned++] = (node){ .index = s->next++, .sum = *sum };
    s->open = 1;
    return true;
}

/* What is left are the trees that the number of shares is made of, from the largest on. */
static double *add_rest(node *nodes, size_t count, size_t size)
{
    for (; count > 1; count--)
        for (size_t i = 0; i < size; i++)
            nodes[count - 2].sum[i] += nodes[count - 1].sum[i];
    return nodes[0].sum;
}

hl_status hl_shares_total(hl_shares *s, double **sum)
{
    size_t ranks = hl_context_ranks(s->ctx), count = 0, used = 0;
    close_share(s);
    if (ranks == 1) {
        *sum = add_rest(s->own, s->owned, s->size);
        s->owned = 0;
        return HL_OK;
    }
    s->owned = 0;
    hl_status status = gather(s->ctx, s->memory, s->bytes, s->all);
    for (size_t k = 0; k < ranks && status == HL_OK; k++) {
        node own[2 * LEVELS];
        size_t most;
        size_t nodes = whole_nodes(part_start(k, ranks, s->count), part_start(k + 1, ranks, s->count), own, &most);
        for (size_t i = 0; i < nodes; i++) {
            s->tree[count] = own[i];
            s->tree[count++].sum = s->all + used++ * s->size;
            count = merge(s->tree, count, s->size);
        }
    }
    if (status == HL_OK)
        *sum = add_rest(s->tree, count, s->size);
    return status;
}
