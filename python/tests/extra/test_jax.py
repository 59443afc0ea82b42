"""Networks in JAX: gradients under jit, vmap over rows."""

import numpy as np
import pytest

jax = pytest.importorskip("jax")
jax.config.update("jax_enable_x64", True)
import hollownet  # noqa: E402
import hollownet.jax  # noqa: E402
from jax.test_util import check_grads  # noqa: E402


def make(order=2):
    net = hollownet.Net(3, time=True, context=2, dtype="float64", seed=1, features=4, hidden=5, width=4)
    return net, hollownet.jax.operator(net, order), hollownet.jax.parameters(net)


def inputs(rows=6):
    rng = np.random.default_rng(0)
    return rng.normal(size=(rows, 3)), rng.random(rows), rng.normal(size=(rows, 2))


def weigh(outputs):
    rng = np.random.default_rng(1)
    return sum((rng.normal(size=part.shape) * part).sum() for part in outputs)


def test_values():
    net, apply, parameters = make()
    x, t, c = inputs()
    for function in (apply, jax.jit(apply)):
        for got, want in zip(function(parameters, x, t, c), net.eval(x, t, c, order=2)):
            assert np.array_equal(got, want)
    assert np.array_equal(make(0)[1](parameters, x, t, c), net(x, t, c))


def test_gradients():
    _, apply, parameters = make()
    x, t, c = inputs()

    def loss(*arguments):
        return weigh(apply(*arguments))

    check_grads(loss, (parameters, x, t, c), order=1, modes=["rev"], rtol=1e-5)
    plain = jax.grad(loss, argnums=(0, 1, 2, 3))(parameters, x, t, c)
    compiled = jax.jit(jax.grad(loss, argnums=(0, 1, 2, 3)))(parameters, x, t, c)
    for a, b in zip(jax.tree_util.tree_leaves(plain), jax.tree_util.tree_leaves(compiled)):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


def test_vmap():
    _, apply, parameters = make()
    x, t, c = inputs()
    f, d, divergence = apply(parameters, x, t, c)
    rows = jax.jit(jax.vmap(lambda *row: apply(parameters, *row)))(x, t, c)
    assert np.array_equal(rows[0], f) and np.array_equal(rows[2], divergence)
    assert np.array_equal(rows[1].swapaxes(0, 1), d)

    def loss(values, x, each):
        function = jax.vmap(lambda *row: apply(values, *row)) if each else lambda *rows: apply(values, *rows)
        f, _, divergence = function(x, t, c)
        return weigh((f, divergence))

    together, each = (jax.grad(loss, argnums=(0, 1))(parameters, x, mapped) for mapped in (False, True))
    for a, b in zip(jax.tree_util.tree_leaves(together), jax.tree_util.tree_leaves(each)):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


def test_many_parameters():
    """vmap over parameters, as for an ensemble."""
    _, apply, parameters = make()
    x, t, c = inputs()
    two = {name: np.stack([value, 2 * value]) for name, value in parameters.items()}
    f = jax.vmap(lambda values: apply(values, x, t, c)[0])(two)
    for i in range(2):
        assert np.array_equal(f[i], apply({name: value[i] for name, value in two.items()}, x, t, c)[0])


def test_wrong():
    _, apply, parameters = make()
    x, t, c = inputs()
    for arguments in ((x[:, :2], t, c), (x, t), (x,)):
        with pytest.raises(ValueError):
            apply(parameters, *arguments)
