/* fuzz_options.c - options as text: the first byte chooses a table, then lines of name=value. What was set reads back, and what was
 * refused changes nothing. */
#include "fuzz_support.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    const hl_option *tables[] = { hl_density_fit_options(), hl_sde_learn_options(), hl_vae_fit_options() };
    int asked;
    hl_context *ctx = fuzz_context(&asked);
    hl_settings *s = NULL;
    char *text = malloc(size + 1);
    require(text != NULL);
    memcpy(text, bytes, size);
    text[size] = 0;
    require(hl_settings_create(ctx, tables[size ? bytes[0] % 3 : 0], &s) == HL_OK);
    for (char *line = size ? text + 1 : text, *next; line && *line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = 0;
        char *value = strchr(line, '=');
        if (value)
            *value++ = 0;
        const char *before = hl_settings_text(s, line);
        char *kept = before ? strdup(before) : NULL;
        hl_status status = hl_settings_set(s, line, value);
        const char *after = hl_settings_text(s, line);
        if (status == HL_OK)
            require(value ? after != NULL : !after);
        else
            require(*hl_context_message(ctx) && (kept ? after && strcmp(kept, after) == 0 : !after));
        free(kept);
    }
    hl_settings_free(s);
    hl_context_free(ctx);
    free(text);
    return 0;
}
