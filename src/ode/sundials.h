/* sundials.h - the SUNDIALS that we use, and what differs between its versions 6.4 and 7.
 *
 * Only vector.c, integrator.c, iteration.c, library.c and root_krylov.c use this. */
#ifndef HL_ODE_SUNDIALS_H
#define HL_ODE_SUNDIALS_H

#include <nvector/nvector_serial.h>
#include <stdlib.h>
#include <sundials/sundials_context.h>
#include <sundials/sundials_linearsolver.h>
#include <sundials/sundials_types.h>
#include <sundials/sundials_version.h>
#include <sunlinsol/sunlinsol_spgmr.h>

/* Unknowns are passed to callbacks as arrays of double. */
_Static_assert(sizeof(sunrealtype) == sizeof(double), "SUNDIALS must be built for double precision");

/* A context of SUNDIALS that never prints; NULL without memory. SUNDIALS 6.4 crashes where memory runs out in making one, so it
 * is seen before that there is more than it takes. */
static inline SUNContext hl_sun_context(void)
{
    enum { ENOUGH = 1 << 16 };
    SUNContext sun = NULL;
    void *probe = malloc(ENOUGH);
    if (!probe)
        return NULL;
    free(probe);
#if SUNDIALS_VERSION_MAJOR >= 7
    if (SUNContext_Create(SUN_COMM_NULL, &sun) == 0)
        SUNContext_ClearErrHandlers(sun);
#else
    if (SUNContext_Create(NULL, &sun) != 0)
        return NULL;
#endif
    return sun;
}

/* Errors come back as statuses; what SUNDIALS would print beside them is dropped. */
static inline void hl_sun_silent(int code, const char *module, const char *function, char *text, void *user)
{
    (void)code, (void)module, (void)function, (void)text, (void)user;
}

#endif
