/* test_ranks.c - sums and trainings whose bits do not depend on the number of processes. */
#include "ranks_support.h"

#include <stdio.h>

#include "base/ranks.h"
#include "hollow/fit.h"

/* ---- sums ---- */

enum { SIZE = 5, MOST_ROWS = 1500 };

typedef struct summing {
    size_t rows;
    double sum[MOST_RANKS][SIZE];
    size_t seen[MOST_ROWS]; /* how often a row was given out */
} summing;

static double number(size_t row, size_t i)
{
    return hl_random_normal(1, i, row) * exp(8 * hl_random_normal(2, i, row));
}

static void add_rows(hl_context *ctx, size_t rank, void *user)
{
    summing *s = user;
    hl_shares *shares = NULL;
    double *sum;
    size_t first, end, from, to, next;
    if (hl_shares_create(ctx, s->rows, 64, SIZE, &shares) != HL_OK)
        return;
    for (int twice = 0; twice < 2; twice++) { /* the second must not see the first */
        hl_shares_rows(shares, &from, &to);
        for (next = from; hl_shares_next(shares, &first, &end, &sum); next = end) {
            memset(sum, 0, SIZE * sizeof *sum);
            s->sum[rank][0] = first == next ? 0 : NAN;
            for (size_t r = first; r < end; r++) {
                s->seen[r]++;
                for (size_t i = 0; i < SIZE; i++)
                    sum[i] += number(r, i);
            }
        }
        if (next == to && hl_shares_total(shares, &sum) == HL_OK)
            memcpy(s->sum[rank], sum, sizeof s->sum[rank]);
    }
    hl_shares_free(shares);
}

/* Every row is added once, and all ranks have the bits that one has, also where there are fewer shares than ranks. */
static void test_sums(void **state)
{
    static const size_t rows[] = { 1, 64, 65, 200, 256, 700, 1024, 1500 };
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        summing *alone = calloc(1, sizeof *alone), *many = calloc(1, sizeof *many);
        assert_non_null(alone);
        assert_non_null(many);
        alone->rows = rows[k];
        run_ranks(1, 1, add_rows, alone);
        for (size_t i = 0; i < SIZE; i++) {
            double sum = 0, size = 0;
            for (size_t r = 0; r < rows[k]; r++) {
                sum += number(r, i);
                size += fabs(number(r, i));
            }
            CHECK_LE(fabs(alone->sum[0][i] - sum), 1e-14 * size, "the sum of all rows");
        }
        for (size_t size = 2; size <= MOST_RANKS; size++) {
            memset(many, 0, sizeof *many);
            many->rows = rows[k];
            run_ranks(size, 1, add_rows, many);
            for (size_t rank = 0; rank < size; rank++)
                assert_memory_equal(many->sum[rank], alone->sum[0], sizeof alone->sum[0]);
            for (size_t r = 0; r < rows[k]; r++)
                assert_int_equal(many->seen[r], 2);
        }
        free(alone);
        free(many);
    }
}

/* ---- parts, agreement, comparison ---- */

typedef struct agreeing {
    double values[MOST_RANKS][10];
    hl_status status[MOST_RANKS], same[MOST_RANKS], other[MOST_RANKS];
    char message[MOST_RANKS][100];
} agreeing;

static void agree(hl_context *ctx, size_t rank, void *user)
{
    agreeing *a = user;
    size_t first, end;
    hl_ranks_part(ctx, 10, &first, &end);
    for (size_t i = first; i < end; i++)
        a->values[rank][i] = (double)(i * i);
    if (hl_ranks_complete(ctx, 10, a->values[rank]) != HL_OK)
        return;
    hl_status mine = rank == 1   ? hl_fail(ctx, HL_ERR_NOT_FINITE, "rank one fails")
                     : rank == 2 ? hl_fail(ctx, HL_STOPPED, "later")
                                 : HL_OK;
    a->status[rank] = hl_ranks_agree(ctx, mine);
    snprintf(a->message[rank], sizeof a->message[rank], "%s", hl_context_message(ctx));
    a->same[rank] = hl_ranks_compare(ctx, "table", "abc", 3);
    a->other[rank] = hl_ranks_compare(ctx, "table", rank == 2 ? "abd" : "abc", 3);
}

static void test_agreement(void **state)
{
    (void)state;
    for (size_t size = 3; size <= 4; size++) {
        agreeing a = { 0 };
        run_ranks(size, 1, agree, &a);
        for (size_t rank = 0; rank < size; rank++) {
            for (size_t i = 0; i < 10; i++)
                assert_true(a.values[rank][i] == (double)(i * i));
            assert_int_equal(a.status[rank], HL_ERR_NOT_FINITE);
            assert_string_equal(a.message[rank], "rank one fails");
            assert_int_equal(a.same[rank], HL_OK);
            assert_int_equal(a.other[rank], HL_ERR_INVALID);
        }
    }
}

static void test_wrong_ranks(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    CHECK_STATUS(ctx, hl_context_set_ranks(ctx, &(hl_ranks){ .rank = 2, .size = 2 }), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_context_set_ranks(ctx, &(hl_ranks){ .rank = 0, .size = 0 }), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_context_set_ranks(ctx, &(hl_ranks){ .rank = 0, .size = 2 }), HL_ERR_INVALID);
    CHECK_OK(ctx, hl_context_set_ranks(ctx, &(hl_ranks){ .rank = 0, .size = 1 }));
    assert_int_equal(hl_context_ranks(ctx), 1);
    test_context_free(ctx, NULL);
}

/* ---- training ---- */

enum { ROWS = 700, DIM = 3, VALID = 101, STEPS = 7, PARAMETERS = 4000 };

typedef struct training {
    hl_loss loss;
    size_t batch;
    double values[MOST_RANKS][PARAMETERS], best[MOST_RANKS], losses[MOST_RANKS];
    size_t stop_rank; /* one that wants to stop in the fourth iteration; MOST_RANKS: none */
    hl_status status[MOST_RANKS];
} training;

static int stop_now(void *user)
{
    return *(int *)user;
}

static void train(hl_context *ctx, size_t rank, void *user)
{
    training *t = user;
    double *x = calloc(ROWS * DIM, sizeof *x);
    hl_flow_spec spec = { .net = { .dim = DIM, .hidden = 9, .width = 8 } };
    hl_flow *flow = NULL;
    hl_fit *fit = NULL;
    hl_fit_report report;
    int stop = 0;
    ctx->stop = stop_now;
    ctx->stop_user = &stop;
    for (size_t i = 0; x && i < ROWS * DIM; i++)
        x[i] = hl_random_normal(1, 1, i);
    hl_fit_data rows = { .rows = ROWS, .x = x }, valid = { .rows = VALID, .x = x };
    hl_fit_options options = { .loss = t->loss,
                               .iterations = STEPS,
                               .batch = t->batch,
                               .matching = 3,
                               .validate_every = 3,
                               .jitter = 0.1,
                               .train_trace = HL_TRACE_HUTCHINSON };
    hl_status status = x ? hl_flow_create(ctx, &spec, &flow) : HL_ERR_NOMEM;
    if (status == HL_OK)
        status = hl_flow_init(flow, 3);
    if (status == HL_OK)
        status = hl_fit_create(flow, &rows, &valid, &options, &fit);
    for (size_t k = 0; k < STEPS && status == HL_OK; k++) {
        stop = rank == t->stop_rank && k == 3;
        status = hl_fit_step(fit, &report);
        if (status == HL_OK) {
            t->losses[rank] += report.loss;
            t->best[rank] = report.best;
        }
    }
    t->status[rank] = status;
    for (size_t p = 0, at = 0; status == HL_OK && p < hl_net_param_count(hl_flow_net(flow, 0)); p++) {
        hl_net_param q;
        hl_net_param_get(hl_flow_net(flow, 0), p, &q);
        for (size_t i = 0; i < q.size && at < PARAMETERS; i++)
            t->values[rank][at++] = ((float *)q.values)[i];
    }
    hl_fit_free(fit);
    hl_flow_free(flow);
    free(x);
}

/* The parameters after some iterations, losses and validations: the same bits on 1 to 4 ranks with 1 and 2 threads. */
static void test_training(void **state)
{
    static const hl_loss losses[] = { HL_LOSS_DEFAULT, HL_LOSS_SCORE };
    static const size_t batches[] = { 40, 256, 333 };
    (void)state;
    training *alone = calloc(1, sizeof *alone), *many = calloc(1, sizeof *many);
    assert_non_null(alone);
    assert_non_null(many);
    for (size_t k = 0; k < 6; k++) {
        *alone = (training){ .loss = losses[k % 2], .batch = batches[k / 2], .stop_rank = MOST_RANKS };
        run_ranks(1, 1, train, alone);
        assert_int_equal(alone->status[0], HL_OK);
        CHECK(alone->losses[0] != 0 && isfinite(alone->best[0]), "something was learnt");
        for (size_t size = 2; size <= 4; size++) {
            *many = (training){ .loss = losses[k % 2], .batch = batches[k / 2], .stop_rank = MOST_RANKS };
            run_ranks(size, 1 + (int)(size % 2), train, many);
            for (size_t rank = 0; rank < size; rank++) {
                assert_int_equal(many->status[rank], HL_OK);
                assert_memory_equal(many->values[rank], alone->values[0], sizeof alone->values[0]);
                assert_true(many->best[rank] == alone->best[0] && many->losses[rank] == alone->losses[0]);
            }
        }
    }
    free(alone);
    free(many);
}

/* Where one rank is asked to stop, all do, in the same iteration. */
static void test_stop(void **state)
{
    training *t = calloc(1, sizeof *t);
    (void)state;
    assert_non_null(t);
    *t = (training){ .loss = HL_LOSS_LIKELIHOOD, .batch = 256, .stop_rank = 1 };
    run_ranks(3, 1, train, t);
    for (size_t rank = 0; rank < 3; rank++) {
        assert_int_equal(t->status[rank], HL_STOPPED);
        assert_true(t->losses[rank] == t->losses[0]);
    }
    free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_sums), cmocka_unit_test(test_agreement),
                                        cmocka_unit_test(test_wrong_ranks), cmocka_unit_test(test_training),
                                        cmocka_unit_test(test_stop) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
