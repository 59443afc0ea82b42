/* density_fit_options.c - the options of hl_density_fit. */
#include "flow/flow.h"
#include "hollow/density_fit.h"
#include "nn/net.h"

/* Those that continuous flows can have. */
static const char *const conditioners[] = { "made", "separate", "conv", "attention", "tree", "sum", NULL };
static const char *const traces[] = { "exact", "hutchinson", "brute", NULL };
static const char *const losses[] = { "default", "nll", "flow-matching", "score", NULL };
static const char *const dtypes[] = { "f32", "f64", NULL };
static const char *const optimizers[] = { "adamw", "adam", "adamax", "sgd", NULL };
static const char *const members[] = { "all", "flow", "mixture", NULL };
static const char *const recipes[] = { "default", "fast", "best", NULL };
static const char *const switches[] = { "on", "off", NULL };

#define FLAG(name, help)                                                                                               \
    {                                                                                                                  \
        name, HL_OPTION_FLAG, NULL, 0, 0, NULL, "off", help, NULL                                                      \
    }
#define INTEGER(name, low, high, otherwise, help, applies)                                                             \
    {                                                                                                                  \
        name, HL_OPTION_INTEGER, "N", low, high, NULL, otherwise, help, applies                                        \
    }
#define REAL(name, value, low, high, otherwise, help, applies)                                                         \
    {                                                                                                                  \
        name, HL_OPTION_REAL, value, low, high, NULL, otherwise, help, applies                                         \
    }
#define TEXT(name, value, otherwise, help, applies)                                                                    \
    {                                                                                                                  \
        name, HL_OPTION_TEXT, value, 0, 0, NULL, otherwise, help, applies                                              \
    }
#define CHOICE(name, value, choices, otherwise, help, applies)                                                         \
    {                                                                                                                  \
        name, HL_OPTION_CHOICE, value, 0, 0, choices, otherwise, help, applies                                         \
    }

/* clang-format off */
static const hl_option options[] = {
    CHOICE("members", "NAME", members, "all", "members of the weighted sum: a flow, mixtures of t distributions, or both", NULL),
    CHOICE("recipe", "NAME", recipes, "default", "fast: a tenth of the iterations, mixtures of up to 64 components; best: five times the iterations, up to 1024", NULL),
    CHOICE("model", "NAME", hl_flow_kind_names, "cnf", "kind of flow", NULL),
    CHOICE("conditioner", "NAME", conditioners, "made up to 512 columns, else tree", "network that computes the features h", "model=cnf"),
    TEXT("image", "HxW", NULL, "shape of a row for conditioner conv: HxW or CxHxW", "conditioner=conv"),
    INTEGER("flows", 1, 1000, "1 for cnf, else 5", "number of networks in the flow", NULL),
    INTEGER("hidden", 1, 1 << 20, "chosen by number of columns and model", "units of each conditioner layer", NULL),
    INTEGER("hidden-layers", 1, 64, "1 for cnf with up to 3 columns, else 2", "hidden layers of the conditioner", NULL),
    INTEGER("features", 2, 65536, "16 for cnf", "number of features in each h_i", NULL),
    INTEGER("width", 1, 1 << 20, "64 up to 3 columns, else 32", "units of each transformer layer", NULL),
    INTEGER("layers", 1, 64, "3 up to 3 columns, else 2", "hidden layers of the transformer", NULL),
    CHOICE("activation", "NAME", hl_activation_names, "tanh up to 3 columns, else swish", "activation of all layers", NULL),
    CHOICE("trace", "NAME", traces, "exact", "computation of the divergence in training", "model=cnf"),
    CHOICE("loss", "NAME", losses, "flow-matching, then nll", "training loss", NULL),
    CHOICE("transport", "on|off", switches, "on up to 8 columns", "pair noise and rows by optimal transport in flow matching", "model=cnf"),
    CHOICE("decorrelate", "on|off", switches, "on if correlations are strong, up to 512 columns",
           "remove linear correlations before the flow", NULL),
    TEXT("solver", "NAME", "dopri5", "ODE solver of log p and, if ode-steps is not set, of training: tsit5, adams-jacobi, auto, ...",
         "model=cnf"),
    REAL("rtol", "X", 1e-16, 1, "1e-5", "relative tolerance of log p", "model=cnf"),
    REAL("atol", "X", 1e-100, 1, "1e-5", "absolute tolerance of log p", "model=cnf"),
    CHOICE("calibrate", "on|off", switches, "on unless solver, rtol or atol is set",
           "choose the solver by its accuracy on validation rows", "model=cnf"),
    INTEGER("ode-steps", 1, 256, "8 up to 2 columns, else 4", "RK4 steps in training; doubled if they are too few", "model=cnf"),
    INTEGER("iters", 1, 1e12, "2000 up to 3 columns, else 1000; twice that with members=flow", "training iterations of the flow", NULL),
    INTEGER("extensions", 0, 100, "2; 0 if iters is set or recipe is fast",
            "add half of the iterations, at most N times, if validation is still improving at the end", NULL),
    REAL("minutes", "M", 0, 1e6, "no limit", "time limit of training; results are then not reproducible", NULL),
    INTEGER("batch", 1, 1000000, "512 up to 2 columns, 128 above 512, else 256", "rows per batch", NULL),
    CHOICE("optimizer", "NAME", optimizers, "adamw", "optimiser", NULL),
    REAL("lr", "X", 1e-12, 10, "1e-2 up to 3 columns, else 5e-3", "largest learning rate", NULL),
    REAL("weight-decay", "X", 0, 10, "0 for many rows, larger for few", "weight decay", NULL),
    REAL("jitter", "X", 0, 10, "0 for many rows, 0.3 for few",
         "initial noise on training rows, in standard deviations; decreases to 0", NULL),
    REAL("straight", "W", 0, 1e6, "0", "weight of the mean |f|^2 along paths in nll training; larger values reduce evaluations",
         "model=cnf"),
    INTEGER("warmup", 1, 1e12, "iters / 50", "iterations of learning-rate warm-up", NULL),
    REAL("last-lr", "X", 1e-12, 1, "0.01", "final learning rate as a fraction of lr (cosine schedule)", NULL),
    REAL("clip", "X", 0, 1e300, "10", "largest gradient norm (clipping); 0: no limit", NULL),
    REAL("average", "X", 0, 0.999999, "0.99", "decay of the moving average of the parameters; 0: no average", NULL),
    REAL("beta1", "X", 0, 0.999999, "0.9", "decay of the first moment of the gradient; 0: no average", NULL),
    INTEGER("patience", 1, 100000, "8", "stop after N validations without improvement", NULL),
    REAL("validation-share", "X", 0, 0.9, "0.1", "fraction of the rows used for validation if none are given", NULL),
    INTEGER("seed", 0, 9e15, "0", "random seed", NULL),
    CHOICE("dtype", "f32|f64", dtypes, "f32", "floating-point precision of the networks", NULL),
    TEXT("bounds", "LIST", NULL, "bounds of columns, such as 'a=0:1,b=0:'; samples stay within them", NULL),
    CHOICE("atoms", "on|off", switches, "on", "model frequent values of a column as point masses (atoms)", NULL),
    FLAG("dequantize", "add uniform noise also to other columns with more than half of their values repeated"),
    FLAG("keep-steps", "do not add uniform noise to integer columns or columns of few values on a grid"),
    { 0 },
};
/* clang-format on */

const hl_option *hl_density_fit_options(void)
{
    return options;
}
