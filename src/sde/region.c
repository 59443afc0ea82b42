/* region.c - where the data are. Points are chosen one after the other, each as far as possible from those before it; the radius is
 * a little more than the distance at which they leave no observation out. */
#include <math.h>
#include <string.h>

#include "sde/region.h"

enum { STREAM_POINT = 42, MOST_POINTS = 300, POINT_ROWS = 3000, MOST_READ = 100000 };
static const double least_radius = 0.1, more_radius = 1.25;

void hl_region_free(hl_context *ctx, hl_region *region)
{
    hl_free(ctx, region->point);
    *region = (hl_region){ 0 };
}

static hl_status make(hl_context *ctx, size_t points, size_t inputs, hl_region *region)
{
    region->points = points;
    region->inputs = inputs;
    region->point = hl_calloc(ctx, hl_size_mul(points, inputs), sizeof *region->point);
    return region->point ? HL_OK : HL_ERR_NOMEM;
}

hl_status hl_region_copy(hl_context *ctx, const hl_region *from, hl_region *to)
{
    hl_status status = make(ctx, from->points, from->inputs, to);
    to->radius = from->radius;
    if (status == HL_OK)
        memcpy(to->point, from->point, from->points * from->inputs * sizeof *to->point);
    return status;
}

static double square_distance(size_t inputs, const double *a, const double *b)
{
    double square = 0;
    for (size_t i = 0; i < inputs; i++)
        square += (a[i] - b[i]) * (a[i] - b[i]);
    return square;
}

/* Of many rows a random selection, the k-th of which this is. */
static size_t selected(size_t rows, uint64_t seed, size_t k)
{
    return rows > POINT_ROWS ? hl_random_bits(seed, STREAM_POINT, k) % rows : k;
}

hl_status hl_region_find(hl_context *ctx, size_t rows, size_t inputs, const double *z, uint64_t seed, hl_region *region)
{
    size_t n = rows < POINT_ROWS ? rows : POINT_ROWS, best = 0;
    double *gap = hl_calloc(ctx, n, sizeof *gap);
    hl_status status = gap ? make(ctx, n < MOST_POINTS ? n : MOST_POINTS, inputs, region) : HL_ERR_NOMEM;
    if (status != HL_OK) {
        hl_free(ctx, gap);
        return status;
    }
    for (size_t k = 0; k < n; k++)
        gap[k] = INFINITY;
    for (size_t c = 0; c < region->points; c++) {
        const double *at = z + selected(rows, seed, best) * inputs;
        memcpy(region->point + c * inputs, at, inputs * sizeof *at);
        best = 0;
        for (size_t k = 0; k < n; k++) {
            gap[k] = fmin(gap[k], square_distance(inputs, z + selected(rows, seed, k) * inputs, at));
            if (gap[k] > gap[best])
                best = k;
        }
    }
    region->radius = more_radius * fmax(least_radius, sqrt(gap[best]));
    hl_free(ctx, gap);
    return HL_OK;
}

bool hl_region_holds(const hl_region *region, const double *z)
{
    for (size_t k = 0; k < region->points; k++)
        if (square_distance(region->inputs, z, region->point + k * region->inputs) <= region->radius * region->radius)
            return true;
    return false;
}

void hl_region_put(const hl_region *region, hl_json_writer *w)
{
    hl_json_put_real(w, "radius", region->radius);
    hl_json_put_rows(w, "points", region->points, region->inputs, region->point);
}

hl_status hl_region_read(hl_context *ctx, const hl_json *object, size_t inputs, hl_region *region)
{
    const hl_json *radius = hl_json_get(object, "radius"), *points = hl_json_get(object, "points");
    if (!hl_json_is_number(radius) || !(radius->number > 0) || !points || points->kind != HL_JSON_ARRAY ||
        points->count > MOST_READ)
        return HL_ERR_FORMAT;
    hl_status status = make(ctx, points->count, inputs, region);
    region->radius = radius->number;
    if (status == HL_OK && !hl_json_get_rows(points, region->points, inputs, region->point))
        return HL_ERR_FORMAT;
    return status;
}
