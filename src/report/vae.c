/* vae.c - an autoencoder looked at with rows: its bound and parts, active units, samples, reconstructions and traversals.
 *
 * The bound is compared with that of independent columns (Bernoulli, or normal), fitted to every second row and judged by the others, both ways
 * round. A latent column is active if the means of its posterior vary over the rows by a variance above 0.01, as hl_vae_result counts. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/compare.h"
#include "report/report.h"
#include "vae/rows.h"

enum { COMPARED = 300, LEAST_COMPARED = 40, STREAM_ROW_BITS = 64 };
/* As of densities, see verdict.c; but images fill little of their space, and even samples without half of the modes are at .02 of the largest
 * possible distance. */
static const double LEVEL = 0.01, LARGE_SHARE = 0.01;
enum { ROWS = 1000, SHEET_PIXELS = 50000, MOST_ACROSS = 10, UNITS = 8, POSITIONS = 9 };

/* At most `most` (no more than ROWS) of the rows, from all of them, as tables may be sorted; a copy that the report owns. */
static hl_status pick_rows(size_t dim, size_t most, uint64_t seed, hl_report *r, hl_vae_rows *d)
{
    size_t size = d->values ? sizeof *d->values : 1, index[ROWS], rows = hl_report_pick(d->rows, most, seed, index);
    const char *from = d->values ? (const void *)d->values : d->bytes;
    char *to = hl_report_room(r, hl_size_mul(rows, dim), size);
    if (!to)
        return HL_ERR_NOMEM;
    for (size_t k = 0; k < rows; k++)
        memcpy(to + k * dim * size, from + index[k] * dim * size, dim * size);
    d->rows = rows;
    if (d->values)
        d->values = (const double *)(const void *)to;
    else
        d->bytes = (const unsigned char *)to;
    return HL_OK;
}

/* ---- pictures ---- */

/* Room for `down` x `across` images with a pixel between them. */
static hl_status make_sheet(hl_report *r, const size_t image[3], size_t down, size_t across, hl_report_sheet *s)
{
    s->channels = image[0] == 3 ? 3 : 1;
    s->width = across * (image[2] + 1) + 1;
    s->height = down * (image[1] + 1) + 1;
    s->pixels = hl_report_room(r, s->width * s->height, s->channels);
    if (s->pixels)
        memset(s->pixels, 128, s->width * s->height * s->channels);
    return s->pixels ? HL_OK : HL_ERR_NOMEM;
}

static void put_image(hl_report_sheet *s, const size_t image[3], const double range[2], size_t down, size_t across,
                      const double *x)
{
    for (size_t y = 0; y < image[1]; y++)
        for (size_t k = 0; k < image[2]; k++)
            for (size_t c = 0; c < s->channels; c++) {
                double value = (x[(c * image[1] + y) * image[2] + k] - range[0]) / (range[1] - range[0]);
                size_t at = (down * (image[1] + 1) + 1 + y) * s->width + across * (image[2] + 1) + 1 + k;
                s->pixels[at * s->channels + c] = (unsigned char)(value > 0 ? fmin(value, 1) * 255 + 0.5 : 0);
            }
}

typedef struct gallery {
    hl_vae *v;
    const hl_vae_rows *d;
    const size_t *image;
    size_t across, down;
    double range[2];
    double *x, *z; /* of the images of a sheet */
} gallery;

static hl_status show_samples(gallery *g, uint64_t seed, hl_report *r)
{
    hl_report_sheet *s = &r->sheet[0];
    hl_status status = make_sheet(r, g->image, g->down, g->across, s);
    if (status == HL_OK)
        status = hl_vae_sample(g->v, g->down * g->across, seed, NULL, g->x);
    for (size_t k = 0; k < g->down * g->across && status == HL_OK; k++)
        put_image(s, g->image, g->range, k / g->across, k % g->across, g->x + k * g->v->dim);
    return status;
}

/* Rows of data, and below each its reconstruction. */
static hl_status show_reconstructions(gallery *g, uint64_t seed, hl_report *r)
{
    hl_report_sheet *s = &r->sheet[1];
    size_t pairs = g->down / 2 ? g->down / 2 : 1, count = pairs * g->across, dim = g->v->dim;
    hl_vae_rows some = *g->d;
    hl_status status = pick_rows(dim, count, seed, r, &some);
    count = some.rows < count ? some.rows : count;
    if (status == HL_OK)
        status = make_sheet(r, g->image, 2 * pairs, g->across, s);
    if (status == HL_OK)
        status = hl_vae_encode(g->v, &some, seed, NULL, g->z);
    if (status == HL_OK)
        status = hl_vae_decode(g->v, count, g->z, g->x);
    double *row = hl_report_room(r, dim, sizeof *row);
    for (size_t k = 0; k < count && status == HL_OK && row; k++) {
        for (size_t i = 0; i < dim; i++)
            row[i] = hl_vae_value(&some, k * dim + i);
        put_image(s, g->image, g->range, 2 * (k / g->across), k % g->across, row);
        put_image(s, g->image, g->range, 2 * (k / g->across) + 1, k % g->across, g->x + k * dim);
    }
    return row ? status : HL_ERR_NOMEM;
}

/* One latent column at a time from -2 to 2, the others 0: the most active ones. */
static hl_status show_traversals(gallery *g, hl_report *r)
{
    hl_report_sheet *s = &r->sheet[2];
    size_t latent = r->vae.latent, units = latent < UNITS ? latent : UNITS;
    units = units < g->down * g->across / POSITIONS ? units : g->down * g->across / POSITIONS;
    units = units ? units : 1;
    size_t count = units * POSITIONS;
    hl_status status = make_sheet(r, g->image, units, POSITIONS, s);
    memset(g->z, 0, count * latent * sizeof *g->z);
    for (size_t k = 0; k < count; k++)
        g->z[k * latent + r->vae.unit[k / POSITIONS]] = -2 + 4.0 * (double)(k % POSITIONS) / (POSITIONS - 1);
    if (status == HL_OK)
        status = hl_vae_decode(g->v, count, g->z, g->x);
    for (size_t k = 0; k < count && status == HL_OK; k++)
        put_image(s, g->image, g->range, k / POSITIONS, k % POSITIONS, g->x + k * g->v->dim);
    return status;
}

static hl_status show_images(hl_vae *v, const hl_vae_rows *d, uint64_t seed, hl_report *r)
{
    const size_t *image = v->spec.image;
    size_t pixels = image[1] * image[2];
    if (!pixels || pixels > SHEET_PIXELS / 4)
        return HL_OK;
    size_t most = SHEET_PIXELS / (pixels * (image[0] == 3 ? 3 : 1)), across = 1;
    while (across < MOST_ACROSS && (across + 1) * (across + 1) <= most)
        across++;
    gallery g = { .v = v, .d = d, .image = image, .across = across, .down = across, .range = { 0, 1 } };
    size_t count = across * across > POSITIONS ? across * across : POSITIONS;
    if (v->gaussian) {
        g.range[0] = INFINITY;
        g.range[1] = -INFINITY;
        for (size_t i = 0; i < d->rows * v->dim; i++) {
            g.range[0] = fmin(g.range[0], hl_vae_value(d, i));
            g.range[1] = fmax(g.range[1], hl_vae_value(d, i));
        }
    }
    g.x = hl_alloc(r->ctx, hl_size_mul(count * (v->dim + r->vae.latent), sizeof *g.x));
    g.z = g.x ? g.x + count * v->dim : NULL;
    hl_status status = g.x ? show_samples(&g, seed, r) : HL_ERR_NOMEM;
    if (status == HL_OK)
        status = show_reconstructions(&g, seed, r);
    if (status == HL_OK)
        status = show_traversals(&g, r);
    hl_free(r->ctx, g.x);
    return status;
}

/* ---- units ---- */

static hl_status find_units(hl_vae *v, const hl_vae_rows *d, hl_report *r)
{
    size_t latent = r->vae.latent, n = d->rows;
    double *mean = hl_alloc(r->ctx, hl_size_mul(n * latent, sizeof *mean)),
           *variance = hl_report_room(r, latent, sizeof *variance);
    size_t *unit = hl_report_room(r, latent, sizeof *unit);
    hl_status status = mean && variance && unit ? hl_vae_encode(v, d, 0, mean, NULL) : HL_ERR_NOMEM;
    for (size_t i = 0; i < latent && status == HL_OK; i++) {
        double sum = 0, square = 0;
        for (size_t k = 0; k < n; k++)
            sum += mean[k * latent + i] / (double)n;
        for (size_t k = 0; k < n; k++)
            square += (mean[k * latent + i] - sum) * (mean[k * latent + i] - sum) / (double)n;
        size_t place = i; /* the most active first */
        for (; place && variance[place - 1] < square; place--) {
            variance[place] = variance[place - 1];
            unit[place] = unit[place - 1];
        }
        variance[place] = square;
        unit[place] = i;
    }
    hl_free(r->ctx, mean);
    r->vae.variance = variance;
    r->vae.unit = unit;
    return status;
}

/* ---- samples ---- */

/* Columns over the deviation of their rows. */
static void standardise(size_t dim, size_t rows, double *x)
{
    for (size_t i = 0; i < dim; i++) {
        double mean = 0, square = 0;
        for (size_t r = 0; r < rows; r++)
            mean += x[r * dim + i] / (double)rows;
        for (size_t r = 0; r < rows; r++)
            square += (x[r * dim + i] - mean) * (x[r * dim + i] - mean) / (double)rows;
        for (size_t r = 0; r < 2 * rows; r++)
            x[r * dim + i] /= square > 0 ? sqrt(square) : 1;
    }
}

/* Draws of x, not their means, beside as many rows: bits, or values with the noise of p(x | z). */
static hl_status compare_samples(hl_vae *v, const hl_vae_rows *d, uint64_t seed, hl_report *r)
{
    size_t rows = d->rows < COMPARED ? d->rows : COMPARED, values = rows * v->dim;
    if (rows < LEAST_COMPARED)
        return HL_OK;
    double *x = hl_alloc(r->ctx, hl_size_mul(2 * values, sizeof *x));
    hl_status status = x ? hl_vae_sample(v, rows, seed, NULL, x + values) : HL_ERR_NOMEM;
    if (status == HL_OK)
        status = hl_vae_draw(v, rows, seed, x + values);
    for (size_t i = 0; i < values && status == HL_OK; i++) {
        double value = hl_vae_value(d, i / v->dim * d->rows / rows * v->dim + i % v->dim);
        x[i] = v->gaussian ? value : hl_random_uniform(seed, STREAM_ROW_BITS, i) < value;
    }
    if (status == HL_OK && v->gaussian)
        standardise(v->dim, rows, x);
    if (status == HL_OK)
        status = hl_compare_energy(r->ctx, v->dim, rows, x, false, seed, &r->vae.samples);
    hl_free(r->ctx, x);
    return status;
}

/* ---- the report ---- */

static void judge(hl_report *r)
{
    const hl_vae_report *v = &r->vae;
    const char *independent = v->gaussian ? "independent normal values" : "independent pixels";
    bool differ = v->samples.rows && v->samples.p < LEVEL;
    hl_text t = hl_text_start(r->verdict, sizeof r->verdict);
    if (!(v->over_independent > 0)) {
        r->level = HL_REPORT_WRONG;
        hl_text_add(&t,
                    "The ELBO is %.1f nats per row below log p of %s: the autoencoder has learned less than the means "
                    "of the %s",
                    -v->over_independent, independent, v->gaussian ? "values" : "pixels");
    } else if (!v->result.active) {
        r->level = HL_REPORT_WRONG;
        hl_text_add(&t, "No latent column is active: the decoder ignores the code (posterior collapse)");
    } else {
        r->level = !differ ? HL_REPORT_GOOD : v->samples.share > LARGE_SHARE ? HL_REPORT_WRONG : HL_REPORT_MINOR;
        if (differ)
            hl_text_add(&t,
                        "Samples from the prior differ%s from the rows (%.2g %% of the largest possible distance). ",
                        r->level == HL_REPORT_WRONG ? "" : " a little", 100 * v->samples.share);
        else if (v->samples.rows)
            hl_text_add(&t, "No test finds a difference between samples from the prior and the rows. ");
        hl_text_add(&t, "The ELBO is %.1f nats per row above log p of %s, and %zu of %zu latent columns are active",
                    v->over_independent, independent, v->result.active, v->latent);
    }
    hl_report_tell_training(v->known, v->trained, &t);
}

hl_status hl_report_vae(hl_vae *v, const hl_vae_rows *data, const hl_report_options *options, hl_report **out)
{
    static const hl_report_options defaults;
    if (!v)
        return HL_ERR_INVALID;
    if (!out || !data || data->rows < 2 || (!data->bytes && !data->values))
        return hl_fail(v->ctx, HL_ERR_INVALID,
                       "hl_report_vae: at least two rows are needed, and the result must not be NULL");
    *out = NULL;
    options = options ? options : &defaults;
    hl_report *r = NULL;
    hl_vae_rows some = *data;
    hl_status status = hl_report_create(v->ctx, HL_REPORT_OF_VAE, options, &r);
    if (status == HL_OK)
        status = pick_rows(v->dim, ROWS, options->seed, r, &some);
    if (status == HL_OK) {
        r->vae = (hl_vae_report){ .total = data->rows,
                                  .rows = some.rows,
                                  .dim = v->dim,
                                  .latent = v->spec.latent,
                                  .posterior = v->spec.posterior,
                                  .gaussian = v->gaussian };
        status = hl_vae_evaluate(v, &some, &(hl_vae_eval_options){ .seed = options->seed }, NULL, &r->vae.result);
    }
    if (status == HL_OK)
        status = find_units(v, &some, r);
    if (status == HL_OK)
        status = show_images(v, &some, options->seed, r);
    if (status == HL_OK)
        status = compare_samples(v, &some, options->seed, r);
    if (status == HL_OK) {
        const hl_training_point *from = hl_vae_course(v, &r->vae.courses);
        status = hl_report_copy_course(r, r->vae.courses, from, &r->vae.course);
    }
    if (status != HL_OK) {
        hl_report_free(r);
        return status;
    }
    const hl_vae_part_of half[] = { { &some, 0, 2 }, { &some, 1, 2 } };
    r->vae.over_independent =
        r->vae.result.elbo -
        (hl_vae_independent(v, &half[0], &half[1]) + hl_vae_independent(v, &half[1], &half[0])) / 2;
    for (size_t i = 0; i < some.rows; i++) {
        int among = hl_row_sketch_has(&v->rows, hl_vae_row_hash(v, &some, i));
        r->vae.known += among >= 0;
        r->vae.trained += among > 0;
    }
    judge(r);
    *out = r;
    return HL_OK;
}

const hl_vae_report *hl_report_vae_numbers(const hl_report *r)
{
    return r && r->kind == HL_REPORT_OF_VAE ? &r->vae : NULL;
}
