/* density_fit_copies.c - rows that are copies of others.
 *
 * A copy on the other side of a split makes validation better than the model is, and then the largest model wins. So copies become one
 * row with their number as its weight: they are on one side of every split and fold, and sizes are chosen by the rows that differ.
 *
 * Equal rows are copies if the columns cannot explain them. Let there be G rows that differ. Either a column has nearly as many values as there are such
 * rows (IDENTIFIES of G; whole numbers IDENTIFIES_WHOLE): then rows that share one of its values share it because they are copies. Or the columns that are not whole numbers, if they were
 * independent, would give a row less than EXPECTED others that equal it. Few whole numbers or ratings have equal rows by their nature, and so
 * has a single column. One row that has many more copies than others, as that of zeros only, is no copy either but a value that repeats. */
#include <math.h>
#include <string.h>

#include "base/linear.h"
#include "learn/density_fit.h"

static const double IDENTIFIES = 0.5, IDENTIFIES_WHOLE = 0.9, EXPECTED = 0.1; /* see above */
static const double OFTEN = 0.01,
                    OFTENER = 5; /* share of the rows, times the median, from which on a row repeats as a value does */
static const double BOTH_SIDES =
    0.01; /* of the validation rows, from which on it is told that they are in training, too */

typedef struct place {
    uint64_t hash; /* 0: free */
    size_t row;    /* the first with these values; or how many of validation */
} place;

typedef struct places {
    size_t count; /* a power of two */
    place *at;
} places;

static hl_status create_places(const hl_fit_table *t, size_t rows, places *p)
{
    for (p->count = 16; p->count / 2 < rows;)
        p->count *= 2;
    p->at = hl_calloc(t->ctx, p->count, sizeof *p->at);
    return p->at ? HL_OK : HL_ERR_NOMEM;
}

static double value_of(const hl_fit_table *t, const hl_fit_rows *rows, size_t row, size_t i)
{
    return 0.0 + (i < t->dim ? rows->x[row * t->dim + i] : rows->c[row * t->context + (i - t->dim)]);
}

static uint64_t hash_row(const hl_fit_table *t, const hl_fit_rows *rows, size_t row)
{
    uint64_t hash = 0xcbf29ce484222325ULL;
    for (size_t i = 0; i < t->dim + t->context; i++) {
        double value = value_of(t, rows, row, i);
        uint64_t bits;
        memcpy(&bits, &value, sizeof bits);
        hash = (hash ^ bits) * 0x9e3779b97f4a7c15ULL;
        hash ^= hash >> 32;
    }
    return hash ? hash : 1;
}

/* The place of a hash, or the free one where it would be. */
static place *place_of(const places *p, uint64_t hash)
{
    size_t i = (size_t)hash & (p->count - 1);
    while (p->at[i].hash && p->at[i].hash != hash)
        i = (i + 1) & (p->count - 1);
    return &p->at[i];
}

/* ---- equal rows ---- */

/* To first[r] the first row that equals row r; returns how many rows differ. */
static hl_status find_first(const hl_fit_table *t, size_t *first, size_t *differ)
{
    places p;
    hl_status status = create_places(t, t->train.rows, &p);
    *differ = 0;
    for (size_t r = 0; r < t->train.rows && status == HL_OK; r++) {
        uint64_t hash = hash_row(t, &t->train, r);
        place *at = place_of(&p, hash);
        if (!at->hash) {
            *at = (place){ hash, r };
            ++*differ;
        }
        first[r] = at->row;
    }
    hl_free(t->ctx, p.at);
    return status;
}

/* Rows that stand much oftener than others are not copies: each of them is its own first. */
static void leave_frequent(const hl_fit_table *t, size_t *first, size_t *count, double *sorted, size_t *differ)
{
    size_t rows = t->train.rows, groups = 0;
    memset(count, 0, rows * sizeof *count);
    for (size_t r = 0; r < rows; r++)
        count[first[r]]++;
    for (size_t r = 0; r < rows; r++)
        if (count[r])
            sorted[groups++] = (double)count[r];
    hl_sort(sorted, groups);
    double most = fmax(OFTEN * (double)rows, OFTENER * sorted[groups / 2]);
    for (size_t r = 0; r < rows; r++)
        if ((double)count[first[r]] > most && first[r] != r) {
            first[r] = r;
            ++*differ;
        }
}

/* How many of the sorted values are less than one. */
static size_t count_less(const double *sorted, size_t count, double value)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (sorted[middle] < value)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Are equal rows copies, the first of which are `first`? `sorted` and `expected` have room for all rows. */
static bool are_copies(const hl_fit_table *t, const size_t *first, double differ, double *sorted, double *expected)
{
    size_t rows = t->train.rows, real = 0, copies = 0;
    double mean = 0;
    memset(expected, 0, rows * sizeof *expected);
    for (size_t i = 0; i < t->dim + t->context; i++) {
        size_t count = 0, values = 0;
        bool whole = true;
        for (size_t r = 0; r < rows; r++)
            if (first[r] == r) {
                sorted[count] = value_of(t, &t->train, r, i);
                whole = whole && sorted[count] == floor(sorted[count]);
                count++;
            }
        hl_sort(sorted, count);
        for (size_t k = 0; k < count; k++)
            values += k == 0 || sorted[k] != sorted[k - 1];
        if ((double)values >= (whole ? IDENTIFIES_WHOLE : IDENTIFIES) * differ)
            return true;
        real += !whole;
        for (size_t r = 0; r < rows && !whole; r++) {
            double value = value_of(t, &t->train, r, i);
            if (first[r] != r)
                expected[r] += log(
                    (double)(count_less(sorted, count, nextafter(value, INFINITY)) - count_less(sorted, count, value)) /
                    differ);
        }
    }
    for (size_t r = 0; r < rows; r++)
        if (first[r] != r) {
            mean += expected[r] + log(differ);
            copies++;
        }
    return real && mean < (double)copies * log(EXPECTED);
}

/* Equal rows become the first of them, whose weight is the sum of theirs. Weights that are all equal are none. */
static void join_rows(hl_fit_table *t, const size_t *first, size_t *at)
{
    hl_fit_rows *to = &t->train;
    size_t kept = 0, rows = to->rows;
    bool even = true;
    for (size_t r = 0; r < rows; r++) {
        if (first[r] != r) {
            to->w[at[first[r]]] += to->w[r];
            continue;
        }
        at[r] = kept;
        t->original[kept] = r;
        memmove(to->x + kept * t->dim, to->x + r * t->dim, t->dim * sizeof *to->x);
        if (t->context)
            memmove(to->c + kept * t->context, to->c + r * t->context, t->context * sizeof *to->c);
        to->w[kept++] = to->w[r];
    }
    to->rows = kept;
    for (size_t r = 1; r < kept; r++)
        even = even && to->w[r] == to->w[0];
    if (!even)
        return;
    hl_free(t->ctx, to->w);
    to->w = NULL;
    to->unit = 0;
}

static hl_status join(hl_fit_table *t, const size_t *first, size_t *at)
{
    size_t rows = t->train.rows;
    t->original = hl_calloc(t->ctx, rows, sizeof *t->original);
    if (!t->original)
        return HL_ERR_NOMEM;
    if (!t->train.w) {
        t->train.w = hl_calloc(t->ctx, rows, sizeof *t->train.w);
        if (!t->train.w)
            return HL_ERR_NOMEM;
        for (size_t r = 0; r < rows; r++)
            t->train.w[r] = 1;
        t->train.unit = 1;
    }
    join_rows(t, first, at);
    return HL_OK;
}

/* Join copies, or only tell how many there are. */
static hl_status find_copies(hl_fit_table *t, bool joined)
{
    size_t rows = t->train.rows, all = t->dim + t->context, differ = rows;
    if (all < 2)
        return HL_OK;
    size_t *first = hl_calloc(t->ctx, hl_size_mul(2, rows), sizeof *first);
    double *work = hl_calloc(t->ctx, hl_size_mul(2, rows), sizeof *work);
    hl_status status = first && work ? find_first(t, first, &differ) : HL_ERR_NOMEM;
    if (status == HL_OK && differ < rows)
        leave_frequent(t, first, first + rows, work, &differ);
    bool few = differ < HL_FIT_LEAST_ROWS; /* too few to learn from, which is no matter of copies */
    if (status == HL_OK && differ < rows && !few && are_copies(t, first, (double)differ, work, work + rows)) {
        hl_finding f = { .kind = HL_FINDING_DUPLICATES, .column = all, .count = rows - differ };
        f.value = (double)f.count / (double)rows;
        status = joined ? join(t, first, first + rows) : HL_OK;
        if (status == HL_OK)
            status = hl_fit_table_find(t, &f);
    }
    hl_free(t->ctx, first);
    hl_free(t->ctx, work);
    return status;
}

hl_status hl_fit_join_copies(hl_fit_table *t)
{
    return find_copies(t, true);
}

hl_status hl_fit_tell_copies(hl_fit_table *t)
{
    return find_copies(t, false);
}

/* ---- both sides of a split ---- */

/* One column, or whole numbers only, have equal rows by their nature. */
hl_status hl_fit_check_copies(hl_fit_table *t)
{
    size_t all = t->dim + t->context;
    bool whole = true;
    hl_finding f = { .kind = HL_FINDING_COPIES, .column = all };
    for (size_t i = 0; i < all; i++)
        whole = whole && t->stats[i].integer;
    if (whole || all < 2 || !t->valid.rows)
        return HL_OK;
    places p;
    hl_status status = create_places(t, t->valid.rows, &p);
    if (status != HL_OK)
        return status;
    for (size_t r = 0; r < t->valid.rows; r++) {
        uint64_t hash = hash_row(t, &t->valid, r);
        place *at = place_of(&p, hash);
        at->hash = hash;
        at->row++;
    }
    for (size_t r = 0; r < t->train.rows; r++) {
        place *at = place_of(&p, hash_row(t, &t->train, r));
        f.count += at->row;
        at->row = 0;
    }
    hl_free(t->ctx, p.at);
    f.value = (double)f.count / (double)t->valid.rows;
    return f.value > BOTH_SIDES ? hl_fit_table_find(t, &f) : HL_OK;
}
