"""The C library's interface for ctypes. Made from the headers by python/generate.py; do not edit."""

# fmt: off
# ruff: noqa
from __future__ import annotations

from ctypes import (  # noqa: F401
    CFUNCTYPE, POINTER, Structure, c_char, c_char_p, c_double, c_float, c_int, c_int32, c_int64, c_size_t, c_ssize_t,
    c_ubyte, c_uint32, c_uint64, c_void_p,
)
from typing import Any

HL_VERSION = "0.1.0"

HL_OK = 0
HL_IMPRECISE = 2
HL_STOPPED = 1
HL_ERR_NOMEM = -1
HL_ERR_INVALID = -2
HL_ERR_SHAPE = -3
HL_ERR_IO = -4
HL_ERR_FORMAT = -5
HL_ERR_UNSUPPORTED = -6
HL_ERR_NOT_FINITE = -7
HL_ERR_STEP = -8
HL_ERR_BUDGET = -9
HL_ERR_CONVERGENCE = -10
HL_ERR_NO_SOLUTION = -11
HL_ERR_CALLBACK = -12
HL_F32 = 0
HL_F64 = 1
HL_MAX_RANK = 6
HL_TAYLOR = 0
HL_REVERSE = 1
HL_FILE_NONE = 0
HL_FILE_OTHER = 1
HL_FILE_NET = 2
HL_FILE_DENSITY = 3
HL_FILE_SDE = 4
HL_FILE_VAE = 5
HL_FILE_CHECKPOINT = 6
HL_NO_GRADIENT = 0
HL_REPLAY = 1
HL_ADJOINT = 2
HL_ADJOINT_REINTEGRATED = 3
HL_TRACE_EXACT = 0
HL_TRACE_HUTCHINSON = 1
HL_TRACE_BRUTE = 2
HL_LOSS_DEFAULT = 0
HL_LOSS_LIKELIHOOD = 1
HL_LOSS_FLOW_MATCHING = 2
HL_LOSS_SCORE = 3
HL_FIT_START = 0
HL_FIT_FLOW_MATCHING = 1
HL_FIT_SCORE_MATCHING = 2
HL_FIT_LIKELIHOOD = 3
HL_FIT_MIXING = 4
HL_MEMBER_FLOW = 0
HL_MEMBER_MIXTURE = 1
HL_OPTION_FLAG = 0
HL_OPTION_INTEGER = 1
HL_OPTION_REAL = 2
HL_OPTION_TEXT = 3
HL_OPTION_CHOICE = 4
HL_FINDING_CONSTANT = 0
HL_FINDING_SCALE = 1
HL_FINDING_INTEGER = 2
HL_FINDING_TIED = 3
HL_FINDING_FAR = 4
HL_FINDING_DEPENDENT = 5
HL_FINDING_REPEATED = 6
HL_FINDING_COPIES = 7
HL_FINDING_DUPLICATES = 8
HL_FINDING_EDGE = 9
HL_FINDING_ATOM = 10
HL_FINDING_OTHERS = 3
HL_DENSITY_END_DONE = 0
HL_DENSITY_END_PATIENCE = 1
HL_DENSITY_END_TIME = 2
HL_DENSITY_END_STOPPED = 3
HL_DENSITY_END_ERROR = 4
HL_DENSITY_END_BEHIND = 5
HL_DENSITY_GOOD = 0
HL_DENSITY_NORMAL = 1
HL_DENSITY_NORMAL_BETTER = 2
HL_DENSITY_FAILED = 3
HL_DENSITY_DIVERGED = 4
HL_DENSITY_UNVALIDATED = 5
HL_BROWNIAN_LEVELS = 40
HL_SDE_FOKKER_PLANCK = 0
HL_SDE_PSEUDO_LIKELIHOOD = 1
HL_SDE_COURSE_LOSS = 0
HL_SDE_COURSE_DENSITY = 1
HL_SDE_COURSES = 2
HL_SDE_L1 = 0
HL_SDE_L2 = 1
HL_SDE_HUBER = 2
HL_RESIDUAL_DRIFT = 0
HL_RESIDUAL_DIFFUSION = 1
HL_RESIDUAL_DRIFT_TREND = 2
HL_RESIDUAL_DIFFUSION_TREND = 3
HL_RESIDUAL_CORRELATION = 4
HL_RESIDUAL_AUTOCORRELATION = 5
HL_RESIDUAL_KURTOSIS = 6
HL_RESIDUAL_TESTS = 7
HL_WEAK_DRIFT = 0
HL_WEAK_DIFFUSION = 1
HL_WEAK_TREND = 2
HL_WEAK_CORRELATION = 3
HL_WEAK_TESTS = 4
HL_CONSISTENT = 0
HL_CONTRADICTED = 1
HL_NOT_DETERMINED = 2
HL_REASON_DENSITY = 1
HL_REASON_SIMULATIONS = 2
HL_REASON_UNEXPLAINED = 4
HL_REASON_SPEED = 8
HL_REASON_RESIDUALS = 16
HL_REASON_FEW_TRAJECTORIES = 32
HL_REASON_STATIONARY_DATA = 64
HL_REASON_TIME_DEPENDENT = 128
HL_REASON_FEW_STEPS = 256
HL_REASON_WIDE_BAND = 512
HL_REASON_REGRESSION = 1024
HL_REASON_MEANS = 2048
HL_JUDGE_DATA = 0
HL_JUDGE_DENSITY = 1
HL_JUDGE_SIMULATED = 2
HL_SDE_FINDING_CONSTANT = 0
HL_SDE_FINDING_SAME_TIMES = 1
HL_SDE_FINDING_TIME_ORDER = 2
HL_SDE_FINDING_NO_STEPS = 3
HL_SDE_FINDING_TIME_GAP = 4
HL_SDE_FINDING_FEW_TRAJECTORIES = 5
HL_SDE_FINDING_STATIONARY = 6
HL_SDE_FINDING_LITTLE_MOVEMENT = 7
HL_SDE_FINDING_METHOD = 8
HL_SDE_FINDING_TIME_DEPENDENT = 9
HL_SDE_FINDING_FEW_STEPS = 10
HL_SDE_FINDING_WIDE_BAND = 11
HL_SDE_FINDING_REGRESSION = 12
HL_SDE_FINDING_UNEXPLAINED = 13
HL_SDE_FINDING_STEPS_MISSED = 14
HL_SDE_FINDING_DENSITY_MISSES = 15
HL_SDE_FINDING_SIMULATIONS_MISS = 16
HL_SDE_FINDING_STEPS_UNLIKELY = 17
HL_SDE_FINDING_RESIDUALS = 18
HL_SDE_FINDING_MEANS = 25
HL_SDE_FINDING_LAST = 28
HL_SDE_PHASE_CHOICE = 0
HL_SDE_PHASE_TRAINING = 1
HL_SDE_PHASE_BANDS = 2
HL_SDE_LOSS_RESIDUAL = 0
HL_SDE_LOSS_PENALTY = 1
HL_SDE_LOSS_STEP = 2
HL_REPORT_GOOD = 0
HL_REPORT_MINOR = 1
HL_REPORT_WRONG = 2
HL_REPORT_PAGE = 0
HL_REPORT_HEAD = 1
HL_REPORT_BINS = 40
HL_REPORT_GRID = 99
HL_REPORT_WORST = 20
HL_REPORT_CAUSES = 3
HL_REPORT_TOLERANCES = 5
HL_REPORT_CELLS = 24
HL_REPORT_QUANTILES = 5
HL_COLUMN_NUMBERS = 0
HL_COLUMN_DATES = 1
HL_COLUMN_LABELS = 2
HL_TABLE_CATEGORIES = 64
HL_TABLE_AUTO = 0
HL_TABLE_CSV = 1
HL_TABLE_NPY = 2
HL_VAE_END_DONE = 0
HL_VAE_END_PATIENCE = 1
HL_VAE_END_TIME = 2
HL_VAE_END_STOPPED = 3

STATUS_TEXT: dict[int, str] = {
    0: "success",
    2: "finished, but the tolerance is finer than the precision allows",
    1: "stopped on request",
    -1: "out of memory",
    -2: "invalid argument",
    -3: "shapes do not match",
    -4: "input or output failed",
    -5: "malformed file",
    -6: "not supported",
    -7: "a value is not finite",
    -8: "the step became too small",
    -9: "the evaluation budget is used up",
    -10: "the iteration did not converge",
    -11: "no solution found",
    -12: "a callback stopped the computation",
}

class hl_struct_size(Structure): ...

class hl_context_options(Structure): ...

class hl_failure(Structure): ...

class hl_conv_options(Structure): ...

class hl_hold(Structure): ...

class hl_plan_options(Structure): ...

class hl_plan_info(Structure): ...

class hl_net_spec(Structure): ...

class hl_net_param(Structure): ...

class hl_net_nodes(Structure): ...

class hl_operator_options(Structure): ...

class hl_operator_arrays(Structure): ...

class hl_rows(Structure): ...

class hl_system(Structure): ...

class hl_ode_options(Structure): ...

class hl_ode_row(Structure): ...

class hl_ode_counts(Structure): ...

class hl_ode_summary(Structure): ...

class hl_flow_spec(Structure): ...

class hl_flow_solver(Structure): ...

class hl_flow_pullback(Structure): ...

class hl_optimizer_options(Structure): ...

class hl_fit_data(Structure): ...

class hl_fit_options(Structure): ...

class hl_fit_report(Structure): ...

class hl_job(Structure): ...

class hl_training_point(Structure): ...

class hl_density_column(Structure): ...

class hl_density_range(Structure): ...

class hl_category(Structure): ...

class hl_density_member(Structure): ...

class hl_density_pattern(Structure): ...

class hl_density_accuracy(Structure): ...

class hl_option(Structure): ...

class hl_density_rows(Structure): ...

class hl_row_source(Structure): ...

class hl_density_data(Structure): ...

class hl_finding(Structure): ...

class hl_density_progress(Structure): ...

class hl_density_outcome(Structure): ...

class hl_vae_spec(Structure): ...

class hl_vae_rows(Structure): ...

class hl_vae_source(Structure): ...

class hl_vae_eval_options(Structure): ...

class hl_vae_row_result(Structure): ...

class hl_vae_result(Structure): ...

class hl_images_options(Structure): ...

class hl_brownian(Structure): ...

class hl_noise_system(Structure): ...

class hl_simulator_options(Structure): ...

class hl_fp_nodes(Structure): ...

class hl_sde_known(Structure): ...

class hl_sde_spec(Structure): ...

class hl_sde_values(Structure): ...

class hl_sde_data(Structure): ...

class hl_sde_fit_options(Structure): ...

class hl_sde_fit_report(Structure): ...

class hl_judge_options(Structure): ...

class hl_judge_group(Structure): ...

class hl_residual_test(Structure): ...

class hl_verdict(Structure): ...

class hl_sde_observations(Structure): ...

class hl_sde_finding(Structure): ...

class hl_sde_outcome(Structure): ...

class hl_sde_progress(Structure): ...

class hl_observation_options(Structure): ...

class hl_observations(Structure): ...

class hl_ranks(Structure): ...

class hl_report_options(Structure): ...

class hl_report_rows(Structure): ...

class hl_report_mean(Structure): ...

class hl_report_column(Structure): ...

class hl_report_row(Structure): ...

class hl_report_distance(Structure): ...

class hl_report_tolerance(Structure): ...

class hl_density_report(Structure): ...

class hl_report_cell(Structure): ...

class hl_report_equation(Structure): ...

class hl_report_time(Structure): ...

class hl_sde_report(Structure): ...

class hl_vae_report(Structure): ...

class hl_root_options(Structure): ...

class hl_root_row(Structure): ...

class hl_sde_band_values(Structure): ...

class hl_bridge_options(Structure): ...

class hl_sde_regress_options(Structure): ...

class hl_sde_regress_report(Structure): ...

class hl_sde_constant(Structure): ...

class hl_table_options(Structure): ...

class hl_column_stats(Structure): ...

class hl_table_writer_options(Structure): ...

class hl_vae_data(Structure): ...

class hl_vae_progress(Structure): ...

class hl_vae_outcome(Structure): ...

hl_rhs_fn = CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p)
hl_diagonal_fn = CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_void_p)
hl_jvp_fn = CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_void_p)
hl_vjp_fn = CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p)
hl_event_fn = CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p)
hl_progress_fn = CFUNCTYPE(c_int, c_void_p, c_void_p)
hl_read_rows_fn = CFUNCTYPE(c_int, c_size_t, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p)
hl_vae_read_fn = CFUNCTYPE(c_int, c_size_t, c_void_p, c_void_p, c_void_p)
hl_noise_fn = CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p)
hl_sde_form_fn = CFUNCTYPE(c_int32, c_void_p, c_void_p, c_int32, c_int32)
hl_gather_fn = CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_void_p)

hl_struct_size._fields_ = [
    ("name", c_char_p),
    ("size", c_size_t),
]
hl_context_options._fields_ = [
    ("threads", c_int),
    ("alloc", CFUNCTYPE(c_void_p, c_void_p, c_size_t)),
    ("release", CFUNCTYPE(None, c_void_p, c_void_p)),
    ("user", c_void_p),
    ("stop", CFUNCTYPE(c_int, c_void_p)),
    ("share_all", c_int),
]
hl_failure._fields_ = [
    ("status", c_int),
    ("row", c_size_t),
    ("column", c_size_t),
    ("node", c_size_t),
    ("what", c_char_p),
    ("validation", c_int),
]
hl_conv_options._fields_ = [
    ("stride", (c_size_t * 2)),
    ("pad", (c_size_t * 2)),
    ("taps", c_void_p),
]
hl_hold._fields_ = [
    ("count", c_size_t),
    ("nodes", c_void_p),
]
hl_plan_options._fields_ = [
    ("dtype", c_int),
    ("chunk_rows", c_size_t),
    ("isa", c_char_p),
    ("dense_masks", c_int),
    ("no_fusion", c_int),
]
hl_plan_info._fields_ = [
    ("dtype", c_int),
    ("chunk_rows", c_size_t),
    ("bytes", c_size_t),
    ("nodes", c_size_t),
    ("segments", c_size_t),
    ("instructions", c_size_t),
    ("fused", c_size_t),
    ("flops_per_row", c_double),
    ("gemm_flops_per_row", c_double),
]
hl_net_spec._fields_ = [
    ("dim", c_size_t),
    ("context", c_size_t),
    ("time", c_int),
    ("conditioner", c_char_p),
    ("order", c_void_p),
    ("image", (c_size_t * 3)),
    ("kernel", c_size_t),
    ("features", c_size_t),
    ("hidden", c_size_t),
    ("hidden_layers", c_int),
    ("transformer", c_char_p),
    ("width", c_size_t),
    ("layers", c_int),
    ("activation", c_char_p),
    ("dtype", c_int),
    ("reflections", c_size_t),
    ("mlp", c_size_t),
    ("plus", c_void_p),
]
hl_net_param._fields_ = [
    ("name", c_char_p),
    ("rank", c_int),
    ("dims", (c_size_t * 6)),
    ("size", c_size_t),
    ("values", c_void_p),
    ("lo", c_void_p),
    ("hi", c_void_p),
]
hl_net_nodes._fields_ = [
    ("x", c_int32),
    ("t", c_int32),
    ("context", c_int32),
    ("param", c_void_p),
    ("reuse", c_int),
    ("h", c_int32),
    ("f", c_int32),
    ("d", c_void_p),
    ("divergence", c_int32),
]
hl_operator_options._fields_ = [
    ("order", c_int),
    ("mode", c_int),
    ("no_gradient", c_int),
    ("joint", c_int),
    ("plan", hl_plan_options),
]
hl_operator_arrays._fields_ = [
    ("f", c_void_p),
    ("d", c_void_p),
    ("divergence", c_void_p),
    ("gf", c_void_p),
    ("gd", c_void_p),
    ("gdiv", c_void_p),
    ("gx", c_void_p),
    ("gt", c_void_p),
    ("gcontext", c_void_p),
    ("gparam", c_void_p),
]
hl_rows._fields_ = [
    ("count", c_size_t),
    ("index", c_void_p),
    ("t", c_void_p),
    ("y", c_void_p),
]
hl_system._fields_ = [
    ("n", c_size_t),
    ("rhs", hl_rhs_fn),
    ("diagonal", hl_diagonal_fn),
    ("jvp", hl_jvp_fn),
    ("vjp", hl_vjp_fn),
    ("n_params", c_size_t),
    ("rounding", c_double),
    ("user", c_void_p),
]
hl_ode_options._fields_ = [
    ("method", c_char_p),
    ("rtol", c_double),
    ("atol", c_double),
    ("weights", c_void_p),
    ("steps", c_size_t),
    ("even_steps", c_size_t),
    ("divided", c_int),
    ("rows", c_size_t),
    ("first_step", c_double),
    ("start_error", c_double),
    ("max_step", c_double),
    ("max_evaluations", c_size_t),
    ("max_order", c_int),
    ("paper_test", c_int),
    ("event", hl_event_fn),
    ("event_user", c_void_p),
    ("gradient", c_int),
    ("checkpoint_bytes", c_size_t),
]
hl_ode_row._fields_ = [
    ("status", c_int),
    ("steps", c_size_t),
    ("rejected", c_size_t),
    ("evaluations", c_size_t),
    ("component", c_size_t),
    ("step", c_double),
    ("error", c_double),
]
hl_ode_counts._fields_ = [
    ("f_calls", c_size_t),
    ("diagonal_calls", c_size_t),
    ("jvp_calls", c_size_t),
    ("vjp_calls", c_size_t),
    ("f", c_size_t),
    ("diagonal", c_size_t),
    ("jvp", c_size_t),
    ("vjp", c_size_t),
    ("steps", c_size_t),
    ("rejected", c_size_t),
    ("iterations", c_size_t),
    ("convergence_failures", c_size_t),
    ("switches", c_size_t),
]
hl_ode_summary._fields_ = [
    ("forward", hl_ode_counts),
    ("backward", hl_ode_counts),
    ("callback", c_int),
    ("drift", c_double),
]
hl_flow_spec._fields_ = [
    ("kind", c_char_p),
    ("flows", c_size_t),
    ("net", hl_net_spec),
]
hl_flow_solver._fields_ = [
    ("method", c_char_p),
    ("rtol", c_double),
    ("atol", c_double),
    ("steps", c_size_t),
    ("start_error", c_double),
    ("even_steps", c_size_t),
    ("divided", c_int),
    ("max_evaluations", c_size_t),
    ("trace", c_int),
    ("seed", c_uint64),
    ("gaussian", c_int),
    ("adjoint", c_int),
    ("straight", c_double),
]
hl_flow_pullback._fields_ = [
    ("from_base", c_int),
    ("from", c_void_p),
    ("context", c_void_p),
    ("gto", c_void_p),
    ("glogdet", c_void_p),
    ("to", c_void_p),
    ("logdet", c_void_p),
    ("gfrom", c_void_p),
    ("gcontext", c_void_p),
    ("gparameters", c_void_p),
]
hl_optimizer_options._fields_ = [
    ("method", c_char_p),
    ("rate", c_double),
    ("beta1", c_double),
    ("beta2", c_double),
    ("epsilon", c_double),
    ("weight_decay", c_double),
    ("clip", c_double),
    ("average", c_double),
]
hl_fit_data._fields_ = [
    ("rows", c_size_t),
    ("x", c_void_p),
    ("context", c_void_p),
    ("weights", c_void_p),
]
hl_fit_options._fields_ = [
    ("loss", c_int),
    ("transport", c_int),
    ("iterations", c_size_t),
    ("matching", c_size_t),
    ("batch", c_size_t),
    ("jitter", c_double),
    ("straight", c_double),
    ("optimizer", hl_optimizer_options),
    ("warmup", c_size_t),
    ("last_rate", c_double),
    ("train_method", c_char_p),
    ("train_steps", c_size_t),
    ("train_trace", c_int),
    ("solver", hl_flow_solver),
    ("validate_every", c_size_t),
    ("validation_rows", c_size_t),
    ("patience", c_size_t),
    ("extensions", c_size_t),
    ("seed", c_uint64),
]
hl_fit_report._fields_ = [
    ("iteration", c_size_t),
    ("iterations", c_size_t),
    ("phase", c_int),
    ("loss", c_double),
    ("gradient_norm", c_double),
    ("evaluations", c_double),
    ("backward", c_double),
    ("ode_steps", c_size_t),
    ("validated", c_int),
    ("validation", c_double),
    ("validation_fixed", c_double),
    ("best", c_double),
    ("best_iteration", c_size_t),
    ("steps_doubled", c_int),
    ("extended", c_int),
]
hl_job._fields_ = [
    ("progress", hl_progress_fn),
    ("user", c_void_p),
    ("checkpoint", c_char_p),
    ("resume", c_int),
    ("save_every", c_double),
    ("unsaved", CFUNCTYPE(None, c_char_p, c_void_p)),
]
hl_training_point._fields_ = [
    ("iteration", c_size_t),
    ("phase", c_int),
    ("steps", c_size_t),
    ("loss", c_double),
    ("evaluations", c_double),
    ("validation", c_double),
    ("validated", c_size_t),
]
hl_density_column._fields_ = [
    ("name", c_char_p),
    ("mean", c_double),
    ("deviation", c_double),
]
hl_density_range._fields_ = [
    ("form", c_char_p),
    ("low", c_double),
    ("high", c_double),
    ("step", c_double),
    ("least", c_double),
    ("most", c_double),
]
hl_category._fields_ = [
    ("name", c_char_p),
    ("column", c_size_t),
    ("count", c_size_t),
    ("labels", POINTER(c_char_p)),
]
hl_density_member._fields_ = [
    ("kind", c_int),
    ("mapped", c_int),
    ("weight", c_double),
    ("parts", c_size_t),
    ("nu", c_double),
]
hl_density_pattern._fields_ = [
    ("probability", c_double),
    ("atoms", c_size_t),
    ("rest", c_void_p),
]
hl_density_accuracy._fields_ = [
    ("typical", c_double),
    ("worst", c_double),
    ("evaluations", c_double),
]
hl_option._fields_ = [
    ("name", c_char_p),
    ("kind", c_int),
    ("value", c_char_p),
    ("low", c_double),
    ("high", c_double),
    ("choices", POINTER(c_char_p)),
    ("otherwise", c_char_p),
    ("help", c_char_p),
    ("applies", c_char_p),
]
hl_density_rows._fields_ = [
    ("rows", c_size_t),
    ("x", c_void_p),
    ("context", c_void_p),
    ("weights", c_void_p),
]
hl_row_source._fields_ = [
    ("rows", c_size_t),
    ("read", hl_read_rows_fn),
    ("user", c_void_p),
    ("weighted", c_int),
]
hl_density_data._fields_ = [
    ("dim", c_size_t),
    ("context", c_size_t),
    ("names", POINTER(c_char_p)),
    ("train", hl_density_rows),
    ("valid", hl_density_rows),
    ("source", c_void_p),
]
hl_finding._fields_ = [
    ("kind", c_int),
    ("column", c_size_t),
    ("row", c_size_t),
    ("count", c_size_t),
    ("value", c_double),
    ("low", c_double),
    ("high", c_double),
    ("others", (c_size_t * 3)),
    ("noise", c_int),
]
hl_density_progress._fields_ = [
    ("phase", c_int),
    ("iteration", c_size_t),
    ("iterations", c_size_t),
    ("loss", c_double),
    ("validation", c_double),
    ("best", c_double),
    ("best_iteration", c_size_t),
    ("validated", c_int),
    ("validation_fixed", c_double),
    ("steps_doubled", c_int),
    ("gradient_norm", c_double),
    ("evaluations", c_double),
    ("backward", c_double),
    ("ode_steps", c_size_t),
    ("seconds", c_double),
    ("seconds_left", c_double),
    ("rows_per_second", c_double),
    ("so_far", c_void_p),
]
hl_density_outcome._fields_ = [
    ("verdict", c_int),
    ("end", c_int),
    ("iteration", c_size_t),
    ("iterations", c_size_t),
    ("best_iteration", c_size_t),
    ("extensions", c_size_t),
    ("failed_iteration", c_size_t),
    ("best", c_double),
    ("normal", c_double),
    ("recent", c_double),
    ("seconds", c_double),
    ("train_rows", c_size_t),
    ("valid_rows", c_size_t),
    ("parameters", c_size_t),
    ("patience", c_size_t),
    ("mixture", c_double),
    ("flow", c_double),
    ("gain", c_double),
    ("gain_error", c_double),
    ("fall", c_double),
    ("gain_rows", c_size_t),
    ("parts", c_size_t),
    ("decorrelated", c_int),
    ("findings", c_size_t),
    ("finding", c_void_p),
    ("settings", c_char_p),
]
hl_vae_spec._fields_ = [
    ("image", (c_size_t * 3)),
    ("dim", c_size_t),
    ("likelihood", c_char_p),
    ("deviations", c_size_t),
    ("net", c_char_p),
    ("latent", c_size_t),
    ("posterior", c_char_p),
    ("flows", c_size_t),
    ("columns", c_size_t),
    ("hidden", c_size_t),
    ("layers", c_int),
    ("features", c_size_t),
    ("width", c_size_t),
    ("rank", c_size_t),
    ("code", c_char_p),
    ("activation", c_char_p),
    ("trace", c_char_p),
    ("steps", c_size_t),
    ("dtype", c_int),
]
hl_vae_rows._fields_ = [
    ("rows", c_size_t),
    ("bytes", c_void_p),
    ("values", c_void_p),
    ("gray", c_int),
]
hl_vae_source._fields_ = [
    ("rows", c_size_t),
    ("read", hl_vae_read_fn),
    ("user", c_void_p),
    ("real", c_int),
    ("gray", c_int),
]
hl_vae_eval_options._fields_ = [
    ("seed", c_uint64),
    ("samples", c_size_t),
    ("importance", c_size_t),
    ("chunk", c_size_t),
    ("steps", c_size_t),
    ("tolerance", c_double),
    ("allow_biased", c_int),
    ("progress", CFUNCTYPE(c_int, c_size_t, c_size_t, c_void_p)),
    ("user", c_void_p),
]
hl_vae_row_result._fields_ = [
    ("elbo", c_double),
    ("reconstruction", c_double),
    ("log_ratio", c_double),
    ("log_det", c_double),
    ("iwae", c_double),
    ("effective", c_double),
]
hl_vae_result._fields_ = [
    ("rows", c_size_t),
    ("samples", c_size_t),
    ("importance", c_size_t),
    ("elbo", c_double),
    ("elbo_error", c_double),
    ("reconstruction", c_double),
    ("log_ratio", c_double),
    ("log_det", c_double),
    ("iwae", c_double),
    ("iwae_error", c_double),
    ("effective", c_double),
    ("trace_bias", c_double),
    ("active", c_size_t),
    ("steps", c_size_t),
    ("evaluations", c_double),
    ("step_error", c_double),
]
hl_images_options._fields_ = [
    ("bits", c_int),
    ("real", c_int),
    ("image", (c_size_t * 3)),
    ("array", c_char_p),
    ("drop_missing", c_int),
    ("in_file", c_int),
    ("shared", c_int),
]
hl_brownian._fields_ = [
    ("seed", c_uint64),
    ("span", c_double),
]
hl_noise_system._fields_ = [
    ("n", c_size_t),
    ("coefficients", hl_noise_fn),
    ("slope", c_int),
    ("stratonovich", c_int),
    ("user", c_void_p),
    ("factor", c_void_p),
]
hl_simulator_options._fields_ = [
    ("method", c_char_p),
    ("seed", c_uint64),
    ("level", c_int),
    ("escapes", c_int),
]
hl_fp_nodes._fields_ = [
    ("f", c_int32),
    ("df", c_int32),
    ("g", c_int32),
    ("dg", c_int32),
    ("d2g", c_int32),
    ("logp", c_int32),
    ("logp_t", c_int32),
    ("s", c_int32),
    ("c", c_int32),
    ("residual", c_int32),
    ("residual_p", c_int32),
    ("cross", c_int32),
]
hl_sde_known._fields_ = [
    ("drift", c_int),
    ("diffusion", c_int),
    ("drift_constant", c_double),
    ("drift_linear", c_void_p),
    ("diffusion_value", c_double),
    ("drift_form", hl_sde_form_fn),
    ("diffusion_form", hl_sde_form_fn),
    ("user", c_void_p),
]
hl_sde_spec._fields_ = [
    ("dim", c_size_t),
    ("network", c_char_p),
    ("time", c_int),
    ("hidden", c_size_t),
    ("layers", c_int),
    ("activation", c_char_p),
    ("net", hl_net_spec),
    ("density", c_char_p),
    ("components", c_size_t),
    ("diagonal", c_int),
    ("density_hidden", c_size_t),
    ("density_layers", c_int),
    ("clamp", c_double),
    ("curvature", c_char_p),
    ("flows", c_size_t),
    ("flow", hl_net_spec),
    ("diffusion_start", c_double),
    ("drift_scale", c_double),
    ("known", c_void_p),
    ("dtype", c_int),
    ("simple", c_void_p),
    ("forms", c_void_p),
]
hl_sde_values._fields_ = [
    ("f", c_void_p),
    ("g", c_void_p),
    ("dg", c_void_p),
    ("logp", c_void_p),
    ("residual", c_void_p),
    ("score", c_void_p),
    ("change", c_void_p),
]
hl_sde_data._fields_ = [
    ("rows", c_size_t),
    ("t", c_void_p),
    ("x", c_void_p),
    ("trajectory", c_void_p),
]
hl_sde_fit_options._fields_ = [
    ("method", c_int),
    ("penalty", c_int),
    ("density_form", c_int),
    ("stop_gradient", c_int),
    ("lambda", c_double),
    ("smooth", c_double),
    ("between", c_double),
    ("density_only", c_int),
    ("iterations", c_size_t),
    ("batch", c_size_t),
    ("optimizer", hl_optimizer_options),
    ("last_rate", c_double),
    ("warmup", c_size_t),
    ("variance_floor", c_double),
    ("seed", c_uint64),
]
hl_sde_fit_report._fields_ = [
    ("iteration", c_size_t),
    ("iterations", c_size_t),
    ("loss", c_double),
    ("nll", c_double),
    ("lambda", c_double),
    ("gradient_norm", (c_double * 3)),
]
hl_judge_options._fields_ = [
    ("groups", c_size_t),
    ("rows", c_size_t),
    ("steps", c_size_t),
    ("seed", c_uint64),
]
hl_judge_group._fields_ = [
    ("t_first", c_double),
    ("t_last", c_double),
    ("rows", c_size_t),
    ("moved", c_double),
    ("travelled", c_double),
    ("noise", c_double),
    ("density", c_double),
    ("simulated", c_double),
    ("residual", c_double),
    ("change", c_double),
    ("averaged", (c_double * 2)),
    ("density_columns", c_void_p),
    ("simulated_columns", c_void_p),
]
hl_residual_test._fields_ = [
    ("effect", c_double),
    ("sigma", c_double),
    ("failed", c_int),
]
hl_verdict._fields_ = [
    ("answer", c_int),
    ("reasons", c_uint32),
    ("trajectories", c_size_t),
    ("movement", c_double),
    ("noise", c_double),
    ("density", c_double),
    ("simulated", c_double),
    ("residual", c_double),
    ("unexplained", c_double),
    ("speed", c_double),
    ("steps", c_size_t),
    ("steps_simulated", c_int),
    ("band", c_double),
    ("regression", (c_double * 2)),
    ("test", (hl_residual_test * 7)),
    ("means", c_size_t),
    ("means_band", (c_double * 2)),
    ("means_test", (hl_residual_test * 4)),
]
hl_sde_observations._fields_ = [
    ("rows", c_size_t),
    ("dim", c_size_t),
    ("t", c_void_p),
    ("x", c_void_p),
    ("trajectory", c_void_p),
    ("names", POINTER(c_char_p)),
    ("dates", c_int),
]
hl_sde_finding._fields_ = [
    ("kind", c_int),
    ("fatal", c_int),
    ("row", c_size_t),
    ("column", c_size_t),
    ("value", c_double),
    ("other", c_double),
]
hl_sde_outcome._fields_ = [
    ("rows", c_size_t),
    ("dim", c_size_t),
    ("trajectories", c_size_t),
    ("paired", c_int),
    ("method", c_int),
    ("method_chosen", c_int),
    ("components", c_size_t),
    ("components_chosen", c_int),
    ("diffusion_start", c_double),
    ("drift_scale", c_double),
    ("form", (c_char * 32)),
    ("regression", c_int),
    ("correlated", c_int),
    ("parameters", c_size_t),
    ("batch", c_size_t),
    ("first", c_size_t),
    ("iterations", c_size_t),
    ("seconds", c_double),
    ("judged", c_int),
    ("verdict", hl_verdict),
    ("findings", c_size_t),
    ("finding", c_void_p),
    ("settings", c_char_p),
    ("judge", c_void_p),
]
hl_sde_progress._fields_ = [
    ("phase", c_int),
    ("iteration", c_size_t),
    ("iterations", c_size_t),
    ("fraction", c_double),
    ("kind", c_int),
    ("loss", c_double),
    ("nll", c_double),
    ("lambda", c_double),
    ("gradient_norm", (c_double * 3)),
    ("outcome", c_void_p),
]
hl_observation_options._fields_ = [
    ("time", c_char_p),
    ("trajectory", c_char_p),
    ("columns", c_char_p),
    ("array", c_char_p),
    ("dt", c_double),
    ("times_optional", c_int),
    ("drop_missing", c_int),
    ("model", c_void_p),
    ("extra", c_size_t),
    ("extra_names", POINTER(c_char_p)),
    ("unordered", c_int),
    ("min_rows", c_size_t),
    ("most_rows", c_size_t),
]
hl_observations._fields_ = [
    ("dim", c_size_t),
    ("rows", c_size_t),
    ("trajectories", c_size_t),
    ("t", c_void_p),
    ("x", c_void_p),
    ("extra", c_void_p),
    ("trajectory", c_void_p),
    ("paired", c_int),
    ("timed", c_int),
    ("dates", c_int),
    ("snapshots", c_size_t),
    ("dropped", c_size_t),
    ("all_rows", c_size_t),
    ("name", c_void_p),
    ("path", c_char_p),
]
hl_ranks._fields_ = [
    ("rank", c_size_t),
    ("size", c_size_t),
    ("gather", hl_gather_fn),
    ("user", c_void_p),
]
hl_report_options._fields_ = [
    ("seed", c_uint64),
    ("draws", c_size_t),
    ("title", c_char_p),
    ("data", c_char_p),
    ("call", c_char_p),
]
hl_report_rows._fields_ = [
    ("rows", c_size_t),
    ("x", c_void_p),
    ("context", c_void_p),
    ("index", c_void_p),
    ("total", c_size_t),
]
hl_report_mean._fields_ = [
    ("value", c_double),
    ("error", c_double),
]
hl_report_column._fields_ = [
    ("name", c_char_p),
    ("column", c_size_t),
    ("distance", c_double),
    ("p", c_double),
    ("wasserstein", c_double),
    ("mean", (c_double * 2)),
    ("deviation", (c_double * 2)),
    ("least", (c_double * 2)),
    ("largest", (c_double * 2)),
    ("outside", c_double),
    ("tied", c_double),
    ("low", c_double),
    ("high", c_double),
    ("bin", ((c_double * 40) * 2)),
    ("level", (c_double * 99)),
]
hl_report_row._fields_ = [
    ("row", c_size_t),
    ("logp", c_double),
    ("causes", c_size_t),
    ("column", (c_size_t * 3)),
    ("gain", (c_double * 3)),
    ("expected", (c_double * 3)),
    ("slope", (c_double * 3)),
]
hl_report_distance._fields_ = [
    ("rows", c_size_t),
    ("distance", c_double),
    ("halves", c_double),
    ("share", c_double),
    ("p", c_double),
]
hl_report_tolerance._fields_ = [
    ("rtol", c_double),
    ("logp", c_double),
    ("change", c_double),
    ("largest", c_double),
    ("evaluations", c_double),
]
hl_density_report._fields_ = [
    ("total", c_size_t),
    ("rows", c_size_t),
    ("failed", c_size_t),
    ("draws", c_size_t),
    ("failed_draws", c_size_t),
    ("dim", c_size_t),
    ("context", c_size_t),
    ("parameters", c_size_t),
    ("logp", hl_report_mean),
    ("draws_logp", hl_report_mean),
    ("over_independent", hl_report_mean),
    ("over_normal", hl_report_mean),
    ("over_mixture", hl_report_mean),
    ("mixture_member", c_int),
    ("distance", hl_report_distance),
    ("rank_distance", c_double),
    ("rank_p", c_double),
    ("band", c_double),
    ("unlikely", c_double),
    ("unseen", c_double),
    ("rank", (c_double * 99)),
    ("memorised", c_double),
    ("memorised_p", c_double),
    ("base_rows", c_size_t),
    ("base_distance", c_double),
    ("base_p", c_double),
    ("base_column", c_size_t),
    ("base_radius", (c_double * 99)),
    ("columns", c_size_t),
    ("column", c_void_p),
    ("correlation", (c_void_p * 2)),
    ("worst", c_size_t),
    ("row", c_void_p),
    ("tolerances", c_size_t),
    ("tolerance", (hl_report_tolerance * 5)),
    ("known", c_size_t),
    ("trained", c_size_t),
    ("train_rows", c_size_t),
    ("hash", c_uint64),
    ("courses", c_size_t),
    ("course", c_void_p),
    ("evaluation_rows", c_size_t),
    ("evaluations", c_void_p),
]
hl_report_cell._fields_ = [
    ("x", c_double),
    ("steps", c_size_t),
    ("measured", (c_double * 2)),
    ("error", (c_double * 2)),
    ("made", (c_double * 2)),
    ("model", (c_double * 2)),
]
hl_report_equation._fields_ = [
    ("name", c_char_p),
    ("cells", c_size_t),
    ("cell", (hl_report_cell * 24)),
    ("noise", c_double),
    ("noise_error", c_double),
    ("drift_left", c_double),
    ("drift_p", c_double),
]
hl_report_time._fields_ = [
    ("t", c_double),
    ("rows", c_size_t),
    ("travelled", c_double),
    ("noise", c_double),
    ("density", c_double),
    ("simulated", c_double),
    ("data_quantiles", c_void_p),
    ("simulated_quantiles", c_void_p),
]
hl_sde_report._fields_ = [
    ("rows", c_size_t),
    ("dim", c_size_t),
    ("trajectories", c_size_t),
    ("steps", c_size_t),
    ("verdict", hl_verdict),
    ("logp", hl_report_mean),
    ("columns", c_size_t),
    ("column", c_void_p),
    ("times", c_size_t),
    ("time", c_void_p),
    ("courses", (c_size_t * 2)),
    ("course", (c_void_p * 2)),
]
hl_vae_report._fields_ = [
    ("total", c_size_t),
    ("rows", c_size_t),
    ("dim", c_size_t),
    ("latent", c_size_t),
    ("posterior", c_char_p),
    ("gaussian", c_int),
    ("result", hl_vae_result),
    ("over_independent", c_double),
    ("variance", c_void_p),
    ("unit", c_void_p),
    ("samples", hl_report_distance),
    ("courses", c_size_t),
    ("course", c_void_p),
    ("known", c_size_t),
    ("trained", c_size_t),
]
hl_root_options._fields_ = [
    ("method", c_char_p),
    ("tolerance", c_double),
    ("depth", c_size_t),
    ("max_evaluations", c_size_t),
    ("rows", c_size_t),
]
hl_root_row._fields_ = [
    ("status", c_int),
    ("evaluations", c_size_t),
    ("residual", c_double),
]
hl_sde_band_values._fields_ = [
    ("f_low", c_void_p),
    ("f_high", c_void_p),
    ("g_low", c_void_p),
    ("g_high", c_void_p),
    ("inside", c_void_p),
]
hl_bridge_options._fields_ = [
    ("steps", c_size_t),
    ("level", c_int),
    ("candidates", c_size_t),
    ("seed", c_uint64),
]
hl_sde_regress_options._fields_ = [
    ("form", c_char_p),
    ("noise", c_char_p),
    ("time", c_int),
    ("use", c_char_p),
    ("known", c_void_p),
    ("seed", c_uint64),
    ("forms", c_void_p),
    ("replicates", c_size_t),
]
hl_sde_regress_report._fields_ = [
    ("form", (c_char * 32)),
    ("ridge", c_double),
    ("misfit", c_double),
    ("conditions", c_size_t),
    ("functions", (c_size_t * 2)),
    ("snapshots", c_int),
    ("steps", c_int),
    ("correlated", c_int),
]
hl_sde_constant._fields_ = [
    ("name", c_char_p),
    ("value", c_double),
    ("error", c_double),
]
hl_table_options._fields_ = [
    ("columns", c_char_p),
    ("exclude", c_char_p),
    ("extra", c_char_p),
    ("array", c_char_p),
    ("drop_missing", c_int),
    ("header", c_int),
    ("separator", c_char),
    ("min_rows", c_size_t),
    ("in_memory", c_size_t),
    ("date_column", c_char_p),
    ("label_column", c_char_p),
    ("shared", c_int),
    ("unchecked", c_int),
    ("names", c_int),
    ("label_columns", c_char_p),
    ("labels_only", c_int),
    ("number_columns", c_char_p),
]
hl_column_stats._fields_ = [
    ("mean", c_double),
    ("deviation", c_double),
    ("min", c_double),
    ("max", c_double),
    ("integer", c_int),
    ("examined", c_size_t),
    ("distinct", c_size_t),
    ("tied", c_double),
]
hl_table_writer_options._fields_ = [
    ("format", c_int),
    ("names", POINTER(c_char_p)),
    ("single", c_int),
    ("rows", c_size_t),
    ("flat", c_int),
    ("date_column", c_size_t),
    ("texts", c_void_p),
]
hl_vae_data._fields_ = [
    ("image", (c_size_t * 3)),
    ("dim", c_size_t),
    ("train", hl_vae_rows),
    ("valid", hl_vae_rows),
    ("from", c_void_p),
    ("source", c_void_p),
    ("names", POINTER(c_char_p)),
]
hl_vae_progress._fields_ = [
    ("iteration", c_size_t),
    ("iterations", c_size_t),
    ("epoch", c_double),
    ("loss", c_double),
    ("beta", c_double),
    ("validation", c_double),
    ("best", c_double),
    ("best_iteration", c_size_t),
    ("validated", c_int),
    ("gradient_norm", c_double),
    ("ode_steps", c_size_t),
    ("steps_doubled", c_int),
    ("seconds", c_double),
    ("seconds_left", c_double),
    ("batch", c_size_t),
    ("parameters", c_size_t),
]
hl_vae_outcome._fields_ = [
    ("end", c_int),
    ("iteration", c_size_t),
    ("iterations", c_size_t),
    ("best_iteration", c_size_t),
    ("best", c_double),
    ("simple", c_double),
    ("seconds", c_double),
    ("train_rows", c_size_t),
    ("valid_rows", c_size_t),
    ("parameters", c_size_t),
    ("ode_steps", c_size_t),
    ("constant_columns", c_size_t),
    ("first_constant", c_size_t),
]

STRUCTS: dict[str, Any] = {
    "hl_struct_size": hl_struct_size,
    "hl_context_options": hl_context_options,
    "hl_failure": hl_failure,
    "hl_conv_options": hl_conv_options,
    "hl_hold": hl_hold,
    "hl_plan_options": hl_plan_options,
    "hl_plan_info": hl_plan_info,
    "hl_net_spec": hl_net_spec,
    "hl_net_param": hl_net_param,
    "hl_net_nodes": hl_net_nodes,
    "hl_operator_options": hl_operator_options,
    "hl_operator_arrays": hl_operator_arrays,
    "hl_rows": hl_rows,
    "hl_system": hl_system,
    "hl_ode_options": hl_ode_options,
    "hl_ode_row": hl_ode_row,
    "hl_ode_counts": hl_ode_counts,
    "hl_ode_summary": hl_ode_summary,
    "hl_flow_spec": hl_flow_spec,
    "hl_flow_solver": hl_flow_solver,
    "hl_flow_pullback": hl_flow_pullback,
    "hl_optimizer_options": hl_optimizer_options,
    "hl_fit_data": hl_fit_data,
    "hl_fit_options": hl_fit_options,
    "hl_fit_report": hl_fit_report,
    "hl_job": hl_job,
    "hl_training_point": hl_training_point,
    "hl_density_column": hl_density_column,
    "hl_density_range": hl_density_range,
    "hl_category": hl_category,
    "hl_density_member": hl_density_member,
    "hl_density_pattern": hl_density_pattern,
    "hl_density_accuracy": hl_density_accuracy,
    "hl_option": hl_option,
    "hl_density_rows": hl_density_rows,
    "hl_row_source": hl_row_source,
    "hl_density_data": hl_density_data,
    "hl_finding": hl_finding,
    "hl_density_progress": hl_density_progress,
    "hl_density_outcome": hl_density_outcome,
    "hl_vae_spec": hl_vae_spec,
    "hl_vae_rows": hl_vae_rows,
    "hl_vae_source": hl_vae_source,
    "hl_vae_eval_options": hl_vae_eval_options,
    "hl_vae_row_result": hl_vae_row_result,
    "hl_vae_result": hl_vae_result,
    "hl_images_options": hl_images_options,
    "hl_brownian": hl_brownian,
    "hl_noise_system": hl_noise_system,
    "hl_simulator_options": hl_simulator_options,
    "hl_fp_nodes": hl_fp_nodes,
    "hl_sde_known": hl_sde_known,
    "hl_sde_spec": hl_sde_spec,
    "hl_sde_values": hl_sde_values,
    "hl_sde_data": hl_sde_data,
    "hl_sde_fit_options": hl_sde_fit_options,
    "hl_sde_fit_report": hl_sde_fit_report,
    "hl_judge_options": hl_judge_options,
    "hl_judge_group": hl_judge_group,
    "hl_residual_test": hl_residual_test,
    "hl_verdict": hl_verdict,
    "hl_sde_observations": hl_sde_observations,
    "hl_sde_finding": hl_sde_finding,
    "hl_sde_outcome": hl_sde_outcome,
    "hl_sde_progress": hl_sde_progress,
    "hl_observation_options": hl_observation_options,
    "hl_observations": hl_observations,
    "hl_ranks": hl_ranks,
    "hl_report_options": hl_report_options,
    "hl_report_rows": hl_report_rows,
    "hl_report_mean": hl_report_mean,
    "hl_report_column": hl_report_column,
    "hl_report_row": hl_report_row,
    "hl_report_distance": hl_report_distance,
    "hl_report_tolerance": hl_report_tolerance,
    "hl_density_report": hl_density_report,
    "hl_report_cell": hl_report_cell,
    "hl_report_equation": hl_report_equation,
    "hl_report_time": hl_report_time,
    "hl_sde_report": hl_sde_report,
    "hl_vae_report": hl_vae_report,
    "hl_root_options": hl_root_options,
    "hl_root_row": hl_root_row,
    "hl_sde_band_values": hl_sde_band_values,
    "hl_bridge_options": hl_bridge_options,
    "hl_sde_regress_options": hl_sde_regress_options,
    "hl_sde_regress_report": hl_sde_regress_report,
    "hl_sde_constant": hl_sde_constant,
    "hl_table_options": hl_table_options,
    "hl_column_stats": hl_column_stats,
    "hl_table_writer_options": hl_table_writer_options,
    "hl_vae_data": hl_vae_data,
    "hl_vae_progress": hl_vae_progress,
    "hl_vae_outcome": hl_vae_outcome,
}

# The result and the arguments of every function.
FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "hl_version": (c_char_p, []),
    "hl_struct_sizes": (POINTER(hl_struct_size), []),
    "hl_dtype_size": (c_size_t, [c_int]),
    "hl_dtype_name": (c_char_p, [c_int]),
    "hl_context_create": (c_int, [c_void_p, c_void_p]),
    "hl_context_free": (None, [c_void_p]),
    "hl_context_message": (c_char_p, [c_void_p]),
    "hl_context_failure": (hl_failure, [c_void_p]),
    "hl_context_threads": (c_int, [c_void_p]),
    "hl_threads_available": (c_int, []),
    "hl_context_isa": (c_char_p, [c_void_p]),
    "hl_status_text": (c_char_p, [c_int]),
    "hl_graph_create": (c_int, [c_void_p, c_void_p]),
    "hl_graph_free": (None, [c_void_p]),
    "hl_graph_status": (c_int, [c_void_p]),
    "hl_graph_verify": (c_int, [c_void_p]),
    "hl_graph_count": (c_size_t, [c_void_p]),
    "hl_node_text": (c_int, [c_void_p, c_int32, c_char_p, c_size_t]),
    "hl_node_rank": (c_int, [c_void_p, c_int32]),
    "hl_node_dim": (c_size_t, [c_void_p, c_int32, c_int]),
    "hl_node_size": (c_size_t, [c_void_p, c_int32]),
    "hl_node_batched": (c_int, [c_void_p, c_int32]),
    "hl_input": (c_int32, [c_void_p, c_char_p, c_int, c_void_p]),
    "hl_param": (c_int32, [c_void_p, c_char_p, c_int, c_void_p]),
    "hl_const": (c_int32, [c_void_p, c_double]),
    "hl_const_array": (c_int32, [c_void_p, c_int, c_void_p, c_void_p]),
    "hl_graph_inputs": (c_size_t, [c_void_p]),
    "hl_graph_params": (c_size_t, [c_void_p]),
    "hl_graph_input": (c_int32, [c_void_p, c_size_t]),
    "hl_graph_param": (c_int32, [c_void_p, c_size_t]),
    "hl_node_name": (c_char_p, [c_void_p, c_int32]),
    "hl_add": (c_int32, [c_void_p, c_int32, c_int32]),
    "hl_sub": (c_int32, [c_void_p, c_int32, c_int32]),
    "hl_mul": (c_int32, [c_void_p, c_int32, c_int32]),
    "hl_div": (c_int32, [c_void_p, c_int32, c_int32]),
    "hl_pow": (c_int32, [c_void_p, c_int32, c_int32]),
    "hl_powi": (c_int32, [c_void_p, c_int32, c_int]),
    "hl_min": (c_int32, [c_void_p, c_int32, c_int32]),
    "hl_max": (c_int32, [c_void_p, c_int32, c_int32]),
    "hl_less": (c_int32, [c_void_p, c_int32, c_int32]),
    "hl_select": (c_int32, [c_void_p, c_int32, c_int32, c_int32]),
    "hl_clamp": (c_int32, [c_void_p, c_int32, c_double, c_double]),
    "hl_scale": (c_int32, [c_void_p, c_double, c_int32]),
    "hl_neg": (c_int32, [c_void_p, c_int32]),
    "hl_exp": (c_int32, [c_void_p, c_int32]),
    "hl_log": (c_int32, [c_void_p, c_int32]),
    "hl_log1p": (c_int32, [c_void_p, c_int32]),
    "hl_expm1": (c_int32, [c_void_p, c_int32]),
    "hl_sin": (c_int32, [c_void_p, c_int32]),
    "hl_cos": (c_int32, [c_void_p, c_int32]),
    "hl_tanh": (c_int32, [c_void_p, c_int32]),
    "hl_sigmoid": (c_int32, [c_void_p, c_int32]),
    "hl_softplus": (c_int32, [c_void_p, c_int32]),
    "hl_swish": (c_int32, [c_void_p, c_int32]),
    "hl_elu": (c_int32, [c_void_p, c_int32]),
    "hl_relu": (c_int32, [c_void_p, c_int32]),
    "hl_erf": (c_int32, [c_void_p, c_int32]),
    "hl_sqrt": (c_int32, [c_void_p, c_int32]),
    "hl_abs": (c_int32, [c_void_p, c_int32]),
    "hl_sign": (c_int32, [c_void_p, c_int32]),
    "hl_stop": (c_int32, [c_void_p, c_int32]),
    "hl_sum": (c_int32, [c_void_p, c_int32, c_int]),
    "hl_mean": (c_int32, [c_void_p, c_int32, c_int]),
    "hl_max_over": (c_int32, [c_void_p, c_int32, c_int]),
    "hl_sum_all": (c_int32, [c_void_p, c_int32]),
    "hl_sum_rows": (c_int32, [c_void_p, c_int32]),
    "hl_logsumexp": (c_int32, [c_void_p, c_int32, c_int]),
    "hl_softmax": (c_int32, [c_void_p, c_int32, c_int]),
    "hl_cumsum": (c_int32, [c_void_p, c_int32, c_int, c_int, c_int]),
    "hl_reshape": (c_int32, [c_void_p, c_int32, c_int, c_void_p]),
    "hl_broadcast": (c_int32, [c_void_p, c_int32, c_int, c_void_p]),
    "hl_permute": (c_int32, [c_void_p, c_int32, c_void_p]),
    "hl_concat": (c_int32, [c_void_p, c_int, c_void_p, c_int]),
    "hl_slice": (c_int32, [c_void_p, c_int32, c_int, c_size_t, c_size_t]),
    "hl_gather": (c_int32, [c_void_p, c_int32, c_int, c_size_t, c_void_p]),
    "hl_linear": (c_int32, [c_void_p, c_int32, c_int32]),
    "hl_linear_grouped": (c_int32, [c_void_p, c_int32, c_int32]),
    "hl_linear_masked": (c_int32, [c_void_p, c_int32, c_int32, c_void_p, c_void_p]),
    "hl_matmul": (c_int32, [c_void_p, c_int32, c_int32]),
    "hl_conv": (c_int32, [c_void_p, c_int32, c_int32, c_void_p]),
    "hl_conv_transpose": (c_int32, [c_void_p, c_int32, c_int32, c_size_t, c_size_t, c_void_p]),
    "hl_vjp": (c_int, [c_void_p, c_size_t, c_void_p, c_void_p, c_size_t, c_void_p, c_void_p, c_void_p]),
    "hl_jet": (c_int, [c_void_p, c_int, c_size_t, c_void_p, c_void_p, c_void_p, c_size_t, c_void_p, c_void_p]),
    "hl_dim_derivatives": (c_int, [c_void_p, c_int32, c_int32, c_void_p, c_int, c_int, c_void_p]),
    "hl_curvature_noise": (c_int, [c_void_p, c_int32, c_int32, c_void_p]),
    "hl_curvature": (c_int, [c_void_p, c_int32, c_int32, c_int32, c_void_p]),
    "hl_plan_create": (c_int, [c_void_p, c_void_p, c_size_t, c_void_p, c_void_p, c_void_p]),
    "hl_plan_free": (None, [c_void_p]),
    "hl_plan_run": (c_int, [c_void_p, c_size_t, c_void_p, c_void_p, c_void_p]),
    "hl_plan_describe": (hl_plan_info, [c_void_p]),
    "hl_plan_text": (c_int, [c_void_p, c_char_p, c_size_t]),
    "hl_fma_burst": (c_double, [c_int, c_char_p, c_size_t]),
    "hl_net_conditioners": (POINTER(c_char_p), []),
    "hl_net_transformers": (POINTER(c_char_p), []),
    "hl_net_activations": (POINTER(c_char_p), []),
    "hl_net_create": (c_int, [c_void_p, c_void_p, c_void_p]),
    "hl_net_free": (None, [c_void_p]),
    "hl_net_init": (c_int, [c_void_p, c_uint64]),
    "hl_net_describe": (hl_net_spec, [c_void_p]),
    "hl_net_param_count": (c_size_t, [c_void_p]),
    "hl_net_param_get": (c_int, [c_void_p, c_size_t, c_void_p]),
    "hl_net_size": (c_size_t, [c_void_p]),
    "hl_net_check": (c_int, [c_void_p]),
    "hl_file_identify": (c_int, [c_char_p]),
    "hl_net_save": (c_int, [c_void_p, c_char_p]),
    "hl_net_load": (c_int, [c_void_p, c_char_p, c_void_p]),
    "hl_net_write": (c_int, [c_void_p, c_void_p, c_size_t, c_void_p]),
    "hl_net_read": (c_int, [c_void_p, c_void_p, c_size_t, c_void_p]),
    "hl_net_build": (c_int, [c_void_p, c_void_p, c_int, c_int, c_void_p]),
    "hl_operator_create": (c_int, [c_void_p, c_void_p, c_void_p]),
    "hl_operator_free": (None, [c_void_p]),
    "hl_order_columns": (c_int, [c_void_p, c_size_t, c_size_t, c_void_p, c_void_p]),
    "hl_operator_eval": (c_int, [c_void_p, c_size_t, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p]),
    "hl_operator_vjp": (c_int, [c_void_p, c_size_t, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p]),
    "hl_operator_eval_vjp": (c_int, [c_void_p, c_size_t, c_void_p, c_void_p, c_void_p, c_void_p]),
    "hl_operator_plan": (c_void_p, [c_void_p]),
    "hl_field_create": (c_int, [c_void_p, c_size_t, c_void_p]),
    "hl_field_free": (None, [c_void_p]),
    "hl_field_set_context": (None, [c_void_p, c_void_p]),
    "hl_field_system": (hl_system, [c_void_p]),
    "hl_ode_create": (c_int, [c_void_p, c_void_p, c_void_p, c_void_p]),
    "hl_ode_free": (None, [c_void_p]),
    "hl_ode_solve": (c_int, [c_void_p, c_size_t, c_void_p, c_double, c_void_p, c_void_p]),
    "hl_ode_solve_at": (c_int, [c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, c_void_p, c_void_p, c_void_p]),
    "hl_ode_gradient": (c_int, [c_void_p, c_void_p, c_void_p]),
    "hl_ode_report": (hl_ode_summary, [c_void_p]),
    "hl_ode_reset": (None, [c_void_p]),
    "hl_ode_library": (c_int, [c_char_p, c_size_t]),
    "hl_ode_methods": (POINTER(c_char_p), []),
    "hl_flow_kinds": (POINTER(c_char_p), []),
    "hl_flow_is_continuous": (c_int, [c_char_p]),
    "hl_flow_create": (c_int, [c_void_p, c_void_p, c_void_p]),
    "hl_flow_free": (None, [c_void_p]),
    "hl_flow_init": (c_int, [c_void_p, c_uint64]),
    "hl_flow_describe": (hl_flow_spec, [c_void_p]),
    "hl_flow_nets": (c_size_t, [c_void_p]),
    "hl_flow_net": (c_void_p, [c_void_p, c_size_t]),
    "hl_flow_set_solver": (c_int, [c_void_p, c_void_p]),
    "hl_flow_set_draw": (None, [c_void_p, c_uint64]),
    "hl_flow_report": (hl_ode_summary, [c_void_p]),
    "hl_flow_reset": (None, [c_void_p]),
    "hl_flow_forward": (c_int, [c_void_p, c_size_t, c_void_p, c_void_p, c_void_p, c_void_p]),
    "hl_flow_inverse": (c_int, [c_void_p, c_size_t, c_void_p, c_void_p, c_void_p, c_void_p]),
    "hl_flow_sweeps": (c_size_t, [c_void_p]),
    "hl_flow_logp": (c_int, [c_void_p, c_size_t, c_void_p, c_void_p, c_void_p]),
    "hl_flow_gradient": (c_int, [c_void_p, c_size_t, c_void_p, c_void_p, c_void_p, c_void_p]),
    "hl_flow_vjp": (c_int, [c_void_p, c_size_t, c_void_p]),
    "hl_params_from_graph": (c_int, [c_void_p, c_int, c_void_p]),
    "hl_params_from_nets": (c_int, [c_void_p, c_size_t, c_void_p, c_void_p]),
    "hl_params_free": (None, [c_void_p]),
    "hl_params_count": (c_size_t, [c_void_p]),
    "hl_params_size": (c_size_t, [c_void_p]),
    "hl_params_dtype": (c_int, [c_void_p]),
    "hl_params_get": (c_int, [c_void_p, c_size_t, c_void_p]),
    "hl_params_find": (c_size_t, [c_void_p, c_char_p]),
    "hl_params_values": (c_void_p, [c_void_p]),
    "hl_params_gradients": (c_void_p, [c_void_p]),
    "hl_params_read": (None, [c_void_p, c_void_p]),
    "hl_params_write": (None, [c_void_p, c_void_p]),
    "hl_params_read_gradients": (None, [c_void_p, c_void_p]),
    "hl_params_init": (c_int, [c_void_p, c_size_t, c_size_t, c_uint64, c_uint64]),
    "hl_params_check": (c_int, [c_void_p]),
    "hl_optimizer_methods": (POINTER(c_char_p), []),
    "hl_optimizer_create_for": (c_int, [c_void_p, c_void_p, c_void_p]),
    "hl_optimizer_create": (c_int, [c_void_p, c_size_t, c_void_p, c_void_p, c_void_p]),
    "hl_optimizer_free": (None, [c_void_p]),
    "hl_optimizer_size": (c_size_t, [c_void_p]),
    "hl_optimizer_step": (c_int, [c_void_p, c_void_p, c_double, c_void_p]),
    "hl_optimizer_use_average": (None, [c_void_p, c_int]),
    "hl_optimizer_restart": (None, [c_void_p]),
    "hl_optimizer_reread": (None, [c_void_p]),
    "hl_optimizer_state_size": (c_size_t, [c_void_p]),
    "hl_optimizer_get_state": (None, [c_void_p, c_void_p]),
    "hl_optimizer_set_state": (c_int, [c_void_p, c_void_p]),
    "hl_schedule_cosine": (c_double, [c_size_t, c_size_t, c_size_t, c_double]),
    "hl_fit_phase_name": (c_char_p, [c_int]),
    "hl_fit_create": (c_int, [c_void_p, c_void_p, c_void_p, c_void_p, c_void_p]),
    "hl_fit_free": (None, [c_void_p]),
    "hl_fit_step": (c_int, [c_void_p, c_void_p]),
    "hl_fit_finish": (c_int, [c_void_p]),
    "hl_fit_state_size": (c_size_t, [c_void_p]),
    "hl_fit_get_state": (None, [c_void_p, c_void_p]),
    "hl_fit_set_state": (c_int, [c_void_p, c_void_p]),
    "hl_density_create": (c_int, [c_void_p, c_void_p, c_void_p, c_void_p]),
    "hl_density_free": (None, [c_void_p]),
    "hl_density_dim": (c_size_t, [c_void_p]),
    "hl_density_context": (c_size_t, [c_void_p]),
    "hl_density_get_column": (hl_density_column, [c_void_p, c_size_t]),
    "hl_density_get_range": (hl_density_range, [c_void_p, c_size_t]),
    "hl_density_set_rounding": (None, [c_void_p, c_int]),
    "hl_density_set_categories": (c_int, [c_void_p, c_size_t, c_void_p]),
    "hl_density_categories": (c_size_t, [c_void_p]),
    "hl_density_get_category": (hl_category, [c_void_p, c_size_t]),
    "hl_density_set_factor": (c_int, [c_void_p, c_void_p]),
    "hl_density_factor": (c_void_p, [c_void_p]),
    "hl_density_flow": (c_void_p, [c_void_p]),
    "hl_density_members": (c_size_t, [c_void_p]),
    "hl_density_get_member": (hl_density_member, [c_void_p, c_size_t]),
    "hl_density_patterns": (c_size_t, [c_void_p]),
    "hl_density_get_pattern": (hl_density_pattern, [c_void_p, c_size_t]),
    "hl_density_get_atom": (c_int, [c_void_p, c_size_t, c_void_p]),
    "hl_density_set_solver": (c_int, [c_void_p, c_void_p]),
    "hl_density_solver": (hl_flow_solver, [c_void_p]),
    "hl_density_get_accuracy": (hl_density_accuracy, [c_void_p]),
    "hl_density_calibrate": (c_int, [c_void_p, c_size_t, c_void_p, c_void_p, c_double]),
    "hl_density_course": (POINTER(hl_training_point), [c_void_p, c_void_p]),
    "hl_density_set_note": (c_int, [c_void_p, c_char_p]),
    "hl_density_note": (c_char_p, [c_void_p]),
    "hl_density_save": (c_int, [c_void_p, c_char_p]),
    "hl_density_load": (c_int, [c_void_p, c_char_p, c_void_p]),
    "hl_density_write": (c_int, [c_void_p, c_void_p, c_size_t, c_void_p]),
    "hl_density_read": (c_int, [c_void_p, c_void_p, c_size_t, c_void_p]),
    "hl_density_logp": (c_int, [c_void_p, c_size_t, c_void_p, c_void_p, c_void_p]),
    "hl_density_member_logp": (c_int, [c_void_p, c_size_t, c_size_t, c_void_p, c_void_p, c_void_p]),
    "hl_density_logp_gradient": (c_int, [c_void_p, c_size_t, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p]),
    "hl_density_sample": (c_int, [c_void_p, c_uint64, c_size_t, c_size_t, c_void_p, c_void_p]),
    "hl_density_standardise": (None, [c_void_p, c_size_t, c_void_p, c_void_p]),
    "hl_density_unstandardise": (None, [c_void_p, c_size_t, c_void_p]),
    "hl_fit_save": (c_int, [c_void_p, c_char_p, c_char_p]),
    "hl_fit_load": (c_int, [c_void_p, c_char_p, c_char_p]),
    "hl_option_find": (POINTER(hl_option), [c_void_p, c_char_p]),
    "hl_option_nearest": (c_char_p, [c_void_p, c_char_p]),
    "hl_settings_create": (c_int, [c_void_p, c_void_p, c_void_p]),
    "hl_settings_free": (None, [c_void_p]),
    "hl_settings_set": (c_int, [c_void_p, c_char_p, c_char_p]),
    "hl_settings_text": (c_char_p, [c_void_p, c_char_p]),
    "hl_density_fit_options": (POINTER(hl_option), []),
    "hl_density_sample_rows": (c_size_t, [c_size_t]),
    "hl_finding_name": (c_char_p, [c_int]),
    "hl_finding_text": (c_char_p, [c_void_p, POINTER(c_char_p), c_char_p, c_size_t]),
    "hl_density_end_name": (c_char_p, [c_int]),
    "hl_density_verdict_name": (c_char_p, [c_int]),
    "hl_density_outcome_free": (None, [c_void_p]),
    "hl_density_fit": (c_int, [c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p]),
    "hl_vae_nets": (POINTER(c_char_p), []),
    "hl_vae_posteriors": (POINTER(c_char_p), []),
    "hl_vae_create": (c_int, [c_void_p, c_void_p, c_void_p]),
    "hl_vae_free": (None, [c_void_p]),
    "hl_vae_init": (c_int, [c_void_p, c_uint64]),
    "hl_vae_describe": (hl_vae_spec, [c_void_p]),
    "hl_vae_dim": (c_size_t, [c_void_p]),
    "hl_vae_params": (c_void_p, [c_void_p]),
    "hl_vae_set_steps": (c_int, [c_void_p, c_size_t]),
    "hl_vae_set_columns": (c_int, [c_void_p, c_void_p, c_void_p]),
    "hl_vae_columns": (None, [c_void_p, c_void_p, c_void_p]),
    "hl_vae_set_names": (c_int, [c_void_p, POINTER(c_char_p)]),
    "hl_vae_name": (c_char_p, [c_void_p, c_size_t]),
    "hl_vae_copy_networks": (c_int, [c_void_p, c_void_p]),
    "hl_vae_course": (POINTER(hl_training_point), [c_void_p, c_void_p]),
    "hl_vae_save": (c_int, [c_void_p, c_char_p]),
    "hl_vae_load": (c_int, [c_void_p, c_char_p, c_void_p]),
    "hl_vae_write": (c_int, [c_void_p, c_void_p, c_size_t, c_void_p]),
    "hl_vae_read": (c_int, [c_void_p, c_void_p, c_size_t, c_void_p]),
    "hl_vae_evaluate": (c_int, [c_void_p, c_void_p, c_void_p, c_void_p, c_void_p]),
    "hl_vae_encode": (c_int, [c_void_p, c_void_p, c_uint64, c_void_p, c_void_p]),
    "hl_vae_decode": (c_int, [c_void_p, c_size_t, c_void_p, c_void_p]),
    "hl_vae_sample": (c_int, [c_void_p, c_size_t, c_uint64, c_void_p, c_void_p]),
    "hl_vae_draw": (c_int, [c_void_p, c_size_t, c_uint64, c_void_p]),
    "hl_vae_push": (c_int, [c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p]),
    "hl_images_open": (c_int, [c_void_p, c_char_p, c_void_p, c_void_p]),
    "hl_images_free": (None, [c_void_p]),
    "hl_images_rows": (hl_vae_rows, [c_void_p]),
    "hl_images_source": (hl_vae_source, [c_void_p]),
    "hl_images_dim": (c_size_t, [c_void_p]),
    "hl_images_shape": (None, [c_void_p, c_void_p]),
    "hl_images_names": (POINTER(c_char_p), [c_void_p]),
    "hl_images_dropped": (c_size_t, [c_void_p]),
    "hl_brownian_increment": (None, [c_void_p, c_uint64, c_size_t, c_int, c_uint64, c_void_p, c_void_p]),
    "hl_brownian_value": (c_double, [c_void_p, c_uint64, c_size_t, c_int, c_uint64]),
    "hl_simulator_create": (c_int, [c_void_p, c_void_p, c_void_p, c_void_p]),
    "hl_simulator_free": (None, [c_void_p]),
    "hl_simulator_run": (c_int, [c_void_p, c_size_t, c_uint64, c_void_p, c_double, c_size_t, c_void_p, c_void_p]),
    "hl_simulator_methods": (POINTER(c_char_p), []),
    "hl_simulator_orders": (c_int, [c_char_p, c_void_p, c_void_p]),
    "hl_fp_build": (c_int, [c_void_p, c_void_p]),
    "hl_fp_derive_density": (c_int, [c_void_p, c_int32, c_int32, c_int32, c_void_p]),
    "hl_fp_add_cross": (c_int, [c_void_p, c_int32, c_int32, c_size_t, c_size_t, c_int32, c_void_p]),
    "hl_fp_derive": (c_int, [c_void_p, c_int32, c_int32, c_int, c_void_p]),
    "hl_sde_create": (c_int, [c_void_p, c_void_p, c_void_p]),
    "hl_sde_free": (None, [c_void_p]),
    "hl_sde_init": (c_int, [c_void_p, c_uint64]),
    "hl_sde_describe": (hl_sde_spec, [c_void_p]),
    "hl_sde_net": (c_void_p, [c_void_p, c_size_t]),
    "hl_sde_set_scale": (c_int, [c_void_p, c_double, c_double, c_void_p, c_void_p]),
    "hl_sde_get_scale": (None, [c_void_p, c_void_p, c_void_p, c_void_p, c_void_p]),
    "hl_sde_eval": (c_int, [c_void_p, c_size_t, c_void_p, c_void_p, c_void_p]),
    "hl_sde_sample": (c_int, [c_void_p, c_size_t, c_void_p, c_uint64, c_uint64, c_void_p]),
    "hl_sde_system": (c_int, [c_void_p, c_void_p]),
    "hl_sde_method_name": (c_char_p, [c_int]),
    "hl_sde_trained_by": (c_int, [c_void_p]),
    "hl_sde_course": (POINTER(hl_training_point), [c_void_p, c_int, c_void_p]),
    "hl_sde_fit_create": (c_int, [c_void_p, c_void_p, c_void_p, c_void_p]),
    "hl_sde_fit_free": (None, [c_void_p]),
    "hl_sde_fit_step": (c_int, [c_void_p, c_void_p]),
    "hl_sde_fit_finish": (c_int, [c_void_p]),
    "hl_sde_fit_state_size": (c_size_t, [c_void_p]),
    "hl_sde_fit_get_state": (None, [c_void_p, c_void_p]),
    "hl_sde_fit_set_state": (c_int, [c_void_p, c_void_p]),
    "hl_sde_fit_save": (c_int, [c_void_p, c_char_p, c_char_p]),
    "hl_sde_fit_load": (c_int, [c_void_p, c_char_p, c_char_p]),
    "hl_sde_choose_components": (c_int, [c_void_p, c_void_p, c_void_p, c_void_p, c_void_p]),
    "hl_sde_set_name": (c_int, [c_void_p, c_size_t, c_char_p]),
    "hl_sde_name": (c_char_p, [c_void_p, c_size_t]),
    "hl_sde_dates": (c_int, [c_void_p]),
    "hl_sde_equation": (c_int, [c_void_p, c_int, c_size_t, c_char_p, c_size_t]),
    "hl_sde_set_note": (c_int, [c_void_p, c_char_p]),
    "hl_sde_note": (c_char_p, [c_void_p]),
    "hl_sde_save": (c_int, [c_void_p, c_char_p]),
    "hl_sde_load": (c_int, [c_void_p, c_char_p, c_void_p]),
    "hl_sde_write": (c_int, [c_void_p, c_void_p, c_size_t, c_void_p]),
    "hl_sde_read": (c_int, [c_void_p, c_void_p, c_size_t, c_void_p]),
    "hl_energy_distance": (c_double, [c_size_t, c_size_t, c_void_p, c_size_t, c_void_p]),
    "hl_wasserstein_distance": (c_double, [c_size_t, c_void_p, c_size_t, c_void_p]),
    "hl_residual_name": (c_char_p, [c_int]),
    "hl_weak_test_name": (c_char_p, [c_int]),
    "hl_answer_name": (c_char_p, [c_int]),
    "hl_judge_create": (c_int, [c_void_p, c_size_t, c_void_p, c_void_p, c_void_p]),
    "hl_judge_free": (None, [c_void_p]),
    "hl_judge_model": (c_int, [c_void_p, c_void_p]),
    "hl_judge_groups": (c_size_t, [c_void_p]),
    "hl_judge_get": (hl_judge_group, [c_void_p, c_size_t]),
    "hl_judge_rows": (c_int, [c_void_p, c_size_t, c_int, c_void_p]),
    "hl_judge_verdict": (hl_verdict, [c_void_p]),
    "hl_sde_learn_options": (POINTER(hl_option), []),
    "hl_sde_outcome_free": (None, [c_void_p]),
    "hl_sde_finding_name": (c_char_p, [c_int]),
    "hl_sde_finding_text": (c_char_p, [c_void_p, c_size_t, c_char_p, c_size_t]),
    "hl_sde_learn": (c_int, [c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p]),
    "hl_observations_read": (c_int, [c_void_p, c_char_p, c_void_p, c_void_p]),
    "hl_observations_free": (None, [c_void_p]),
    "hl_observations_rows": (hl_sde_observations, [c_void_p]),
    "hl_observations_place": (c_char_p, [c_void_p, c_size_t, c_size_t, c_char_p, c_size_t]),
    "hl_time_scan": (c_char_p, [c_char_p, c_void_p]),
    "hl_time_days": (c_double, [c_double]),
    "hl_random_bits": (c_uint64, [c_uint64, c_uint64, c_uint64]),
    "hl_random_uniform": (c_double, [c_uint64, c_uint64, c_uint64]),
    "hl_random_normal": (c_double, [c_uint64, c_uint64, c_uint64]),
    "hl_random_uniforms": (None, [c_uint64, c_uint64, c_uint64, c_size_t, c_void_p]),
    "hl_random_normals": (None, [c_uint64, c_uint64, c_uint64, c_size_t, c_void_p]),
    "hl_context_set_ranks": (c_int, [c_void_p, c_void_p]),
    "hl_context_ranks": (c_size_t, [c_void_p]),
    "hl_context_gathered": (c_double, [c_void_p]),
    "hl_ranks_compare": (c_int, [c_void_p, c_char_p, c_void_p, c_size_t]),
    "hl_report_pick": (c_size_t, [c_size_t, c_size_t, c_uint64, c_void_p]),
    "hl_report_free": (None, [c_void_p]),
    "hl_report_verdict": (c_char_p, [c_void_p]),
    "hl_report_get_level": (c_int, [c_void_p]),
    "hl_report_html": (c_int, [c_void_p, c_int, c_char_p, c_size_t, c_void_p]),
    "hl_report_json": (c_int, [c_void_p, c_char_p, c_size_t, c_void_p]),
    "hl_report_save": (c_int, [c_void_p, c_char_p]),
    "hl_report_density": (c_int, [c_void_p, c_void_p, c_void_p, c_void_p]),
    "hl_report_density_numbers": (POINTER(hl_density_report), [c_void_p]),
    "hl_report_sde": (c_int, [c_void_p, c_void_p, c_void_p, c_void_p]),
    "hl_report_sde_numbers": (POINTER(hl_sde_report), [c_void_p]),
    "hl_report_vae": (c_int, [c_void_p, c_void_p, c_void_p, c_void_p]),
    "hl_report_vae_numbers": (POINTER(hl_vae_report), [c_void_p]),
    "hl_root_methods": (POINTER(c_char_p), []),
    "hl_root_create": (c_int, [c_void_p, c_void_p, c_void_p, c_void_p]),
    "hl_root_free": (None, [c_void_p]),
    "hl_root_solve": (c_int, [c_void_p, c_size_t, c_void_p, c_void_p, c_void_p]),
    "hl_sde_replicates": (c_size_t, [c_void_p]),
    "hl_sde_bands": (c_int, [c_void_p, c_size_t, c_void_p, c_void_p, c_void_p]),
    "hl_sde_replicate_system": (c_int, [c_void_p, c_void_p]),
    "hl_sde_bridge": (c_int, [c_void_p, c_size_t, c_void_p, c_void_p, c_size_t, c_void_p, c_void_p, c_void_p]),
    "hl_sde_regress": (c_int, [c_void_p, c_void_p, c_size_t, c_void_p, c_void_p]),
    "hl_sde_simple_free": (None, [c_void_p]),
    "hl_sde_simple_report": (hl_sde_regress_report, [c_void_p]),
    "hl_sde_simple_eval": (c_int, [c_void_p, c_size_t, c_void_p, c_void_p, c_void_p, c_void_p]),
    "hl_sde_simple_correlation": (c_double, [c_void_p, c_size_t, c_size_t]),
    "hl_sde_forms_parse": (c_int, [c_void_p, c_size_t, POINTER(c_char_p), c_char_p, c_char_p, c_void_p]),
    "hl_sde_forms_free": (None, [c_void_p]),
    "hl_sde_forms_constants": (c_size_t, [c_void_p]),
    "hl_sde_forms_has": (c_int, [c_void_p, c_int, c_size_t]),
    "hl_sde_forms_source": (c_char_p, [c_void_p, c_int]),
    "hl_sde_forms_constant": (hl_sde_constant, [c_void_p, c_size_t]),
    "hl_sde_forms_set": (c_int, [c_void_p, c_size_t, c_double]),
    "hl_sde_forms_eval": (c_int, [c_void_p, c_size_t, c_void_p, c_void_p, c_void_p, c_void_p]),
    "hl_sde_forms_fit": (c_int, [c_void_p, c_void_p, c_void_p]),
    "hl_date_scan": (c_char_p, [c_char_p, c_void_p]),
    "hl_date_text": (c_size_t, [c_double, c_char_p]),
    "hl_table_open": (c_int, [c_void_p, c_char_p, c_void_p, c_void_p]),
    "hl_table_free": (None, [c_void_p]),
    "hl_table_rows": (c_size_t, [c_void_p]),
    "hl_table_columns": (c_size_t, [c_void_p]),
    "hl_table_dropped": (c_size_t, [c_void_p]),
    "hl_table_name": (c_char_p, [c_void_p, c_size_t]),
    "hl_table_kind": (c_int, [c_void_p, c_size_t]),
    "hl_table_label": (c_char_p, [c_void_p, c_size_t]),
    "hl_table_categories": (c_int, [c_void_p, c_size_t, c_void_p, c_void_p]),
    "hl_table_add_indicators": (c_int, [c_void_p, c_size_t, c_size_t, POINTER(c_char_p)]),
    "hl_table_named": (c_int, [c_void_p]),
    "hl_table_find": (c_int, [c_void_p, c_char_p, c_void_p, c_void_p]),
    "hl_table_find_in_file": (c_int, [c_void_p, c_char_p, c_void_p, c_void_p]),
    "hl_table_read_rows": (c_int, [c_void_p, c_size_t, c_size_t, c_void_p]),
    "hl_table_read_columns": (c_int, [c_void_p, c_size_t, c_size_t, c_size_t, c_void_p, c_void_p]),
    "hl_table_gather": (c_int, [c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, c_void_p]),
    "hl_table_place": (c_int, [c_void_p, c_size_t, c_size_t, c_char_p, c_size_t]),
    "hl_table_line": (c_size_t, [c_void_p, c_size_t]),
    "hl_table_stats": (c_int, [c_void_p, c_void_p]),
    "hl_table_writer_create": (c_int, [c_void_p, c_char_p, c_size_t, c_void_p, c_void_p]),
    "hl_table_write_rows": (c_int, [c_void_p, c_size_t, c_void_p]),
    "hl_table_writer_flush": (c_int, [c_void_p]),
    "hl_table_writer_finish": (c_int, [c_void_p]),
    "hl_table_writer_free": (None, [c_void_p]),
    "hl_number_text": (c_size_t, [c_double, c_int, c_char_p]),
    "hl_vae_fit_options": (POINTER(hl_option), []),
    "hl_vae_fit": (c_int, [c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p]),
}
