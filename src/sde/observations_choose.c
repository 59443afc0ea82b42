/* observations_choose.c - which rows of a large table of observations are read: a random choice in bounded memory.
 *
 * Trajectories are cut into pieces by equal intervals of the table's time. A piece has a random number, which depends on nothing but its
 * trajectory and interval. The table is read in order, and rows are kept while the number of their piece is below a limit; whenever more than
 * `most` rows are kept, the limit is lowered by an eighth and rows above it are dropped. At first a piece is a whole trajectory; if fewer than ENOUGH
 * pieces remain, the choice is repeated with shorter ones. */
#include "sde/observations_choose.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "hollow/random.h"

enum {
    CHUNK = 16384,      /* rows that are read at a time */
    ENOUGH = 500,       /* pieces */
    LEAST_LENGTH = 200, /* rows of a piece on average: shorter ones would lose too many steps */
    FINER = 8,          /* intervals for each of those before */
    MOST_INTERVALS = 1 << 24
};

static const uint64_t stream = 0x6f62736572766564; /* of the random numbers of pieces */

typedef struct choice {
    hl_context *ctx;
    hl_table *table;
    hl_choice_columns columns;
    size_t most, rows;
    double first, last; /* times */
    bool snapshots;     /* neither trajectories nor one path */
    size_t intervals;
    double *id, *time; /* of a chunk */
    hl_chosen_row *kept;
    size_t count;
    uint64_t limit; /* of the numbers of pieces */
} choice;

static int by_piece(const void *a, const void *b)
{
    const hl_chosen_row *x = a, *y = b;
    if (x->trajectory != y->trajectory)
        return x->trajectory < y->trajectory ? -1 : 1;
    if (x->piece != y->piece)
        return x->piece < y->piece ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

/* Trajectories and times of the chunk that begins at a row, and how many rows it has. Without a column of times, rows are one apart. */
static hl_status read_chunk(choice *c, size_t first, size_t *rows)
{
    size_t count = *rows = c->rows - first < CHUNK ? c->rows - first : CHUNK;
    hl_status status = HL_OK;
    if (c->columns.trajectory != HL_NO_COLUMN)
        status = hl_table_read_columns(c->table, first, count, 1, &c->columns.trajectory, c->id);
    if (status == HL_OK && c->columns.time != HL_NO_COLUMN)
        return hl_table_read_columns(c->table, first, count, 1, &c->columns.time, c->time);
    for (size_t i = 0; i < count; i++)
        c->time[i] = (double)(first + i);
    return status;
}

/* The range of time, and whether rows without trajectories are one path. */
static hl_status look(choice *c)
{
    double before = -INFINITY;
    c->first = INFINITY;
    c->last = -INFINITY;
    for (size_t r = 0; r < c->rows; r += CHUNK) {
        size_t count;
        hl_status status = read_chunk(c, r, &count);
        if (status != HL_OK)
            return status;
        for (size_t i = 0; i < count; i++) {
            c->first = fmin(c->first, c->time[i]);
            c->last = fmax(c->last, c->time[i]);
            c->snapshots = c->snapshots || (c->columns.trajectory == HL_NO_COLUMN && !(c->time[i] > before));
            before = c->time[i];
        }
    }
    return HL_OK;
}

static uint64_t number_of(const choice *c, const hl_chosen_row *row)
{
    uint64_t bits;
    if (c->snapshots)
        return hl_random_bits(0, stream, row->row);
    memcpy(&bits, &row->trajectory, sizeof bits);
    return hl_random_bits(bits, stream, row->piece);
}

static void drop_above_limit(choice *c)
{
    size_t left = 0;
    for (size_t k = 0; k < c->count; k++)
        if (number_of(c, &c->kept[k]) <= c->limit)
            c->kept[left++] = c->kept[k];
    c->count = left;
}

static size_t interval_of(const choice *c, double time)
{
    double share = c->last > c->first ? (time - c->first) / (c->last - c->first) : 0;
    size_t interval = (size_t)(share * (double)c->intervals);
    return interval < c->intervals ? interval : c->intervals - 1;
}

static hl_status choose(choice *c)
{
    c->count = 0;
    c->limit = UINT64_MAX;
    for (size_t r = 0; r < c->rows; r += CHUNK) {
        size_t count;
        hl_status status = read_chunk(c, r, &count);
        if (status != HL_OK)
            return status;
        for (size_t i = 0; i < count; i++) {
            hl_chosen_row row = { c->id[i] + 0.0, interval_of(c, c->time[i]), r + i }; /* + 0.0: -0 is 0 */
            if (number_of(c, &row) > c->limit)
                continue;
            c->kept[c->count++] = row;
            while (c->count > c->most) {
                c->limit -= c->limit / 8;
                drop_above_limit(c);
            }
        }
    }
    qsort(c->kept, c->count, sizeof *c->kept, by_piece);
    return HL_OK;
}

static size_t count_pieces(const choice *c)
{
    size_t pieces = 0;
    for (size_t k = 0; k < c->count; k++)
        pieces +=
            k == 0 || c->kept[k].trajectory != c->kept[k - 1].trajectory || c->kept[k].piece != c->kept[k - 1].piece;
    return pieces;
}

/* Pieces are made shorter until they are many, or short. */
static hl_status choose_pieces(choice *c)
{
    for (c->intervals = 1; c->intervals <= MOST_INTERVALS; c->intervals *= FINER) {
        hl_status status = choose(c);
        size_t pieces = count_pieces(c);
        if (status != HL_OK || c->snapshots || pieces >= ENOUGH || (pieces && c->count / pieces < FINER * LEAST_LENGTH))
            return status;
        if (c->columns.time == HL_NO_COLUMN && c->columns.trajectory != HL_NO_COLUMN)
            return hl_fail(
                c->ctx, HL_ERR_INVALID,
                "there are more than %zu rows in a few long trajectories, and no column of times by which they "
                "could be divided; add one, or raise option most-rows",
                c->most);
    }
    return HL_OK;
}

hl_status hl_observations_choose(hl_context *ctx, hl_table *table, hl_choice_columns columns, size_t most,
                                 hl_chosen_rows *chosen)
{
    choice c = { .ctx = ctx, .table = table, .columns = columns, .rows = hl_table_rows(table) };
    bool all = c.rows <= most;
    c.most = all ? c.rows : most;
    c.kept = hl_calloc(ctx, hl_size_add(c.most, 1), sizeof *c.kept);
    c.id = hl_calloc(ctx, CHUNK, sizeof *c.id);
    c.time = hl_calloc(ctx, CHUNK, sizeof *c.time);
    hl_status status = c.kept && c.id && c.time ? HL_OK : HL_ERR_NOMEM;
    c.intervals = 1;
    if (status == HL_OK && !all)
        status = look(&c);
    if (status == HL_OK)
        status = all ? choose(&c) : choose_pieces(&c);
    hl_free(ctx, c.id);
    hl_free(ctx, c.time);
    if (status != HL_OK) {
        hl_free(ctx, c.kept);
        return status;
    }
    *chosen = (hl_chosen_rows){ c.kept, c.count, c.snapshots };
    return HL_OK;
}
