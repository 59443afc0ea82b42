/* brownian.c - Brownian paths by halving (Levy's construction), with their integrals.
 *
 * Over a span of length h let dw = W(end) - W(begin) ~ N(0, h) and u = (integral of W - W(begin)) - h dw / 2,
 * which is N(0, h^3 / 12) and independent of dw. For the halves, dw = dw1 + dw2 and u = u1 + u2 + h (dw1 - dw2) / 4.
 * So, given (dw, u),
 *   dw1 - dw2 = 3 u / h + sqrt(h) / 2 n1      u1 + u2 = u - h (dw1 - dw2) / 4      u1 - u2 = sqrt(h^3 / 48) n2
 * with normals n1, n2 of the span's own. A span is thus a function of its ancestors' normals alone. dw are rounded to
 * multiples of a quantum, so that adding them is exact. */
#include <math.h>

#include "sde/sde.h"

static double normal(const hl_brownian *b, uint64_t path, size_t dimension, uint64_t index)
{
    return hl_random_normal(b->seed, path << 20 | (uint64_t)dimension, index);
}

/* 2^-48 of the least power of two >= sqrt(span): no W within 16 deviations needs more than 53 bits. */
static double quantum_of(const hl_brownian *b)
{
    int e;
    frexp(sqrt(b->span), &e);
    return ldexp(1, e - 48);
}

static double rounded(double w, double quantum)
{
    return rint(w / quantum) * quantum;
}

static hl_span root(const hl_brownian *b, uint64_t path, size_t dimension)
{
    double h = b->span;
    return (hl_span){ rounded(sqrt(h) * normal(b, path, dimension, 0), quantum_of(b)),
                      sqrt(h * h * h / 12) * normal(b, path, dimension, 1) };
}

/* Half `second` of the span `of`, which is number `index` of `level`. */
static hl_span half(const hl_brownian *b, uint64_t path, size_t dimension, int level, uint64_t index, hl_span of,
                    bool second)
{
    uint64_t node = 2 * ((UINT64_C(1) << level) + index);
    double h = ldexp(b->span, -level), quantum = quantum_of(b);
    double n1 = normal(b, path, dimension, node), n2 = normal(b, path, dimension, node + 1);
    double first = rounded(0.5 * (of.dw + 3 * of.u / h + 0.5 * sqrt(h) * n1), quantum), rest = of.dw - first;
    double sum = of.u - 0.25 * h * (first - rest), difference = sqrt(h * h * h / 48) * n2;
    return second ? (hl_span){ rest, 0.5 * (sum - difference) } : (hl_span){ first, 0.5 * (sum + difference) };
}

void hl_brownian_walk(const hl_brownian *b, uint64_t path, size_t dimension, int level, uint64_t index, hl_span *stack)
{
    /* the spans above `index` that were not above `index - 1` are those that it begins */
    int from = index == 0 ? 0 : level;
    for (uint64_t k = index; from > 0 && !(k & 1); k >>= 1)
        from--;
    if (index == 0)
        stack[0] = root(b, path, dimension);
    for (int l = index == 0 ? 1 : from; l <= level; l++) {
        uint64_t k = index >> (level - l);
        stack[l] = half(b, path, dimension, l - 1, k >> 1, stack[l - 1], k & 1);
    }
}

void hl_brownian_increment(const hl_brownian *b, uint64_t path, size_t dimension, int level, uint64_t index, double *dw,
                           double *dz)
{
    hl_span s = root(b, path, dimension);
    for (int l = 1; l <= level; l++) {
        uint64_t k = index >> (level - l);
        s = half(b, path, dimension, l - 1, k >> 1, s, k & 1);
    }
    *dw = s.dw;
    if (dz)
        *dz = s.u + 0.5 * ldexp(b->span, -level) * s.dw;
}

double hl_brownian_value(const hl_brownian *b, uint64_t path, size_t dimension, int level, uint64_t index)
{
    hl_span s = root(b, path, dimension);
    if (index >> level) /* the end */
        return s.dw;
    double w = 0;
    for (int l = 1; l <= level; l++) { /* the begin of the span: first halves that lie before it add up, exactly */
        uint64_t k = index >> (level - l);
        hl_span next = half(b, path, dimension, l - 1, k >> 1, s, k & 1);
        if (k & 1)
            w += s.dw - next.dw;
        s = next;
    }
    return w;
}
