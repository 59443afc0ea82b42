/* fit_table.c - fit a density to two columns of a table, score its rows, draw a new one: fit_table TABLE A,B MODEL ITERATIONS */
#include <stdio.h>

#include <hollow/hollow.h>

int main(int argc, char **argv)
{
    static double x[1000000], logp[500000], drawn[2];
    hl_context *ctx = NULL;
    hl_table *table = NULL;
    hl_settings *settings = NULL;
    hl_density *model = NULL;
    if (argc != 5 || hl_context_create(NULL, &ctx) ||
        hl_table_open(ctx, argv[1], &(hl_table_options){ .columns = argv[2] }, &table) ||
        hl_settings_create(ctx, hl_density_fit_options(), &settings) || hl_settings_set(settings, "iters", argv[4]))
        return fprintf(stderr, "usage: fit_table TABLE A,B MODEL ITERATIONS; %s\n", hl_context_message(ctx)), 2;
    const char *names[] = { hl_table_name(table, 0), hl_table_name(table, 1) };
    hl_density_data data = { .dim = 2, .names = names, .train = { .rows = hl_table_rows(table), .x = x } };
    if (data.train.rows > 500000 || hl_table_read_columns(table, 0, data.train.rows, 2, (size_t[]){ 0, 1 }, x) ||
        hl_density_fit(ctx, &data, settings, NULL, &model, NULL) || hl_density_save(model, argv[3]) ||
        hl_density_logp(model, data.train.rows, x, NULL, logp) || hl_density_sample(model, 1, 0, 1, NULL, drawn))
        return fprintf(stderr, "%s\n", hl_context_message(ctx)), 1;
    printf("log p of the first row: %g; %s of a new one: %g\n", logp[0], names[0], drawn[0]);
    hl_density_free(model), hl_settings_free(settings), hl_table_free(table), hl_context_free(ctx);
}
