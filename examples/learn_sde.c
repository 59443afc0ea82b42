/* learn_sde.c - learn dx = f(x) dt + g(x) dW from a time series in a table: learn_sde TABLE TIME,COLUMN MODEL */
#include <stdio.h>

#include <hollow/hollow.h>

int main(int argc, char **argv)
{
    static double t[100000], x[100000], f, g;
    hl_context *ctx = NULL;
    hl_table *table = NULL;
    hl_sde *sde = NULL;
    if (argc != 4 || hl_context_create(NULL, &ctx) ||
        hl_table_open(ctx, argv[1], &(hl_table_options){ .columns = argv[2] }, &table))
        return fprintf(stderr, "usage: learn_sde TABLE TIME,COLUMN MODEL; %s\n", hl_context_message(ctx)), 2;
    const char *names[] = { hl_table_name(table, 1), hl_table_name(table, 0) };
    hl_sde_observations data = { .rows = hl_table_rows(table), .dim = 1, .t = t, .x = x, .names = names };
    if (data.rows > 100000 || hl_table_read_columns(table, 0, data.rows, 1, &(size_t){ 0 }, t) ||
        hl_table_read_columns(table, 0, data.rows, 1, &(size_t){ 1 }, x) ||
        hl_sde_learn(ctx, &data, NULL, NULL, &sde, NULL) || hl_sde_save(sde, argv[3]) ||
        hl_sde_eval(sde, 1, t, x, &(hl_sde_values){ .f = &f, .g = &g }))
        return fprintf(stderr, "%s\n", hl_context_message(ctx)), 1;
    printf("at %s = %g: drift %g, diffusion %g\n", names[0], x[0], f, g);
    hl_sde_free(sde), hl_table_free(table), hl_context_free(ctx);
}
