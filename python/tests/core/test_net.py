"""Networks: derivatives, gradients, parameters, bytes, threads, fork, wrong arguments."""

import copy
import multiprocessing
import os
import pickle
import resource
import tempfile
import threading
import unittest

import hollownet
import numpy as np


def make(**more):
    return hollownet.Net(3, time=True, context=2, dtype="float64", seed=1, features=4, hidden=6, width=5, **more)


def inputs(rows=5, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(rows, 3)), rng.random(rows), rng.normal(size=(rows, 2))


class TestNet(unittest.TestCase):
    def test_derivatives(self):
        net, (x, t, c), step = make(), inputs(), 1e-4
        f, d, divergence = net.eval(x, t, c, order=2)
        self.assertTrue(np.array_equal(f, net(x, t, c)))
        for i in range(3):
            up, down = x.copy(), x.copy()
            up[:, i] += step
            down[:, i] -= step
            fu, fd = net(up, t, c)[:, i], net(down, t, c)[:, i]
            np.testing.assert_allclose(d[0][:, i], (fu - fd) / (2 * step), atol=1e-7)
            np.testing.assert_allclose(d[1][:, i], (fu - 2 * f[:, i] + fd) / step**2, atol=1e-6)
        np.testing.assert_allclose(divergence, d[0].sum(axis=1), rtol=1e-13)

    def test_vjp(self):
        net, (x, t, c) = make(), inputs()
        rng = np.random.default_rng(1)
        gf, gd, gdiv = rng.normal(size=x.shape), rng.normal(size=(2, *x.shape)), rng.normal(size=len(x))

        def loss():
            f, d, divergence = net.eval(x, t, c, order=2)
            return (gf * f).sum() + (gd * d).sum() + (gdiv * divergence).sum()

        g = net.vjp(x, t, c, gf=gf, gd=gd, gdivergence=gdiv)
        pairs = [(x, g.x), (t, g.t), (c, g.context)]
        pairs += [(value, g.parameters[name]) for name, value in net.parameters.items()]
        masks = net.masks
        names = [None, None, None, *net.parameters]
        for name, (value, gradient) in zip(names, pairs):
            at = tuple(rng.integers(0, n) for n in value.shape)
            if name in masks:
                at = tuple(np.argwhere(masks[name])[rng.integers(0, masks[name].sum())])
            before, losses = value[at], []
            for sign in (1, -1):
                value[at] = before + sign * 1e-5
                losses.append(loss())
            value[at] = before
            self.assertAlmostEqual((losses[0] - losses[1]) / 2e-5, gradient[at], delta=1e-6, msg=str(name))

    def test_rows_alone(self):
        net, (x, t, c) = make(), inputs(40)
        f, d, _ = net.eval(x, t, c)
        for r in (0, 17, 39):
            one = net.eval(x[r : r + 1], t[r], c[r : r + 1])
            self.assertTrue(np.array_equal(one.f[0], f[r]) and np.array_equal(one.d[0, 0], d[0, r]))
        with hollownet.threads(3):
            self.assertEqual(hollownet.get_threads(), 3)
            other = make()
        self.assertTrue(np.array_equal(other.eval(x, t, c).f, f))

    def test_bytes(self):
        net, (x, t, c) = make(), inputs()
        f = net(x, t, c)
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "net.hollow")
            net.save(path)
            with open(path, "rb") as file:
                self.assertEqual(file.read(), net.to_bytes())
            copies = [hollownet.Net.load(path), pickle.loads(pickle.dumps(net)), copy.deepcopy(net), copy.copy(net)]
        for other in copies:
            self.assertTrue(np.array_equal(other(x, t, c), f))
        copies[0].parameters["transformer.1.weight"][...] = 0
        self.assertTrue(np.array_equal(net(x, t, c), f))

    def test_parameters(self):
        net = make()
        views = net.parameters
        self.assertEqual(
            sum(m.sum() for m in net.masks.values()) + sum(v.size for n, v in views.items() if n not in net.masks),
            net.size,
        )
        for name, mask in net.masks.items():
            self.assertTrue((views[name][~mask] == 0).all() and (views[name][mask] != 0).all(), name)
        net.set_parameters({name: np.ones(value.shape) for name, value in views.items()})
        net.to_bytes()  # entries under a mask stayed zero, or this would fail
        views["transformer.1.weight"][...] = np.nan
        with self.assertRaises(hollownet.SolveError) as caught:
            net.to_bytes()
        self.assertIn("is NaN", str(caught.exception))
        del net
        self.assertTrue(np.isnan(views["transformer.1.weight"]).all())  # the memory is still there

    def test_wrong_arguments(self):
        net, (x, t, c) = make(), inputs()
        wrong = [
            lambda: net.eval(x[:, :2], t, c),
            lambda: net.eval(x[0], t, c),
            lambda: net.eval(x, t[:2], c),
            lambda: net.eval(x, t, c[:, :1]),
            lambda: net.eval(x, None, c),
            lambda: net.eval(x, t),
            lambda: net.vjp(x, t, c, gf=x[:2]),
            lambda: net.eval("text", t, c),
            lambda: hollownet.Net(0),
            lambda: hollownet.Net(-1),
            lambda: hollownet.Net(2.5),
            lambda: hollownet.Net(3, conditioner="nothing"),
            lambda: hollownet.Net(3, order=[0, 0, 1]),
            lambda: hollownet.Net(3, dtype="int8"),
            lambda: hollownet.Net(3, threads=0),
            lambda: hollownet.Net.from_bytes(b""),
            lambda: hollownet.Net.from_bytes(b"x" * 100),
            lambda: hollownet.Net.from_bytes(net.to_bytes()[:-1]),
        ]
        for i, call in enumerate(wrong):
            with self.assertRaises(ValueError, msg=str(i)) as caught:
                call()
            self.assertGreater(len(str(caught.exception)), 10, msg=str(i))
        with self.assertRaises(OSError):
            hollownet.Net.load("/nowhere/net.hollow")
        self.assertEqual(net.eval(x[:0], t[:0], c[:0]).f.shape, (0, 3))

    def test_threads(self):
        x, t, c = inputs(200)
        expected = make().eval(x, t, c, order=2)
        shared, wrong = make(threads=2), []

        def work():
            own = make(threads=1)
            for _ in range(20):
                for net in (own, shared):
                    got = net.eval(x, t, c, order=2)
                    if not all(np.array_equal(a, b) for a, b in zip(got, expected)):
                        wrong.append(1)

        workers = [threading.Thread(target=work) for _ in range(8)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        self.assertFalse(wrong)

    def test_fork(self):
        x, t, c = inputs(200)
        net = make(threads=2)
        expected = net.eval(x, t, c).f
        net.vjp(x, t, c, gf=x)

        def work(queue):
            same = np.array_equal(net.eval(x, t, c).f, expected) and np.array_equal(
                pickle.loads(pickle.dumps(net)).eval(x, t, c).f, expected
            )
            queue.put(same)

        context = multiprocessing.get_context("fork")
        queue = context.Queue()
        workers = [context.Process(target=work, args=(queue,)) for _ in range(2)]
        for worker in workers:
            worker.start()
        self.assertEqual([queue.get(timeout=60) for _ in workers], [True, True])
        for worker in workers:
            worker.join(60)
            self.assertEqual(worker.exitcode, 0)
        self.assertTrue(np.array_equal(net.eval(x, t, c).f, expected))

    def test_memory(self):
        net, (x, t, c) = make(), inputs()
        for rounds in (2000, 10000):
            for _ in range(rounds):
                net.eval(x, t, c)
            size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            if rounds == 2000:
                before = size
        self.assertLess(size - before, 2000)  # KB
        for rounds in (20, 100):
            for _ in range(rounds):
                make().vjp(x, t, c, gf=x)
            size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            if rounds == 20:
                before = size
        self.assertLess(size - before, 4000)


class TestOde(unittest.TestCase):
    def test_function(self):
        times = np.linspace(0, 2, 5)
        y = hollownet.odeint(lambda t, y: -2 * t[:, None] * y**2, [[1.0], [0.5]], times, rtol=1e-10, atol=1e-12)
        self.assertEqual(y.shape, (5, 2, 1))
        np.testing.assert_allclose(y[:, 0, 0], 1 / (1 + times**2), atol=1e-9)
        back = hollownet.odeint(lambda t, y: -2 * t[:, None] * y**2, y[-1], times[::-1], method="dopri8", rtol=1e-10)
        np.testing.assert_allclose(back[-1], [[1.0], [0.5]], atol=1e-8)
        stiff = hollownet.odeint(lambda t, y: -50 * (y - np.cos(t)[:, None]), [0.0], [0, 1.5], method="bdf-functional")
        self.assertAlmostEqual(stiff[-1, 0], (2500 * np.cos(1.5) + 50 * np.sin(1.5)) / 2501, delta=1e-4)

    def test_gradient_of_function(self):
        rate = np.array([0.3, -0.7])
        rng = np.random.default_rng(0)
        y0, times = rng.normal(size=(3, 2)), [0, 0.5, 1.3]

        def f(t, y):
            return np.sin(y) * rate + t[:, None]

        def vjp(t, y, w):
            return w * np.cos(y) * rate, (w * np.sin(y)).sum(axis=0)

        options = dict(rtol=1e-10, atol=1e-12)
        y, pull = hollownet.odeint(f, y0, times, gradient=True, vjp=vjp, parameters=2, **options)
        gy = rng.normal(size=y.shape)
        g, gparam = pull(gy)

        def loss():
            return (gy * hollownet.odeint(f, y0, times, **options)).sum()

        for value, gradient in ((y0, g), (rate, gparam)):
            for at in np.ndindex(value.shape):
                before, losses = value[at], []
                for sign in (1, -1):
                    value[at] = before + sign * 1e-5
                    losses.append(loss())
                value[at] = before
                self.assertAlmostEqual((losses[0] - losses[1]) / 2e-5, gradient[at], delta=1e-6)

    def test_network(self):
        net = hollownet.Net(3, time=True, context=1, dtype="float64", seed=2)
        rng = np.random.default_rng(0)
        y0, c, times = rng.normal(size=(4, 3)), rng.normal(size=(4, 1)), [0, 0.5, 1.0]
        y, pull = hollownet.odeint(net, y0, times, context=c, rtol=1e-9, atol=1e-9, gradient=True)
        same = hollownet.odeint(lambda t, y, i: net(y, t, c[i]), y0, times, rtol=1e-9, atol=1e-9, index=True)
        np.testing.assert_allclose(y, same, atol=1e-8)
        gy = rng.normal(size=y.shape)
        g, gparam = pull(gy)
        weight = net.parameters["transformer.1.weight"]
        for value, gradient in ((y0, g), (weight, gparam["transformer.1.weight"])):
            before, losses = value[1, 2], []
            for sign in (1, -1):
                value[1, 2] = before + sign * 1e-5
                losses.append((gy * hollownet.odeint(net, y0, times, context=c, rtol=1e-11, atol=1e-11)).sum())
            value[1, 2] = before
            self.assertAlmostEqual((losses[0] - losses[1]) / 2e-5, gradient[1, 2], delta=1e-5)

    def test_wrong(self):
        def broken(t, y):
            raise KeyError("mine")

        with self.assertRaises(KeyError):
            hollownet.odeint(broken, [1.0], [0, 1])
        wrong = [
            lambda: hollownet.odeint(lambda t, y: y[:, :1], [1.0, 2.0], [0, 1]),
            lambda: hollownet.odeint(lambda t, y: y, [1.0], [0, 1], method="nothing"),
            lambda: hollownet.odeint(lambda t, y: y, [1.0], [0, 1], gradient=True),
            lambda: hollownet.odeint(lambda t, y: y, [1.0], []),
            lambda: hollownet.odeint(lambda t, y: y, [], [0, 1]),
            lambda: hollownet.odeint(hollownet.Net(2), [1.0], [0, 1]),
        ]
        for i, call in enumerate(wrong):
            with self.assertRaises(ValueError, msg=str(i)):
                call()
        with self.assertRaises(hollownet.SolveError):
            hollownet.odeint(lambda t, y: y**2, [1.0], [0, 2])
        self.assertIn("dopri5", hollownet.methods())


if __name__ == "__main__":
    unittest.main()
