/* version.c - the version of the library and the sizes of all public structs, for bindings.
 *
 * The list of structs, struct_sizes.def, is made by CMake from the public headers. */
#include "base/base.h"
#include "hollow/hollow.h"

const char *hl_version(void)
{
    return HL_VERSION;
}

const hl_struct_size *hl_struct_sizes(void)
{
    static const hl_struct_size sizes[] = {
#define HL_STRUCT(name) { #name, sizeof(name) },
#include <struct_sizes.def>
#undef HL_STRUCT
        { NULL, 0 },
    };
    return sizes;
}
