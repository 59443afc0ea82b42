/* region.h - where the data are: observations far from each other, and a radius around them. */
#ifndef HL_SDE_REGION_H
#define HL_SDE_REGION_H

#include "base/base.h"
#include "io/json.h"

typedef struct hl_region {
    size_t inputs, points;
    double *point; /* [points][inputs], standardised */
    double radius;
} hl_region;

/* Of z [rows][inputs]. The caller frees it also on failure. */
hl_status hl_region_find(hl_context *ctx, size_t rows, size_t inputs, const double *z, uint64_t seed,
                         hl_region *region);
hl_status hl_region_copy(hl_context *ctx, const hl_region *from, hl_region *to);
bool hl_region_holds(const hl_region *region, const double *z);
void hl_region_free(hl_context *ctx, hl_region *region);
/* As entries "radius" and "points" of an object; HL_ERR_FORMAT if they are not well formed. */
void hl_region_put(const hl_region *region, hl_json_writer *w);
hl_status hl_region_read(hl_context *ctx, const hl_json *object, size_t inputs, hl_region *region);

#endif
