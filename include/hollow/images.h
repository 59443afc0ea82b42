/* hollow/images.h - rows of bits, gray values or numbers from files: npy, npz, csv, and idx.
 *
 *     hl_images_open(ctx, "train_bits.npy", &(hl_images_options){ .bits = 1 }, &images);
 *     hl_vae_data data = { .train = hl_images_rows(images) };
 *     hl_images_shape(images, data.image);
 *
 * Pixels are 0 and 1, or gray values 0 to 255. With `bits` a column holds 8 pixels, the most significant bit first, as
 * numpy.packbits writes them; arrays may be in C or Fortran order. */
#ifndef HOLLOW_IMAGES_H
#define HOLLOW_IMAGES_H

#include "hollow/vae.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hl_images hl_images; /* opaque */

/* Zero or NULL in any field means the default. */
typedef struct hl_images_options {
    int bits;          /* nonzero: 8 pixels a column */
    int real;          /* nonzero: any finite numbers, for the Gaussian likelihood */
    size_t image[3];   /* channels, height, width; default those of an idx file; else, if the number of pixels is a
                        * square, 1 x its root x its root; else the rows are no images */
    const char *array; /* npz: the array to read */
    int drop_missing;  /* nonzero: leave rows with missing values out, instead of failing */
    /* Nonzero: rows are looked at, but stay in the file, and hl_images_source reads them; hl_images_rows has no values then. Compressed
     * arrays are inflated in memory; the numbers of a large csv file go to a temporary one, as in hollow/table.h. */
    int in_file;
    int shared; /* nonzero, with in_file: all ranks of the context open the same file together, each looks at its part of the rows */
} hl_images_options;

/* Read a file. Errors name the file, the row and the column: a value that is no pixel, a wrong number of pixels. */
HL_API hl_status hl_images_open(hl_context *context, const char *path, const hl_images_options *options,
                                hl_images **images);
HL_API void hl_images_free(hl_images *images); /* takes NULL */
/* The rows; borrowed until the images are freed. `gray` is set if any pixel is above 1. */
HL_API hl_vae_rows hl_images_rows(const hl_images *images);
/* The rows, to be read when they are needed, from one thread at a time; borrows until the images are freed. */
HL_API hl_vae_source hl_images_source(hl_images *images);
HL_API size_t hl_images_dim(const hl_images *images);                  /* pixels of an image */
HL_API void hl_images_shape(const hl_images *images, size_t shape[3]); /* zeros if the rows are no images */
HL_API size_t hl_images_dropped(const hl_images *images);              /* rows left out for missing values */

#ifdef __cplusplus
}
#endif

#endif
