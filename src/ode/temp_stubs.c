/* TEMP stubs: what the Runge-Kutta family will bring. */
#include "ode/ode.h"

static const char *const names[] = { "dopri5", NULL };
static hl_status none(hl_ode *ode)
{
    return hl_fail(ode->ctx, HL_ERR_UNSUPPORTED, "not here yet");
}
static void nothing(hl_ode *ode)
{
    (void)ode;
}
const hl_ode_family hl_ode_rk = { .names = names, .create = none, .free = nothing };

hl_status hl_field_create(const hl_net *net, size_t rows, hl_field **field)
{
    (void)net, (void)rows, (void)field;
    return HL_ERR_UNSUPPORTED;
}
void hl_field_free(hl_field *field)
{
    (void)field;
}
void hl_field_set_context(hl_field *field, const double *context)
{
    (void)field, (void)context;
}
hl_system hl_field_system(hl_field *field)
{
    (void)field;
    return (hl_system){ 0 };
}
const char *const *hl_ode_methods(void)
{
    return hl_ode_multistep.names;
}
