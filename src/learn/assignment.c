/* assignment.c - optimal assignment by shortest augmenting paths, with potentials u (rows) and v (columns) that keep all
 * reduced costs cost_ij - u_i - v_j >= 0. Rows and columns are counted from 1; column 0 stands for the row being placed. */
#include "learn/assignment.h"

#include <math.h>
#include <string.h>

typedef struct search {
    size_t n;
    const double *cost;
    double *u, *v, *least;    /* [n + 1] */
    size_t *row, *way, *seen; /* [n + 1]: row of a column; column before on the path; visited */
} search;

/* Visit column j: its row offers shorter ways to the others. Returns the nearest column not visited. */
static size_t visit(search *s, size_t j)
{
    size_t i = s->row[j], next = 0;
    double delta = INFINITY;
    s->seen[j] = 1;
    for (size_t k = 1; k <= s->n; k++) {
        if (s->seen[k])
            continue;
        double reduced = s->cost[(i - 1) * s->n + k - 1] - s->u[i] - s->v[k];
        if (reduced < s->least[k]) {
            s->least[k] = reduced;
            s->way[k] = j;
        }
        if (s->least[k] < delta) {
            delta = s->least[k];
            next = k;
        }
    }
    for (size_t k = 0; k <= s->n; k++)
        if (s->seen[k]) {
            s->u[s->row[k]] += delta;
            s->v[k] -= delta;
        } else {
            s->least[k] -= delta;
        }
    return next;
}

void hl_assign(size_t n, const double *cost, double *work, size_t *places, size_t *to)
{
    search s = { n, cost, work, work + n + 1, work + 2 * n + 2, places, places + n + 1, places + 2 * n + 2 };
    memset(work, 0, (2 * n + 2) * sizeof *work);
    memset(s.row, 0, (n + 1) * sizeof *s.row);
    for (size_t i = 1; i <= n; i++) {
        size_t j = 0;
        s.row[0] = i;
        for (size_t k = 0; k <= n; k++) {
            s.least[k] = INFINITY;
            s.seen[k] = 0;
        }
        do
            j = visit(&s, j);
        while (s.row[j] != 0);
        for (; j; j = s.way[j])
            s.row[j] = s.row[s.way[j]];
    }
    for (size_t k = 1; k <= n; k++)
        to[s.row[k] - 1] = k - 1;
}
