"""Densities and equations: the program's bits, files, fork, threads, Ctrl-C, memory, wrong arguments."""

import copy
import json
import multiprocessing
import os
import pickle
import resource
import signal
import subprocess
import tempfile
import threading
import time
import unittest
import warnings

import hollownet
import numpy as np

PROGRAM = os.environ.get("HOLLOW_PROGRAM", "")


def banana(rows=300, seed=0):
    X = np.random.default_rng(seed).normal(size=(rows, 2))
    X[:, 1] += X[:, 0] ** 2
    return X


def fitted(**more):
    return hollownet.Density(iters=20, random_state=3, **more).fit(banana())


def run(*arguments):
    done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return done.stdout


def write_csv(path, names, values):
    with open(path, "w") as file:
        file.write(",".join(names) + "\n")
        for row in values:
            file.write(",".join(repr(float(v)) for v in row) + "\n")


def numbers(text):
    return np.array([[float(v) for v in line.split(",")] for line in text.splitlines()[1:]])


@unittest.skipUnless(PROGRAM, "HOLLOW_PROGRAM is not set")
class TestProgram(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.path = lambda name: os.path.join(directory.name, name)

    def test_density(self):
        """fit writes the program's bytes, and log-densities and samples are the program's, to the bit."""
        X = banana()
        write_csv(self.path("x.csv"), ["x1", "x2"], X)
        model = fitted()
        model.save(self.path("python.hollow"))
        run("fit", self.path("x.csv"), "-o", self.path("program.hollow"), "--iters", "20", "--seed", "3", "--quiet")
        with open(self.path("program.hollow"), "rb") as file:
            self.assertEqual(model.to_bytes(), file.read())
        logp = np.array([float(line) for line in run("logp", self.path("program.hollow"), self.path("x.csv")).split()])
        self.assertTrue(np.array_equal(model.score_samples(X), logp))
        loaded = hollownet.Density.load(self.path("program.hollow"), threads=1)
        self.assertTrue(np.array_equal(loaded.score_samples(X), logp))
        drawn = numbers(run("sample", self.path("program.hollow"), "-n", "50", "--seed", "7"))
        self.assertTrue(np.array_equal(model.sample(50, random_state=7), drawn))

    def test_files_of_others(self):
        """What is there and was not written here stays."""
        X = banana(seed=1)
        write_csv(self.path("x.csv"), ["x1", "x2"], X)
        with open(self.path("x.csv"), "rb") as file:
            before = file.read()
        model = fitted()
        with self.assertRaises(ValueError):
            model.save(self.path("x.csv\0.hollow"))
        with self.assertRaises(ValueError):
            hollownet.Density(iters=5).fit(X, checkpoint=self.path("x.csv\0.ckpt"))
        with open(self.path("x.csv"), "rb") as file:
            self.assertEqual(file.read(), before)

    def test_report(self):
        """The numbers of a report are the program's."""
        X = banana(seed=1)
        write_csv(self.path("x.csv"), ["x1", "x2"], X)
        model = fitted()
        model.save(self.path("m.hollow"))
        report = model.report(X, rows=200, draws=300)
        told = json.loads(
            run("report", self.path("m.hollow"), self.path("x.csv"), "--rows", "200", "--draws", "300", "--json")
        )
        del told["title"]
        self.assertEqual({k: v for k, v in report.numbers.items() if k != "title"}, told)
        self.assertEqual(report.verdict, told["verdict"])
        self.assertIn(report.verdict[:20], report._repr_html_())
        self.assertNotIn("<script", report._repr_html_())
        report.save(self.path("page.html"))
        with open(self.path("page.html"), encoding="utf-8") as file:
            self.assertEqual(file.read(), report.html)
        os.symlink("later.html", self.path("link.html"))
        for _ in range(2):
            report.save(self.path("link.html"))
            self.assertTrue(os.path.islink(self.path("link.html")))
        with open(self.path("later.html"), encoding="utf-8") as file:
            self.assertEqual(file.read(), report.html)
        os.mkfifo(self.path("pipe"))
        with self.assertRaises(OSError):
            report.save(self.path("pipe"))
        left = ["later.html", "link.html", "m.hollow", "page.html", "pipe", "x.csv"]
        self.assertEqual(sorted(os.listdir(self.path(""))), left)
        with self.assertRaises(ValueError):
            model.report(X[:, :1])

    def test_conditional(self):
        rng = np.random.default_rng(1)
        c = rng.normal(size=300)
        x = c * 2 + rng.normal(size=300)
        write_csv(self.path("x.csv"), ["a", "b"], np.column_stack([x, c]))
        table = Table({"a": x})
        model = hollownet.Density(iters=5).fit(table, context=Table({"b": c}))
        run("fit", self.path("x.csv"), "-o", self.path("m.hollow"), "--iters", "5", "--quiet", "--context", "b")
        with open(self.path("m.hollow"), "rb") as file:
            self.assertEqual(model.to_bytes(), file.read())
        logp = np.array([float(line) for line in run("logp", self.path("m.hollow"), self.path("x.csv")).split()])
        self.assertTrue(np.array_equal(model.score_samples(table, context=c), logp))
        one = model.sample(20, random_state=1, context=[3.0])
        each = model.sample(20, random_state=1, context=np.full((20, 1), 3.0))
        self.assertTrue(np.array_equal(one, each))
        with self.assertRaises(ValueError):
            model.score_samples(table)

    def test_categories(self):
        rng = np.random.default_rng(1)
        c = np.array(["b", "a", "c"], dtype=object)[rng.integers(0, 3, 300)]
        n = rng.normal(size=300)
        x = 4.0 * (c == "a") + n + 0.3 * rng.normal(size=300)
        with open(self.path("x.csv"), "w", encoding="utf-8") as file:
            file.write("x,city,n\n")
            file.writelines(f"{float(x[i])!r},{c[i]},{float(n[i])!r}\n" for i in range(300))
        table, context = Table({"x": x}), Table({"city": c, "n": n})
        model = hollownet.Density(members="mixture").fit(table, context=context)
        options = ["--members", "mixture", "--quiet", "--context", "city,n"]
        run("fit", self.path("x.csv"), "-o", self.path("m.hollow"), *options)
        with open(self.path("m.hollow"), "rb") as file:
            self.assertEqual(model.to_bytes(), file.read())
        again = hollownet.Density.load(self.path("m.hollow"))
        logp = model.score_samples(table, context=context)
        self.assertTrue(np.array_equal(again.score_samples(table, context=context), logp))
        self.assertTrue(np.array_equal(model.sample(3, context=["a", 0.5]), again.sample(3, context=[["a", 0.5]] * 3)))
        self.assertGreater(model.sample(50, context=["a", 0.0]).mean(), 3)
        with self.assertRaisesRegex(ValueError, "context row 1, column 'city': 'd' is not one of the categories"):
            other = Table({"city": np.array(["a", "d"], dtype=object), "n": n[:2]})
            model.score_samples(Table({"x": x[:2]}), context=other)
        with self.assertRaisesRegex(ValueError, "different texts"):
            one = Table({"city": np.array(["a"] * 300, dtype=object)})
            hollownet.Density(members="mixture").fit(table, context=one)

    def test_sde(self):
        t, X, groups = paths()
        model = hollownet.SDE(iters=20, random_state=1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(t, X, groups)
        write_csv(self.path("x.csv"), ["trajectory", "t", "x1"], np.column_stack([groups, t, X]))
        model.save(self.path("python.hollow"))
        run("sde", "fit", self.path("x.csv"), "-o", self.path("m.hollow"), "--iters", "20", "--seed", "1", "--quiet",
            "--trajectory", "trajectory")  # fmt: skip
        with open(self.path("m.hollow"), "rb") as file:
            self.assertEqual(model.to_bytes(), file.read())
        lines = numbers(run("sde", "sample", self.path("m.hollow"), "-n", "5", "--seed", "2"))
        times, x = model.simulate(5, random_state=2)
        self.assertTrue(np.array_equal(x.reshape(-1), lines[:, 2]))
        self.assertTrue(np.array_equal(np.tile(times, 5), lines[:, 1]))


class Table:
    """As little of a table as a DataFrame has."""

    def __init__(self, columns):
        self.columns = list(columns)
        self.values = np.column_stack(list(columns.values()))

    def to_numpy(self):
        return self.values


def paths(count=30, steps=8):
    rng = np.random.default_rng(0)
    X = np.zeros((count, steps))
    X[:, 0] = 2 + 0.3 * rng.normal(size=count)
    for i in range(1, steps):
        X[:, i] = 0.9 * X[:, i - 1] + 0.15 * rng.normal(size=count)
    return np.tile(np.arange(steps) * 0.1, count), X.reshape(-1, 1), np.repeat(np.arange(count), steps)


class TestDensity(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = fitted(threads=2)

    def test_attributes(self):
        model = self.model
        self.assertEqual(model.n_features_in_, 2)
        self.assertEqual(model.n_iter_, 20)
        self.assertLessEqual(model.validation_loss_, min(model.history_["validation"]))
        self.assertFalse(hasattr(model, "feature_names_in_"))
        self.assertIn("iters", repr(model))
        self.assertIn("Density", model._repr_html_())
        self.assertIn("ode_steps : int", hollownet.Density.__doc__)
        self.assertEqual(model.get_params()["iters"], 20)

    def test_flow(self):
        X = banana(50, 1)
        flow = fitted(members="flow")
        z = flow.transform(X)
        self.assertLess(np.abs(flow.inverse_transform(z) - X).max(), 1e-2)
        self.assertEqual(z.shape, X.shape)
        self.assertEqual(min(flow.history_["validation"]), flow.validation_loss_)
        with self.assertRaises(ValueError):
            flow.transform(X[:, :1])
        self.assertFalse(hasattr(hollownet.Density(members="mixture"), "transform"))
        with self.assertRaises(AttributeError) as caught:
            fitted(members="mixture").transform(X)
        self.assertIn("members='flow'", str(caught.exception))

    def test_members(self):
        X = banana(50, 1)
        for model in (self.model, fitted(members="flow"), fitted(members="mixture")):
            shares = model.responsibilities(X)
            members = model.members_
            self.assertEqual(shares.shape, (50, len(members)))
            np.testing.assert_allclose(shares.sum(axis=1), 1)
            self.assertAlmostEqual(sum(m["weight"] for m in members), 1)
            logp = np.array([model._model.member_log_prob(k, X, None) for k in range(len(members))])
            total = np.log((np.exp(logp) * np.array([[m["weight"]] for m in members])).sum(axis=0))
            np.testing.assert_allclose(total, model.score_samples(X), rtol=1e-10)
        self.assertAlmostEqual(self.model.score(X), self.model.score_samples(X).mean())

    def test_gradient(self):
        """Of log p of flows, mixtures and both, against differences."""
        X = banana(5, 1)
        for model in (fitted(members="flow", rtol=1e-9, atol=1e-9, dtype="f64"), fitted(members="mixture"), self.model):
            gradient = model.score_gradient(X)
            for i in range(X.shape[1]):
                h = np.zeros(X.shape[1])
                h[i] = 1e-3
                slope = (model.score_samples(X + h) - model.score_samples(X - h)) / 2e-3
                np.testing.assert_allclose(gradient[:, i], slope, rtol=0.02, atol=0.02)
        with self.assertRaises(ValueError):
            self.model.score_gradient(X[:, :1])

    def test_copies(self):
        X = banana(20, 1)
        expected = self.model.score_samples(X)
        copies = [
            pickle.loads(pickle.dumps(self.model)),
            copy.deepcopy(self.model),
            hollownet.Density.from_bytes(self.model.to_bytes(), threads=1),
        ]
        for other in copies:
            self.assertTrue(np.array_equal(other.score_samples(X), expected))
            self.assertEqual(other.to_bytes(), self.model.to_bytes())

    def test_names(self):
        X = banana()
        table = Table({"a": X[:, 0], "b": X[:, 1]})
        model = hollownet.Density(iters=2).fit(table)
        self.assertEqual(list(model.feature_names_in_), ["a", "b"])
        self.assertEqual(hollownet.Density.from_bytes(model.to_bytes()).columns_, ["a", "b"])
        model.score_samples(table)
        with self.assertWarns(UserWarning):
            model.score_samples(X)
        for wrong in ({"b": X[:, 1], "a": X[:, 0]}, {"a": X[:, 0], "c": X[:, 1]}):
            with self.assertRaises(ValueError) as caught:
                model.score_samples(Table(wrong))
            self.assertIn("feature names should match", str(caught.exception))

    def test_findings(self):
        X = banana()
        X[:, 0] = np.round(5 * X[:, 0])
        with self.assertWarns(hollownet.DataWarning) as caught:
            model = hollownet.Density(iters=2).fit(Table({"count": X[:, 0], "size": X[:, 1]}))
        self.assertIn("'count'", str(caught.warning))
        self.assertIn("(keep_steps: no noise)", model.findings_[0])
        X[:, 1] = 4
        with self.assertRaises(ValueError) as failed:
            hollownet.Density(iters=2).fit(X)
        self.assertIn("x2", str(failed.exception))

    def test_weights(self):
        X = banana()
        weights = np.where(X[:, 0] > 0, 1.0, 0.0)
        model = hollownet.Density(iters=200, random_state=0, model="realnvp").fit(X, sample_weight=weights)
        self.assertGreater(model.sample(300, random_state=0)[:, 0].mean(), 0.4)
        self.assertNotEqual(model.to_bytes(), hollownet.Density(iters=200, model="realnvp").fit(X).to_bytes())

    def test_validation_rows(self):
        X = banana()
        model = hollownet.Density(iters=10, random_state=3, members="flow").fit(X[:250], X_valid=X[250:])
        self.assertAlmostEqual(-model.score(X[250:]), model.validation_loss_, delta=1e-3)

    def test_outliers(self):
        X = banana()
        detector = hollownet.OutlierDetector(iters=20, contamination=0.05, random_state=0).fit(X)
        labels = detector.predict(X)
        self.assertEqual(set(labels), {-1, 1})
        self.assertLessEqual(abs((labels == -1).sum() - 15), 1)
        self.assertEqual(detector.predict([[9.0, -9.0]])[0], -1)
        np.testing.assert_allclose(detector.decision_function(X), detector.score_samples(X) - detector.offset_)
        for wrong in (0, 0.6, -1):
            with self.assertRaises(ValueError):
                hollownet.OutlierDetector(contamination=wrong).fit(X)

    def test_wrong_arguments(self):
        model, X = self.model, banana(20)
        nan = X.copy()
        nan[3, 1] = np.nan
        wrong = [
            lambda: model.score_samples(X[:, :1]),
            lambda: model.score_samples(X[0]),
            lambda: model.score_samples(nan),
            lambda: model.score_samples(X[:0]),
            lambda: model.score_samples(X[:, :0]),
            lambda: model.score_samples([["a", "b"]]),
            lambda: model.score_samples(X, context=X),
            lambda: model.score_samples(X + 1j),
            lambda: model.sample(0),
            lambda: model.sample(2.5),
            lambda: model.sample(3, random_state=-1),
            lambda: hollownet.Density().fit(X[:5]),
            lambda: hollownet.Density().fit(nan),
            lambda: hollownet.Density().fit(X[:, :0]),
            lambda: hollownet.Density().fit(X, sample_weight=np.zeros(20)),
            lambda: hollownet.Density().fit(X, sample_weight=np.ones(19)),
            lambda: hollownet.Density().fit(X, sample_weight=-np.ones(20)),
            lambda: hollownet.Density().fit(X, context=X[:5]),
            lambda: hollownet.Density().fit(X, X_valid=X[:, :1]),
            lambda: hollownet.Density().fit(X, resume=True),
            lambda: hollownet.Density(iters=0).fit(X),
            lambda: hollownet.Density(model="nothing").fit(X),
            lambda: hollownet.Density.from_bytes(b"nothing"),
            lambda: hollownet.Density.from_bytes(hollownet.Net(2).to_bytes()),
            lambda: hollownet.Density.from_bytes(model.to_bytes()[:-3]),
            lambda: hollownet.Density().score_samples(X),
        ]
        for i, call in enumerate(wrong):
            with self.assertRaises(ValueError, msg=str(i)) as caught:
                call()
            self.assertGreater(len(str(caught.exception)), 10, msg=str(i))
        for call in (lambda: hollownet.Density(iters="many").fit(X), lambda: hollownet.Density(itres=3)):
            with self.assertRaises(TypeError) as caught:
                call()
            self.assertIn("iters", str(caught.exception))
        with self.assertRaises(OSError):
            hollownet.Density.load("/nowhere/m.hollow")

    def test_other_version(self):
        content = self.model.to_bytes()
        at = content.index(b"hollow-density ")
        other = content[: at + 15] + b"9" + content[at + 16 :]
        with self.assertRaises(hollownet.FormatError) as caught:
            hollownet.Density.from_bytes(other)
        self.assertGreater(len(str(caught.exception)), 20)

    def test_threads(self):
        X = banana(100, 5)
        expected, content, wrong = self.model.score_samples(X), self.model.to_bytes(), []

        def work():
            own = hollownet.Density.from_bytes(content, threads=1)
            for _ in range(5):
                for model in (own, self.model):
                    if not np.array_equal(model.score_samples(X), expected):
                        wrong.append(1)

        workers = [threading.Thread(target=work) for _ in range(8)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        self.assertFalse(wrong)

    def test_fork(self):
        X = banana(100, 5)
        expected = self.model.score_samples(X)

        def work(queue):
            queue.put(np.array_equal(self.model.score_samples(X), expected))

        context = multiprocessing.get_context("fork")
        queue = context.Queue()
        worker = context.Process(target=work, args=(queue,))
        worker.start()
        self.assertTrue(queue.get(timeout=60))
        worker.join(60)
        self.assertEqual(worker.exitcode, 0)
        self.assertTrue(np.array_equal(self.model.score_samples(X), expected))

    def test_memory(self):
        model = hollownet.Density(model="maf", flows=1, hidden=4, iters=2).fit(banana(50))
        X, before = banana(2, 5), 0
        for rounds in (2000, 100000):
            for _ in range(rounds):
                model.score_samples(X)
            size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            before = before or size
        self.assertLess(size - before, 2000)  # KB

    def test_interrupt(self):
        """Ctrl-C leaves the best model so far in the estimator, and raises."""
        model = hollownet.Density(iters=10**6, random_state=0, members="flow")
        timer = threading.Timer(2, lambda: os.kill(os.getpid(), signal.SIGINT))
        begun = time.monotonic()
        timer.start()
        try:
            with self.assertRaises(KeyboardInterrupt):
                model.fit(banana())
        finally:
            timer.cancel()
        self.assertLess(time.monotonic() - begun, 30)
        self.assertEqual(model.score_samples(banana(5)).shape, (5,))
        self.assertLess(model.n_iter_, 10**6)
        self.assertIs(signal.getsignal(signal.SIGINT), signal.default_int_handler)

    def test_checkpoint(self):
        """A fit that was interrupted and resumed ends in the same bytes."""

        def make():
            return hollownet.Density(
                model="realnvp", iters=10000, batch=32, hidden=8, patience=100000, random_state=1, members="flow"
            )

        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "state")
            timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
            timer.start()
            try:
                make().fit(banana(), checkpoint=path)
                timer.cancel()
                self.skipTest("training ended before the interruption")
            except KeyboardInterrupt:
                pass
            model = make().fit(banana(), checkpoint=path, resume=True)
        self.assertEqual(model.to_bytes(), make().fit(banana()).to_bytes())


class TestKeywords(unittest.TestCase):
    def test_methods(self):
        """No keyword argument, which becomes an attribute, hides a method."""
        for estimator in (hollownet.Density, hollownet.OutlierDetector, hollownet.SDE, hollownet.VAE):
            hidden = [name for name in estimator().get_params() if callable(getattr(estimator, name, None))]
            self.assertEqual(hidden, [], estimator.__name__)

    def test_forms(self):
        """A drift and a diffusion as expressions."""
        t, X, groups = paths()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = hollownet.SDE(drift_form="x1 = -k*x1", diffusion_form="x1 = s", iters=2).fit(t, X, groups)
        slope = (model.drift([[1.0]]) - model.drift([[0.0]])).item()
        self.assertAlmostEqual(model.drift([[2.0]]).item(), 2 * slope, places=4)


class TestSDE(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.t, cls.X, cls.groups = paths()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            cls.model = hollownet.SDE(iters=20, random_state=1).fit(cls.t, cls.X, cls.groups)

    def test_too_few_steps(self):
        with self.assertRaisesRegex(hollownet.InvalidError, "only 1 step"):
            hollownet.SDE(iters=20).fit([0.0, 1.0], [[1.0], [2.0]])
        X = np.column_stack([self.X[:, 0], 2 * self.X[:, 0]])
        with self.assertRaisesRegex(hollownet.InvalidError, "'x1' and 'x2' are linear functions of each other"):
            hollownet.SDE(iters=20).fit(self.t, X, self.groups)

    def test_evaluation(self):
        model, X, t = self.model, self.X, self.t
        for values in (model.drift(X, t), model.diffusion(X, t), model.score_gradient(X, t)):
            self.assertEqual(values.shape, X.shape)
            self.assertTrue(np.isfinite(values).all())
        for values in (model.log_prob(X, t), model.residual(X, t)):
            self.assertEqual(values.shape, (len(X),))
        step = 1e-3
        slope = (model.log_prob(X + step, t) - model.log_prob(X - step, t)) / (2 * step)
        np.testing.assert_allclose(slope, model.score_gradient(X, t)[:, 0], atol=0.05, rtol=0.02)
        self.assertTrue(np.array_equal(model.drift(X[:2]), model.drift(X[:2], self.model._model.times[0])))

    def test_bands(self):
        """Around the values; none without replicates, with a sentence."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = hollownet.SDE(bands=20, iters=20, random_state=1).fit(self.t, self.X, self.groups)
            without = hollownet.SDE(bands=0, iters=2).fit(self.t, self.X, self.groups)
        bands = model.confidence_bands(self.X, self.t)
        for low, value, high in (
            (bands.drift_low, model.drift(self.X, self.t), bands.drift_high),
            (bands.diffusion_low, model.diffusion(self.X, self.t), bands.diffusion_high),
        ):
            self.assertEqual(low.shape, self.X.shape)
            self.assertTrue((low <= value).all() and (value <= high).all() and (low < high).any())
        self.assertTrue(bands.inside.mean() > 0.9)
        self.assertFalse(model.confidence_bands([[1e6]]).inside.any())
        with self.assertRaises(hollownet.UnsupportedError):
            without.confidence_bands(self.X)

    def test_bands_of_networks(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = hollownet.SDE(form="network", method="pseudo-ml", iters=40, hidden=8, bands=2, random_state=0)
            model.fit(self.t, self.X, self.groups)
        bands = model.confidence_bands(self.X, self.t)
        drift, diffusion = model.drift(self.X, self.t), model.diffusion(self.X, self.t)
        self.assertTrue((bands.drift_low < drift).all() and (drift < bands.drift_high).all())
        self.assertTrue((bands.diffusion_low < diffusion).all() and (diffusion < bands.diffusion_high).all())
        self.assertTrue(bands.inside.all())

    def test_simulation(self):
        t, x = self.model.simulate(4, t0=0.1, t1=0.5, steps=10, random_state=1)
        self.assertEqual((t.shape, x.shape), ((11,), (4, 11, 1)))
        more = self.model.simulate(6, t0=0.1, t1=0.5, steps=10, random_state=1)[1]
        self.assertTrue(np.array_equal(more[:4], x))
        t, x, share = self.model.bridge([0.1, 0.3, 0.4], [[1.5], [1.2], [1.0]], 7, steps=2, random_state=1)
        np.testing.assert_allclose(t, [0.1, 0.2, 0.3, 0.35, 0.4])
        self.assertEqual((x.shape, share.shape), ((7, 5, 1), (2,)))
        self.assertTrue((x[:, [0, 2, 4], 0] == [1.5, 1.2, 1.0]).all() and (share > 0).all() and x[:, 1, 0].std() > 0)
        with self.assertRaises(ValueError):
            self.model.bridge([0.1], [[1.5]])
        started = self.model.simulate(start=[[1.5]], steps=4)[1]
        self.assertEqual(started[0, 0, 0], 1.5)
        self.assertEqual(self.model.sample([0.1, 0.2], random_state=1).shape, (2, 1))

    def test_copies(self):
        for other in (pickle.loads(pickle.dumps(self.model)), hollownet.SDE.from_bytes(self.model.to_bytes())):
            self.assertTrue(np.array_equal(other.drift(self.X), self.model.drift(self.X)))

    def test_report(self):
        report = self.model.report(self.t, self.X, self.groups)
        self.assertEqual(report.numbers["kind"], "sde")
        self.assertEqual(report.numbers["rows"], len(self.X))
        self.assertIn("Drift and diffusion", report.html)

    def test_judge(self):
        result = self.model.judge(self.t, self.X, self.groups)
        self.assertIn(result["verdict"], ("consistent", "contradicted", "not determined"))
        self.assertEqual(result["trajectories"], 30)
        self.assertGreater(len(result["groups"]), 1)

    def test_wrong_arguments(self):
        wrong = [
            lambda: self.model.drift(self.X[:, [0, 0]]),
            lambda: self.model.drift(self.X, self.t[:3]),
            lambda: self.model.simulate(t0=1, t1=0),
            lambda: self.model.simulate(method="nothing"),
            lambda: hollownet.SDE().fit(self.t[:3], self.X),
            lambda: hollownet.SDE().fit(self.t, self.X, self.groups[:3]),
            lambda: hollownet.SDE().fit(self.t, np.ones_like(self.X), self.groups),
            lambda: hollownet.SDE(method="nothing").fit(self.t, self.X),
            lambda: hollownet.SDE().drift(self.X),
            lambda: hollownet.SDE.from_bytes(b"nothing"),
        ]
        for i, call in enumerate(wrong):
            with self.assertRaises(ValueError, msg=str(i)) as caught:
                call()
            self.assertGreater(len(str(caught.exception)), 10, msg=str(i))
        with self.assertRaises(TypeError):
            hollownet.SDE(itres=1)


class TestVAE(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        rng = np.random.default_rng(0)
        cls.X = (rng.random((200, 9)) < 1 / (1 + np.exp(-3 * rng.normal(size=(200, 1))))).astype(np.uint8)
        cls.model = hollownet.VAE(latent=2, iters=60, net="linear", posterior="planar", random_state=1).fit(cls.X)

    def test_numbers(self):
        model, X = self.model, self.X
        numbers = model.evaluate(X, samples=2, importance=20, random_state=1)
        self.assertAlmostEqual(numbers["elbo"], numbers["rows"]["elbo"].mean(), places=9)
        self.assertGreater(numbers["iwae"], numbers["elbo"])
        rows = np.unique(X, axis=0)
        self.assertTrue(np.array_equal(model.score_samples(rows)[5:9], model.score_samples(rows[5:9])))
        again = model.score_samples(np.vstack([rows, rows]))
        self.assertTrue(np.array_equal(again[: len(rows)], model.score_samples(rows)))
        self.assertFalse(np.any(again[: len(rows)] == again[len(rows) :]))
        self.assertEqual(model.transform(X).shape, (200, 2))
        self.assertEqual(model.decode(model.encode(X)).shape, X.shape)
        self.assertTrue(np.array_equal(model.reconstruct(X, 3), model.decode(model.encode(X, 3))))
        self.assertEqual(model.sample(3).shape, (3, 9))
        self.assertTrue(np.isfinite(model.validation_loss_))
        images = hollownet.VAE(latent=2, iters=2, net="linear").fit(X.reshape(200, 3, 3))
        self.assertEqual(images.n_features_in_, 9)

    def test_report(self):
        report = self.model.report(self.X)
        self.assertEqual(report.numbers["kind"], "vae")
        self.assertIn("latent columns are active", report.html)

    def test_copies(self):
        for other in (pickle.loads(pickle.dumps(self.model)), hollownet.VAE.from_bytes(self.model.to_bytes())):
            self.assertTrue(np.array_equal(other.transform(self.X), self.model.transform(self.X)))

    def test_wrong_arguments(self):
        wrong = [
            lambda: self.model.transform(self.X[:, :3]),
            lambda: self.model.decode(np.ones((2, 5))),
            lambda: self.model.sample(0),
            lambda: hollownet.VAE().fit(self.X[:3]),
            lambda: hollownet.VAE(posterior="nothing").fit(self.X),
            lambda: hollownet.VAE(net="linear").fit(self.X + 0.5),
            lambda: hollownet.VAE().sample(1),
            lambda: hollownet.VAE.from_bytes(b"nothing"),
        ]
        for i, call in enumerate(wrong):
            with self.assertRaises(ValueError, msg=str(i)):
                call()


if __name__ == "__main__":
    unittest.main()
