/* fuzz_expression.c - expressions for drift and diffusion as text: the first byte is the number of columns, a line break ends the drift. What is
 * parsed can be evaluated, and its source is parsed again. */
#include "fuzz_support.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    int asked;
    hl_context *ctx = fuzz_context(&asked);
    size_t dim = size ? 1 + bytes[0] % 3 : 1;
    hl_sde_forms *forms = NULL, *again = NULL;
    char *text = malloc(size + 1);
    require(text != NULL);
    memcpy(text, bytes, size);
    text[size] = 0;
    char *drift = size ? text + 1 : text, *diffusion = strchr(drift, '\n');
    if (diffusion)
        *diffusion++ = 0;
    if (fuzz_opened(ctx, hl_sde_forms_parse(ctx, dim, NULL, drift, diffusion, &forms), forms)) {
        double x[3] = { .5, -1, 2 }, t = .1, f[3], g[3];
        hl_sde_forms_eval(forms, 1, &t, x, f, g);
        require(hl_sde_forms_parse(ctx, dim, NULL, hl_sde_forms_source(forms, 0), hl_sde_forms_source(forms, 1),
                                   &again) == HL_OK);
        require(hl_sde_forms_constants(forms) == hl_sde_forms_constants(again));
    }
    hl_sde_forms_free(again);
    hl_sde_forms_free(forms);
    hl_context_free(ctx);
    free(text);
    return 0;
}
