#!/usr/bin/env python3
"""honest_answers.py LIBRARY OUT [CACHE]: write problems/honest_answers.c: the answers of the problems of honest_problem.h, and the
errors of trusted codes of each class at each tolerance: SciPy's RK45, DOP853, LSODA (for Adams) and BDF. LIBRARY is a shared object with
honest_problem.c and stiff_problem.c. Answers are of the tightest solves, which agree with those at ten times the tolerance (the difference is
printed); those of the stiff test set are the published ones, where stiff_problem.c has them. CACHE keeps answers as JSON."""

import ctypes
import json
import os
import sys
import time

import numpy as np
from scipy.integrate import solve_ivp


class Problem(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("n", ctypes.c_size_t),
        ("f", ctypes.c_void_p),
        ("t1", ctypes.c_double),
        ("ratio", ctypes.c_double),
        ("finest", ctypes.c_double),
        ("gmres", ctypes.c_bool),
        ("y0", ctypes.POINTER(ctypes.c_double)),
        ("start", ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_double))),
        ("y1", ctypes.POINTER(ctypes.c_double)),
    ]


library = ctypes.CDLL(sys.argv[1])
library.honest_problem_get.restype = ctypes.POINTER(Problem)
DOUBLES = ctypes.POINTER(ctypes.c_double)
library.honest_problem_eval.argtypes = [ctypes.c_size_t, ctypes.c_double, DOUBLES, DOUBLES, DOUBLES]
TOLERANCES = (1e-3, 1e-6)
CODES = ("RK45", "DOP853", "LSODA", "BDF")
STIFF = {"RING", "HIRES", "OREGO", "ROBER", "VDPOL", "POLLU", "KAPS", "BRUSS", "E5"}


def pointer(array):
    return array.ctypes.data_as(DOUBLES)


def functions(k, n):
    def f(t, y):
        y, out = np.ascontiguousarray(y), np.empty(n)
        library.honest_problem_eval(k, t, pointer(y), None, pointer(out))
        return out

    def jacobian(t, y):
        y, columns = np.ascontiguousarray(y), np.empty((n, n))
        for j in range(n):
            unit, out = np.zeros(n), np.empty(n)
            unit[j] = 1
            library.honest_problem_eval(k, t, pointer(y), pointer(unit), pointer(out))
            columns[:, j] = out
        return columns

    return f, jacobian


def solve(k, problem, y0, method, rtol):
    f, jacobian = functions(k, problem.n)
    more = {"jac": jacobian} if method in ("Radau", "BDF", "LSODA") else {}
    begun = time.time()

    def limited(t, y):
        if time.time() - begun > 120:
            raise TimeoutError
        return f(t, y)

    try:
        s = solve_ivp(limited, (0, problem.t1), y0, method=method, rtol=rtol, atol=rtol * problem.ratio, **more)
    except (TimeoutError, ValueError, OverflowError, np.linalg.LinAlgError):
        return None
    return s.y[:, -1] if s.success else None


def error(problem, y, answer, rtol):
    if y is None:
        return float("inf")
    return float(np.max(np.abs(y - answer) / (rtol * problem.ratio + rtol * np.abs(answer))))


def answer_of(k, problem, y0):
    name = problem.name.decode()
    if problem.y1:
        return np.array(problem.y1[: problem.n])
    method = "LSODA" if name == "RING" else "Radau" if name in STIFF else "DOP853"
    fine, coarse = (solve(k, problem, y0, method, r) for r in ((1e-12, 1e-11) if name in STIFF else (3e-14, 1e-12)))
    if fine is None or coarse is None:
        return None
    agree = np.max(np.abs(fine - coarse)) / np.max(np.abs(fine))
    print(f"{name}: answers at two tolerances differ by {agree:.1e} of the largest value", file=sys.stderr)
    return fine


def main():
    rows, arrays, k, cache = [], [], 0, {}
    if len(sys.argv) > 3 and os.path.exists(sys.argv[3]):
        with open(sys.argv[3]) as file:
            cache = json.load(file)
    while problem := library.honest_problem_get(k):
        problem = problem.contents
        name, n = problem.name.decode(), problem.n
        y0 = np.zeros(n)
        if problem.y0:
            y0[:] = problem.y0[:n]
        else:
            problem.start(pointer(y0))
        answer = np.array(cache[name]) if name in cache else answer_of(k, problem, y0)
        if answer is not None:
            cache[name] = answer.tolist()
            trusted = []
            for rtol in TOLERANCES:
                errors = {}
                for method in CODES:
                    code = "BDF" if name in STIFF and method != "LSODA" else method  # explicit codes are not for stiff problems
                    code = "LSODA" if name == "RING" else code  # in Python the others take hours
                    if code not in errors:
                        errors[code] = error(problem, solve(k, problem, y0, code, rtol), answer, rtol)
                    trusted.append(errors[code])
            print(name, [f"{t:.3g}" for t in trusted], file=sys.stderr, flush=True)
            values = ", ".join(repr(float(v)) for v in answer)
            arrays.append(f"static const double y_{k}[] = {{ {values} }};")
            texts = ["INFINITY" if t == float("inf") else f"{t:.3g}" for t in trusted]
            each = ", ".join("{ " + ", ".join(texts[i : i + len(CODES)]) + " }" for i in range(0, len(texts), len(CODES)))
            rows.append(f'    {{ "{name}", {{ {each} }}, y_{k} }},')
        k += 1
    if len(sys.argv) > 3:
        with open(sys.argv[3], "w") as file:
            json.dump(cache, file)
    with open(sys.argv[2], "w") as out:
        out.write("/* honest_answers.c - written by scripts/honest_answers.py; see honest_problem.h. */\n")
        out.write('#include <math.h>\n\n#include "honest_problem.h"\n\n')
        out.write("\n".join(arrays) + "\n\nconst honest_answer honest_answers[] = {\n" + "\n".join(rows) + "\n    { 0 },\n};\n")


main()
