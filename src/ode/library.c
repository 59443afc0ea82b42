/* library.c - which SUNDIALS is linked. */
#include <stdio.h>

#include "hollow/ode.h"
#include "ode/sundials.h"

int hl_ode_library(char *buffer, size_t size)
{
    char version[40];

    if (SUNDIALSGetVersion(version, sizeof version) != 0)
        return snprintf(buffer, size, "SUNDIALS");
    return snprintf(buffer, size, "SUNDIALS %s", version);
}
