/* hollow/images.h - read rows of bits, gray values or numbers from npy, npz, csv and idx files.
 *
 *     hl_images_open(ctx, "train_bits.npy", &(hl_images_options){ .bits = 1 }, &images);
 *     hl_vae_data data = { .train = hl_images_rows(images) };
 *     hl_images_shape(images, data.image);
 *
 * Pixels are 0 and 1, or gray values 0 to 255. With `bits`, a column holds 8 pixels, most significant bit first, as written by
 * numpy.packbits. Arrays may be in C or Fortran order. */
#ifndef HOLLOW_IMAGES_H
#define HOLLOW_IMAGES_H

#include "hollow/vae.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hl_images hl_images; /* opaque */

/* Zero or NULL in any field means the default. */
typedef struct hl_images_options {
    /* Nonzero: a column holds 8 pixels. */
    int bits;
    /* Nonzero: values are arbitrary finite numbers, for the Gaussian likelihood. */
    int real;
    /* Channels, height, width. Default: those of an idx file; else 1 x n x n if the number of pixels is n^2 and they are not
     * real; else the rows are not images. */
    size_t image[3];
    /* npz: the array to read. */
    const char *array;
    /* Nonzero: skip rows with missing values. Default: a missing value is an error. */
    int drop_missing;
    /* Nonzero: check the rows but leave them in the file; hl_images_source reads them, and hl_images_rows returns no values. Compressed
     * arrays are inflated in memory. Numbers of a large csv file go to a temporary file, as in hollow/table.h. */
    int in_file;
    /* Nonzero, with in_file: all ranks of the context open the same file together, and each checks its part of the rows. */
    int shared;
} hl_images_options;

/* Open a file. Errors, such as a value that is not a pixel or a wrong number of pixels, name the file, the row and the column. */
HL_API hl_status hl_images_open(hl_context *context, const char *path, const hl_images_options *options,
                                hl_images **images);
HL_API void hl_images_free(hl_images *images); /* takes NULL */
/* The rows. Borrowed until the images are freed. `gray` is nonzero if a pixel is above 1. */
HL_API hl_vae_rows hl_images_rows(const hl_images *images);
/* The rows, to be read when needed, from one thread at a time. Borrowed until the images are freed. */
HL_API hl_vae_source hl_images_source(hl_images *images);
HL_API size_t hl_images_dim(const hl_images *images);                  /* pixels of an image */
HL_API void hl_images_shape(const hl_images *images, size_t shape[3]); /* zeros if the rows are not images */
/* Names of the columns; NULL if the file has none or a column holds 8 pixels. Borrowed until the images are freed. */
HL_API const char *const *hl_images_names(const hl_images *images);
HL_API size_t hl_images_dropped(const hl_images *images); /* rows skipped because of missing values */

#ifdef __cplusplus
}
#endif

#endif
