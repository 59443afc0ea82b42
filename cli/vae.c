/* vae.c - `hollow vae`: the commands about autoencoders. */
#include "vae.h"

#include <string.h>

static const cli_command *const commands[] = { &vae_command_fit, &vae_command_eval, &vae_command_sample, NULL };

static const char text[] =
    "Commands:\n"
    "  fit     train an autoencoder on images (bits or gray values) or on rows of numbers\n"
    "  eval    compute -ELBO and an importance-weighted bound of -log p\n"
    "  sample  draw images, reconstructions and traversals\n"
    "\n"
    "The posterior is a diagonal normal distribution or a flow: planar, iaf, sylvester, ffjord,\n"
    "hollow. For details see 'hollow vae COMMAND --help'.\n";

static int run(int argc, char **argv);
const cli_command cli_vae = { "vae",
                              "fit|eval|sample ARGUMENT ... [--option VALUE ...]",
                              "train and evaluate autoencoders with flow posteriors",
                              text,
                              NULL,
                              0,
                              0,
                              run };

static int run(int argc, char **argv)
{
    return cli_run(&cli_vae, commands, argc, argv);
}

/* "28x28" or "3x32x32" */
static bool parse_shape(const char *given, size_t shape[3])
{
    unsigned a, b, c;
    int end = 0;
    if (sscanf(given, "%5ux%5ux%5u%n", &a, &b, &c, &end) == 3 && !given[end]) {
        shape[0] = a, shape[1] = b, shape[2] = c;
    } else if (end = 0, sscanf(given, "%5ux%5u%n", &a, &b, &end) == 2 && !given[end]) {
        shape[0] = 1, shape[1] = a, shape[2] = b;
    } else
        return false;
    return shape[0] && shape[1] && shape[2];
}

int vae_open(const cli_command *command, hl_context *ctx, const char *path, const vae_input *input, const hl_vae *model,
             bool real, hl_images **images)
{
    hl_images_options o = { .bits = input->bits,
                            .array = input->array,
                            .real = real,
                            .drop_missing = input->drop,
                            .in_file = input->in_file,
                            .shared = input->in_file };
    if (input->image && !parse_shape(input->image, o.image))
        return cli_fail(command, CLI_WRONG, "--image: '%s' is not of the form HxW or CxHxW", input->image);
    if (model && !input->image)
        for (size_t i = 0; i < 3; i++)
            o.image[i] = hl_vae_describe(model).image[i];
    hl_status status = hl_images_open(ctx, path, &o, images);
    if (status != HL_OK)
        return cli_fail_library(command, ctx, status);
    if (hl_images_dropped(*images))
        cli_say(command, "%s: skipped %zu rows with missing values", path, hl_images_dropped(*images));
    if (model && hl_images_dim(*images) != hl_vae_dim(model))
        return cli_fail(command, CLI_WRONG, "%s: rows have %zu values, but those of the model have %zu%s", path,
                        hl_images_dim(*images), hl_vae_dim(model),
                        !input->bits && hl_images_dim(*images) * 8 == hl_vae_dim(model) ? "; are they packed (--bits)?"
                                                                                        : "");
    const char *const *names = model ? hl_images_names(*images) : NULL;
    for (size_t c = 0; names && hl_vae_name(model, 0) && c < hl_vae_dim(model); c++)
        if (strcmp(names[c], hl_vae_name(model, c)) != 0)
            return cli_fail(
                command, CLI_WRONG,
                "%s: column %zu is '%s', but that of the model is '%s'; give the columns in the order of the model",
                path, c + 1, names[c], hl_vae_name(model, c));
    return CLI_OK;
}

/* ---- hollow info ---- */

int vae_info(const cli_command *command, hl_context *ctx, const char *path, long long bytes)
{
    hl_vae *v = NULL;
    hl_status status = hl_vae_load(ctx, path, &v);
    if (status != HL_OK)
        return cli_fail_library(command, ctx, status);
    const hl_vae_spec s = hl_vae_describe(v);
    cli_json json = cli_info_open(path, "an autoencoder", bytes);
    cli_json_text(&json, "kind", "autoencoder");
    cli_json_text(&json, "dtype", hl_dtype_name(s.dtype));
    cli_json_count(&json, "dim", s.dim);
    cli_json_open(&json, "image", '[');
    for (size_t i = 0; i < 3; i++)
        cli_json_count(&json, NULL, s.image[i]);
    cli_json_close(&json, ']');
    cli_json_text(&json, "net", s.net);
    cli_json_text(&json, "likelihood", s.likelihood);
    cli_json_count(&json, "latent", s.latent);
    cli_json_text(&json, "posterior", s.posterior);
    cli_json_text(&json, "trace", s.trace);
    cli_json_count(&json, "ode_steps", s.steps);
    cli_json_count(&json, "parameters", hl_params_size(hl_vae_params(v)));
    cli_info_close(&json);
    hl_vae_free(v);
    return CLI_OK;
}
