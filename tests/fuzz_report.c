/* fuzz_report.c - reports of models that were read from a file: of densities, equations and autoencoders. A report of whatever can be read is valid
 * JSON and a page without a script but our own, whatever the names in the model. */
#include "fuzz_support.h"

#include "io/json.h"

enum { ROWS = 12, MOST = 64, OUR_SCRIPTS = 2 };

/* Texts of a report, with room for nothing, for less, and for all. */
static void check_texts(hl_context *ctx, hl_report *report)
{
    size_t size, again, scripts = 0;
    hl_json_document document = { 0 };
    require(*hl_report_verdict(report));
    require(hl_report_json(report, NULL, 0, &size) == HL_OK);
    char *text = calloc(size + 1, 1);
    require(text && hl_report_json(report, text, size - 1, &again) == HL_OK && again == size && !*text);
    require(hl_report_json(report, text, size, &again) == HL_OK && again == size);
    require(hl_json_parse(ctx, text, size, &document) == HL_OK);
    hl_json_free(&document);
    free(text);
    require(hl_report_html(report, HL_REPORT_PAGE, NULL, 0, &size) == HL_OK && size <= 1 << 20);
    text = calloc(size + 1, 1);
    require(text && hl_report_html(report, HL_REPORT_PAGE, text, size, &again) == HL_OK && again == size);
    require(strlen(text) == size);
    for (const char *at = text; (at = strstr(at, "<script")); at++)
        scripts++;
    require(scripts <= OUR_SCRIPTS);
    free(text);
}

static void report_density(hl_context *ctx, hl_density *model, const double *x)
{
    hl_report *report = NULL;
    size_t dim = hl_density_dim(model), context = hl_density_context(model);
    if (dim <= MOST && context <= MOST) {
        hl_report_rows data = { .rows = ROWS, .x = x, .context = context ? x : NULL };
        if (fuzz_opened(ctx, hl_report_density(model, &data, &(hl_report_options){ .draws = ROWS }, &report), report))
            check_texts(ctx, report);
    }
    hl_report_free(report);
}

static void report_sde(hl_context *ctx, hl_sde *sde, const double *x)
{
    hl_report *report = NULL;
    size_t trajectory[ROWS];
    double t[ROWS];
    for (size_t r = 0; r < ROWS; r++) {
        trajectory[r] = r / 6;
        t[r] = .1 * (double)(r % 6);
    }
    if (hl_sde_describe(sde).dim <= MOST) {
        hl_sde_data data = { .rows = ROWS, .t = t, .x = x, .trajectory = trajectory };
        if (fuzz_opened(ctx, hl_report_sde(sde, &data, &(hl_report_options){ .draws = ROWS }, &report), report))
            check_texts(ctx, report);
    }
    hl_report_free(report);
}

static void report_vae(hl_context *ctx, hl_vae *vae, const double *x)
{
    hl_report *report = NULL;
    if (hl_vae_dim(vae) <= MOST) {
        hl_vae_rows data = { .rows = ROWS, .values = x, .gray = 1 };
        if (fuzz_opened(ctx, hl_report_vae(vae, &data, &(hl_report_options){ .draws = ROWS }, &report), report))
            check_texts(ctx, report);
    }
    hl_report_free(report);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    int asked;
    hl_context *ctx = fuzz_context(&asked);
    uint8_t *copy = fuzz_unchecked(bytes, size);
    hl_density *model = NULL;
    hl_sde *sde = NULL;
    hl_vae *vae = NULL;
    double x[ROWS * MOST];
    for (size_t i = 0; i < ROWS * MOST; i++)
        x[i] = (double)(i * 37 % 101) / 101;
    if (fuzz_opened(ctx, hl_density_read(ctx, copy, size, &model), model))
        report_density(ctx, model, x);
    else if (fuzz_opened(ctx, hl_sde_read(ctx, copy, size, &sde), sde))
        report_sde(ctx, sde, x);
    else if (fuzz_opened(ctx, hl_vae_read(ctx, copy, size, &vae), vae))
        report_vae(ctx, vae, x);
    hl_density_free(model);
    hl_sde_free(sde);
    hl_vae_free(vae);
    hl_context_free(ctx);
    free(copy);
    return 0;
}
