/* times.c - what times of observations say: whether rows are one path; times of snapshots that differ by rounding are one time.
 *
 * Sums such as .1 + .1 + .1 and products 3 * .1 differ in the last bit. Taken for two times, half of the rows each, they would make intervals of no length. */
#include <string.h>

#include "sde/sde.h"

static const double close = 1e-6; /* of the span: what tables of seven digits cannot tell apart */

bool hl_sde_rising(const hl_sde_data *data)
{
    for (size_t r = 1; r < data->rows; r++)
        if (!(data->t[r] > data->t[r - 1]))
            return false;
    return true;
}

hl_status hl_sde_merge_times(hl_context *ctx, size_t rows, double *t)
{
    double *sorted = hl_calloc(ctx, rows, sizeof *sorted);
    if (!sorted)
        return rows ? HL_ERR_NOMEM : HL_OK;
    memcpy(sorted, t, rows * sizeof *sorted);
    hl_sort(sorted, rows);
    double gap = close * (sorted[rows - 1] - sorted[0]);
    size_t count = 0; /* of groups: their first times take the place of all */
    for (size_t k = 0; k < rows; k++)
        if (!count || sorted[k] - sorted[count - 1] > gap)
            sorted[count++] = sorted[k];
    for (size_t r = 0; r < rows; r++) {
        size_t low = 0, high = count; /* the last that is not after t */
        while (high - low > 1) {
            size_t middle = low + (high - low) / 2;
            if (sorted[middle] <= t[r])
                low = middle;
            else
                high = middle;
        }
        t[r] = sorted[low];
    }
    hl_free(ctx, sorted);
    return HL_OK;
}
