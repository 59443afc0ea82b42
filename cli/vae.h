/* vae.h - the commands of `hollow vae`, and what they share. */
#ifndef CLI_VAE_H
#define CLI_VAE_H

#include "cli.h"

extern const cli_command vae_command_fit, vae_command_eval, vae_command_sample;

/* How DATA is read. */
typedef struct vae_input {
    const char *image, *array; /* "28x28" or "3x32x32" */
    bool bits, drop;
    bool in_file; /* rows stay in the file, which all ranks open together */
} vae_input;

/* Rows of these options for a command's table, `T` the type of its settings with a member `input`. */
#define VAE_INPUT_OPTIONS(T)                                                                                            \
    { "image", CLI_TEXT, offsetof(T, input.image), "HxW", "shape of an image: HxW or CxHxW", 0, 0, NULL },              \
        { "bits", CLI_FLAG, offsetof(T, input.bits), NULL, "DATA has 8 pixels a byte, as numpy.packbits", 0, 0, NULL }, \
        { "drop-missing", CLI_FLAG, offsetof(T, input.drop), NULL, "leave rows with missing values out", 0, 0, NULL },  \
    {                                                                                                                   \
        "array", CLI_TEXT, offsetof(T, input.array), "NAME", "npz: the array to read", 0, 0, NULL                       \
    }

/* Read a file for a model (its shape, unless the options say another), or for a new one (NULL). Returns CLI_OK or an exit
 * status, having said what is wrong. */
int vae_open(const cli_command *command, hl_context *ctx, const char *path, const vae_input *input, const hl_vae *model,
             bool real, hl_images **images);

/* For `hollow info`: what a model file holds. */
int vae_info(const cli_command *command, hl_context *ctx, const char *path, long long bytes);

#endif
