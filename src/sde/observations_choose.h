/* observations_choose.h - which rows of a large table of observations are read. */
#ifndef HL_OBSERVATIONS_CHOOSE_H
#define HL_OBSERVATIONS_CHOOSE_H

#include "base/base.h"
#include "hollow/table.h"

/* The columns that decide; HL_NO_COLUMN where there is none. */
typedef struct hl_choice_columns {
    size_t time, trajectory;
} hl_choice_columns;

/* A chosen row. The chosen rows with the same `trajectory` and `piece` are all rows of this trajectory in an interval of time. */
typedef struct hl_chosen_row {
    double trajectory;
    size_t piece, row;
} hl_chosen_row;

/* A choice of rows, sorted by trajectory, piece and row. */
typedef struct hl_chosen_rows {
    hl_chosen_row *row; /* free with hl_free */
    size_t count;
    bool snapshots; /* not all rows were chosen, and they are neither trajectories nor one path */
} hl_chosen_rows;

/* Choose at most `most` rows of a table at random, always the same ones: whole trajectories; if these are few and long, pieces of
 * consecutive rows; of snapshots, single rows. All rows are chosen if there are no more than `most`. Memory depends on `most` only.
 * HL_ERR_INVALID: a choice would need the times. On failure nothing is to be freed. */
hl_status hl_observations_choose(hl_context *ctx, hl_table *table, hl_choice_columns columns, size_t most,
                                 hl_chosen_rows *chosen);

#endif
