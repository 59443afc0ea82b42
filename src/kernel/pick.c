/* pick.c - choose the table of kernels that this machine runs best.
 *
 * The build defines HL_HAVE_<isa> for each instruction set it compiled; `base` is always there. A new instruction set
 * needs a row in `rows` and a line in CMakeLists.txt. */
#include "kernel/kernel.h"

#include <string.h>

#define DECLARE(isa) extern const hl_kernels hl_kernels_##isa##_f32, hl_kernels_##isa##_f64;

DECLARE(base)
static int runs_base(void)
{
    return 1;
}

#ifdef HL_HAVE_avx2
DECLARE(avx2)
static int runs_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
#endif

#ifdef HL_HAVE_avx512
DECLARE(avx512)
static int runs_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx2") &&
           __builtin_cpu_supports("fma");
}
#endif

#define ROW(isa) { runs_##isa, { &hl_kernels_##isa##_f32, &hl_kernels_##isa##_f64 } },
static const struct {
    int (*runs)(void);
    const hl_kernels *tables[2]; /* by hl_dtype */
} rows[] = {                     /* best first */
#ifdef HL_HAVE_avx512
             ROW(avx512)
#endif
#ifdef HL_HAVE_avx2
                 ROW(avx2)
#endif
                     ROW(base)
};

const hl_kernels *hl_kernels_pick(hl_dtype dtype, const char *isa)
{
    if (dtype != HL_F32 && dtype != HL_F64)
        return NULL;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const hl_kernels *table = rows[i].tables[dtype];
        if ((!isa || strcmp(isa, table->isa) == 0) && rows[i].runs())
            return table;
    }
    return NULL;
}

size_t hl_conv_scratch(size_t out, size_t channels, size_t kernel_height, size_t kernel_width)
{
    return out * channels * kernel_height * kernel_width;
}

/* The inputs of each panel, transposed, in groups of 16. */
size_t hl_gemm_w_scratch(size_t panels, size_t in)
{
    return panels * HL_LANES * ((in + HL_LANES - 1) / HL_LANES * HL_LANES);
}
