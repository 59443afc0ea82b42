/* learn_sde.c - learn dx = f(x) dt + g(x) dW from a time series in a table: learn_sde TABLE TIME COLUMNS MODEL */
#include <stdio.h>

#include <hollow/hollow.h>

int main(int argc, char **argv)
{
    double f[100], g[100];
    hl_context *ctx = NULL;
    hl_observations *data = NULL;
    hl_sde *sde = NULL;
    if (argc != 5 || hl_context_create(NULL, &ctx) ||
        hl_observations_read(ctx, argv[1], &(hl_observation_options){ .time = argv[2], .columns = argv[3] }, &data))
        return fprintf(stderr, "usage: learn_sde TABLE TIME COLUMNS MODEL; %s\n", hl_context_message(ctx)), 2;
    hl_sde_observations rows = hl_observations_rows(data);
    if (rows.dim > 100 || hl_sde_learn(ctx, &rows, NULL, NULL, &sde, NULL) || hl_sde_save(sde, argv[4]) ||
        hl_sde_eval(sde, 1, rows.t, rows.x, &(hl_sde_values){ .f = f, .g = g }))
        return fprintf(stderr, "%s\n", hl_context_message(ctx)), 1;
    for (size_t i = 0; i < rows.dim; i++)
        printf("at %s = %g: drift %g, diffusion %g\n", rows.names[i], rows.x[i], f[i], g[i]);
    hl_sde_free(sde), hl_observations_free(data), hl_context_free(ctx);
}
