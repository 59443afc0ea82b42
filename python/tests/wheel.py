"""The installed wheel fits, scores, simulates and has a program. Run by `make wheel` where the libraries of Debian are hidden."""

import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import hollownet
import numpy as np

assert Path(hollownet.library_path).parent == Path(hollownet.__file__).parent, hollownet.library_path
hidden = not any(p.stat().st_size for p in Path("/usr/lib").glob("*/libsundials_cvodes.so*"))
print(f"libsundials_cvodes of the system is {'hidden or absent' if hidden else 'visible'}")

warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
X = rng.normal(size=(200, 2))
model = hollownet.Density(iters=5, random_state=0).fit(X)
logp = model.score_samples(X)
assert np.isfinite(logp).all()

t, groups = np.tile(np.arange(8) * 0.1, 30), np.repeat(np.arange(30), 8)
paths = (2 * np.exp(-t) + 0.1 * rng.normal(size=240))[:, None]
sde = hollownet.SDE(iters=5, anyway=True).fit(t, paths, groups)
assert np.isfinite(sde.simulate(3)[1]).all()
y = hollownet.odeint(lambda t, y: -y, [1.0], [0, 1], method="bdf-functional")  # SUNDIALS
assert abs(y[-1, 0] - np.exp(-1)) < 1e-4

with tempfile.TemporaryDirectory() as directory:
    path = Path(directory, "m.hollow")
    model.save(path)
    data = Path(directory, "x.csv")
    data.write_text("x1,x2\n" + "".join(f"{a!r},{b!r}\n" for a, b in X.tolist()))
    program = Path(sys.executable).parent / "hollow"
    done = subprocess.run([program, "logp", path, data], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert np.array_equal([float(line) for line in done.stdout.split()], logp)
print(f"hollownet {hollownet.__version__}: fit, score, simulate and the program work")
