/* update.h - one step of an optimiser over a stretch of parameters. */
#ifndef HL_UPDATE_H
#define HL_UPDATE_H

#include "hollow/base.h"

typedef enum hl_update_method { HL_ADAM, HL_ADAMW, HL_ADAMAX, HL_SGD } hl_update_method;

/* What is the same for all values of a step. */
typedef struct hl_update {
    hl_update_method method;
    double scale;          /* of the gradient: clipping */
    double beta1, beta2;   /* decay of the moments */
    double share1, share2; /* 1 - beta1 (1 for sgd), 1 - beta2 */
    double step;           /* the rate over 1 - beta1^k (the rate itself for sgd) */
    double root;           /* 1 / sqrt(1 - beta2^k) */
    double epsilon;
    double penalty, shrink; /* weight decay in the gradient; of the values, times the rate */
    double keep;            /* of the running average */
} hl_update;

/* Step `count` values in place. `mean` may be NULL. `narrow` receives the values as float32, unless it is NULL. */
void hl_update_run(const hl_update *u, size_t count, const double *gradient, double *value, double *first,
                   double *second, double *mean, float *narrow);

/* The sum of squares, in eight parts that are added at the end: a fixed order. */
double hl_update_square(size_t count, const double *gradient);

#endif
