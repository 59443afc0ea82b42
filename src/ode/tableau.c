/* tableau.c - the coefficients of the Runge-Kutta methods, as published.
 *
 * Row j of `a` is one line. Where a method has no estimate of its own, one that costs nothing is used: with f at the end of
 * the step, euler is compared with heun and rk4 with the third-order (k_0 + 2 k_1 + 2 k_2 + k_end) / 6 [Dormand & Prince
 * 1978]; midpoint and heun are compared with euler. */
#include "ode/tableau.h"

#include <stddef.h>
#include <string.h>

/* clang-format off */

/* ---- one to four stages ---- */

static const double euler_c[] = { 0, 1 };
static const double euler_a[] = { 1 };
static const double euler_e[] = { .5, -.5 };

static const double midpoint_c[] = { 0, .5, 1 };
static const double midpoint_a[] = {
    .5,
    0, 1,
};
static const double midpoint_e[] = { -1, 1 };

static const double heun_c[] = { 0, 1, 1 };
static const double heun_a[] = {
    1,
    .5, .5,
};
static const double heun_e[] = { -.5, .5 };

static const double rk4_c[] = { 0, .5, .5, 1, 1 };
static const double rk4_a[] = {
    .5,
    0, .5,
    0, 0, 1,
    1. / 6, 1. / 3, 1. / 3, 1. / 6,
};
static const double rk4_e[] = { 0, 0, 0, 1. / 6, -1. / 6 };

/* Bogacki & Shampine 1989. */
static const double bosh3_c[] = { 0, .5, .75, 1 };
static const double bosh3_a[] = {
    .5,
    0, .75,
    2. / 9, 1. / 3, 4. / 9,
};
static const double bosh3_e[] = { -5. / 72, 1. / 12, 1. / 9, -1. / 8 };

/* ---- Dormand & Prince 1980; dense output of Hairer, Norsett & Wanner, Solving Ordinary Differential Equations I ---- */

static const double dopri5_c[] = { 0, 1. / 5, 3. / 10, 4. / 5, 8. / 9, 1, 1 };
static const double dopri5_a[] = {
    1. / 5,
    3. / 40, 9. / 40,
    44. / 45, -56. / 15, 32. / 9,
    19372. / 6561, -25360. / 2187, 64448. / 6561, -212. / 729,
    9017. / 3168, -355. / 33, 46732. / 5247, 49. / 176, -5103. / 18656,
    35. / 384, 0, 500. / 1113, 125. / 192, -2187. / 6784, 11. / 84,
};
static const double dopri5_e[] = { 71. / 57600, 0, -71. / 16695, 71. / 1920, -17253. / 339200, 22. / 525, -1. / 40 };
static const double dopri5_d[] = {
    -12715105075. / 11282082432, 0, 87487479700. / 32700410799, -10690763975. / 1880347072,
    701980252875. / 199316789632, -1453857185. / 822651844, 69997945. / 29380423,
};

/* ---- Tsitouras 2011; the row of d is the leading coefficients of its interpolant ---- */

static const double tsit5_c[] = { 0, .161, .327, .9, .9800255409045097, 1, 1 };
static const double tsit5_a[] = {
    .161,
    -.008480655492356989, .335480655492357,
    2.8971530571054935, -6.359448489975075, 4.3622954328695815,
    5.325864828439257, -11.748883564062828, 7.4955393428898365, -.09249506636175525,
    5.86145544294642, -12.92096931784711, 8.159367898576159, -.071584973281401, -.028269050394068383,
    .09646076681806523, .01, .4798896504144996, 1.379008574103742, -3.290069515436081, 2.324710524099774,
};
static const double tsit5_e[] = {
    -.00178001105222577714, -.0008164344596567469, .007880878010261995, -.1447110071732629,
    .5823571654525552, -.45808210592918697, 1. / 66,
};
static const double tsit5_d[] = {
    -1.0530884977290216, .1017, 2.490627285651252793, -16.54810288924490272,
    47.37952196281928122, -34.87065786149660974, 2.5,
};

/* ---- Dormand & Prince's 8(5, 3), with dense output of order 7: DOP853 of Hairer, Norsett & Wanner ---- */

static const double dopri8_c[] = {
    0, 0.05260015195876773, 0.0789002279381516, 0.1183503419072274, 0.2816496580927726, 0.3333333333333333, 0.25,
    0.3076923076923077, 0.6512820512820513, 0.6, 0.8571428571428571, 1.0, 1.0, 0.1, 0.2, 0.7777777777777778,
};
static const double dopri8_a[] = {
    0.05260015195876773,
    0.0197250569845379, 0.0591751709536137,
    0.02958758547680685, 0, 0.08876275643042054,
    0.2413651341592667, 0, -0.8845494793282861, 0.924834003261792,
    0.037037037037037035, 0, 0, 0.17082860872947386, 0.12546768756682242,
    0.037109375, 0, 0, 0.17025221101954405, 0.06021653898045596, -0.017578125,
    0.03709200011850479, 0, 0, 0.17038392571223998, 0.10726203044637328, -0.015319437748624402,
    0.008273789163814023,
    0.6241109587160757, 0, 0, -3.3608926294469414, -0.868219346841726, 27.59209969944671, 20.154067550477894,
    -43.48988418106996,
    0.47766253643826434, 0, 0, -2.4881146199716677, -0.590290826836843, 21.230051448181193, 15.279233632882423,
    -33.28821096898486, -0.020331201708508627,
    -0.9371424300859873, 0, 0, 5.186372428844064, 1.0914373489967295, -8.149787010746927, -18.52006565999696,
    22.739487099350505, 2.4936055526796523, -3.0467644718982196,
    2.273310147516538, 0, 0, -10.53449546673725, -2.0008720582248625, -17.9589318631188, 27.94888452941996,
    -2.8589982771350235, -8.87285693353063, 12.360567175794303, 0.6433927460157636,
    0.054293734116568765, 0, 0, 0, 0, 4.450312892752409, 1.8915178993145003, -5.801203960010585,
    0.3111643669578199, -0.1521609496625161, 0.20136540080403034, 0.04471061572777259,
    0.056167502283047954, 0, 0, 0, 0, 0, 0.25350021021662483, -0.2462390374708025, -0.12419142326381637,
    0.15329179827876568, 0.00820105229563469, 0.007567897660545699, -0.008298,
    0.03183464816350214, 0, 0, 0, 0, 0.028300909672366776, 0.053541988307438566, -0.05492374857139099, 0, 0,
    -0.00010834732869724932, 0.0003825710908356584, -0.00034046500868740456, 0.1413124436746325,
    -0.42889630158379194, 0, 0, 0, 0, -4.697621415361164, 7.683421196062599, 4.06898981839711, 0.3567271874552811,
    0, 0, 0, -0.0013990241651590145, 2.9475147891527724, -9.15095847217987,
};
static const double dopri8_e[] = {
    0.01312004499419488, 0, 0, 0, 0, -1.2251564463762044, -0.4957589496572502, 1.6643771824549864,
    -0.35032884874997366, 0.3341791187130175, 0.08192320648511571, -0.022355307863886294,
};
static const double dopri8_e3[] = {
    -0.18980075407240762, 0, 0, 0, 0, 4.450312892752409, 1.8915178993145003, -5.801203960010585,
    -0.4226823213237919, -0.1521609496625161, 0.20136540080403034, 0.02265179219836082,
};
static const double dopri8_d[] = {
    -8.428938276109013, 0, 0, 0, 0, 0.5667149535193777, -3.0689499459498917, 2.38466765651207, 2.117034582445028,
    -0.871391583777973, 2.2404374302607883, 0.6315787787694688, -0.08899033645133331, 18.148505520854727,
    -9.194632392478356, -4.436036387594894,
    10.427508642579134, 0, 0, 0, 0, 242.28349177525817, 165.20045171727028, -374.5467547226902,
    -22.113666853125306, 7.733432668472264, -30.674084731089398, -9.332130526430229, 15.697238121770845,
    -31.139403219565178, -9.35292435884448, 35.81684148639408,
    19.985053242002433, 0, 0, 0, 0, -387.0373087493518, -189.17813819516758, 527.8081592054236, -11.57390253995963,
    6.8812326946963, -1.0006050966910838, 0.7777137798053443, -2.778205752353508, -60.19669523126412,
    84.32040550667716, 11.99229113618279,
    -25.69393346270375, 0, 0, 0, 0, -154.18974869023643, -231.5293791760455, 357.6391179106141, 93.40532418362432,
    -37.45832313645163, 104.0996495089623, 29.8402934266605, -43.53345659001114, 96.32455395918828,
    -39.17726167561544, -149.72683625798564,
};

/* ---- the list: one row for each method ---- */

#define RK_METHODS(X)                                                                                                  \
    X(euler, .order = 1, .error_order = 1, .dense_order = 3, .end = 1, .end_in_error = true)                           \
    X(midpoint, .order = 2, .error_order = 1, .dense_order = 3, .end = 2)                                              \
    X(heun, .order = 2, .error_order = 1, .dense_order = 3, .end = 2)                                                  \
    X(rk4, .order = 4, .error_order = 3, .dense_order = 3, .end = 4, .end_in_error = true)                             \
    X(bosh3, .order = 3, .error_order = 2, .dense_order = 3, .end = 3, .end_in_error = true)                           \
    X(dopri5, .order = 5, .error_order = 4, .dense_order = 4, .end = 6, .end_in_error = true, .dense_rows = 1,         \
      DENSE(dopri5))                                                                                                   \
    X(tsit5, .order = 5, .error_order = 4, .dense_order = 4, .end = 6, .end_in_error = true, .dense_rows = 1,          \
      DENSE(tsit5))                                                                                                    \
    X(dopri8, .order = 8, .error_order = 7, .dense_order = 7, .end = 12, .extra = 3, .e3 = dopri8_e3, .dense_rows = 4, \
      DENSE(dopri8))

static const double ab2_b[] = { 3. / 2, -1. / 2 };
static const double ab3_b[] = { 23. / 12, -16. / 12, 5. / 12 };
static const double ab4_b[] = { 55. / 24, -59. / 24, 37. / 24, -9. / 24 };
static const double ab5_b[] = { 1901. / 720, -2774. / 720, 2616. / 720, -1274. / 720, 251. / 720 };
#define AB_METHODS(X) X(ab2) X(ab3) X(ab4) X(ab5)

#define COUNT(array) (int)(sizeof(array) / sizeof *(array))
#define DENSE(m) .d = m##_d, .d_count = COUNT(m##_d)
#define RK_ROW(m, ...)                                                                                                 \
    { .name = #m, .c = m##_c, .a = m##_a, .e = m##_e,                                                                  \
      .c_count = COUNT(m##_c), .a_count = COUNT(m##_a), .e_count = COUNT(m##_e), __VA_ARGS__ },
#define RK_NAME(m, ...) #m,
#define AB_ROW(m) { .name = #m, .order = COUNT(m##_b), .b = m##_b },
#define AB_NAME(m) #m,

const hl_rk hl_rk_methods[] = { RK_METHODS(RK_ROW) { .name = NULL } };
const hl_ab hl_ab_methods[] = { AB_METHODS(AB_ROW) { .name = NULL } };
const char *const hl_ode_names[] = { RK_METHODS(RK_NAME) AB_METHODS(AB_NAME) HL_MULTISTEP_NAMES, NULL };
/* clang-format on */

const double *hl_rk_row(const hl_rk *m, int j)
{
    return m->a + j * (j - 1) / 2;
}

const hl_rk *hl_rk_find(const char *name)
{
    const hl_rk *m = hl_rk_methods;
    while (m->name && strcmp(m->name, name) != 0)
        m++;
    return m->name ? m : NULL;
}

const hl_ab *hl_ab_find(const char *name)
{
    const hl_ab *m = hl_ab_methods;
    while (m->name && strcmp(m->name, name) != 0)
        m++;
    return m->name ? m : NULL;
}

bool hl_rk_is_consistent(const hl_rk *m)
{
    int stages = m->end + 1 + m->extra, last = stages - 1;
    return m->end >= 1 && m->extra >= 0 && stages <= HL_RK_STAGES && m->c_count == stages &&
           m->a_count == last * (last + 1) / 2 && m->e_count == m->end + m->end_in_error &&
           m->dense_rows <= HL_RK_DENSE_ROWS && m->d_count == m->dense_rows * stages;
}
