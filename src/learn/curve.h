/* curve.h - the course of a training in few points, and the rows that it saw: what model files keep of it. */
#ifndef HL_LEARN_CURVE_H
#define HL_LEARN_CURVE_H

#include "hollow/job.h"
#include "io/json.h"

/* ---- the course ---- */

enum { HL_CURVE_POINTS = 128, HL_CURVE_FIELDS = 7, HL_CURVE_STATE = 2 + HL_CURVE_POINTS * HL_CURVE_FIELDS };

/* Stretches of equal length, cut where a phase begins. */
typedef struct hl_curve {
    size_t stretch;       /* iterations of a point */
    size_t count, filled; /* points; iterations of the last */
    hl_training_point point[HL_CURVE_POINTS];
} hl_curve;

void hl_curve_start(hl_curve *curve, size_t iterations);
/* There will be more iterations: stretches are doubled, and pairs of points of a phase become one, until there is room for them. */
void hl_curve_extend(hl_curve *curve, size_t iterations);
/* An iteration; its validation, if there is one, comes after it. */
void hl_curve_add(hl_curve *curve, const hl_training_point *iteration);
void hl_curve_validate(hl_curve *curve, size_t iteration, double validation);
/* As HL_CURVE_STATE finite numbers, for checkpoints. Reading returns false if they are none. */
void hl_curve_get_state(const hl_curve *curve, double *state);
bool hl_curve_set_state(hl_curve *curve, const double *state);
/* As an array, a member of the object that is open. Reading returns false if it is none. */
void hl_curve_put(const hl_curve *curve, hl_json_writer *w, const char *key);
bool hl_curve_read(hl_curve *curve, const hl_json *j);

/* ---- the rows ---- */

/* Rows by their hashes, in any order: how many there are, the sum of all hashes and the smallest of them, by which a row that is not among
 * them is told from one that is, if its hash is at most `limit`. */
typedef struct hl_row_sketch {
    size_t rows;
    uint64_t sum;
    uint64_t limit; /* the largest of the hashes that are kept; all up to it are */
    size_t count;
    uint64_t *hash; /* rising, without repetitions; owned */
} hl_row_sketch;

/* Of the values of a row, which are those of x, then those of the context. 0 and -0 are the same. */
uint64_t hl_row_hash(size_t dim, const double *x, size_t context, const double *c);
hl_status hl_row_sketch_make(hl_context *ctx, size_t rows, size_t dim, const double *x, size_t context, const double *c,
                             hl_row_sketch *sketch);
/* The same from hashes of any kind, which it sorts. */
hl_status hl_row_sketch_from(hl_context *ctx, size_t rows, uint64_t *hash, hl_row_sketch *sketch);
void hl_row_sketch_free(hl_context *ctx, hl_row_sketch *sketch);
/* 1: among the rows; 0: not; -1: unknown. */
int hl_row_sketch_has(const hl_row_sketch *sketch, uint64_t hash);
/* Members of the object that is open; reading takes this object. Free the sketch if it fails as well. */
void hl_row_sketch_put(const hl_row_sketch *sketch, hl_json_writer *w);
hl_status hl_row_sketch_read(hl_context *ctx, const hl_json *j, hl_row_sketch *sketch, bool *good);

#endif
