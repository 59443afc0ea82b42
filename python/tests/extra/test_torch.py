"""Networks in torch: gradient checks, training, moving between processes."""

import copy
import pickle

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import hollownet  # noqa: E402
import hollownet.torch  # noqa: E402


def make(**more):
    sizes = dict(features=4, hidden=5, width=4, seed=1)
    return hollownet.torch.HollowNet(dim=3, time=True, context=2, dtype="float64", **sizes, **more)


def inputs(rows=4):
    torch.manual_seed(0)
    shapes = [(rows, 3), (rows,), (rows, 2)]
    return [torch.randn(*shape, dtype=torch.float64, requires_grad=True) for shape in shapes]


def test_inputs():
    net = make()
    assert torch.autograd.gradcheck(lambda x, t, c: net(x, t, c, order=2), inputs())
    assert torch.autograd.gradcheck(lambda x, t, c: net(x, t, c, order=0), inputs())


def test_parameters():
    net, (x, t, c) = make(), inputs()

    def outputs(*values):
        return torch.func.functional_call(net, dict(zip(dict(net.named_parameters()), values)), (x, t, c), {"order": 2})

    assert torch.autograd.gradcheck(outputs, tuple(net.parameters()))


def test_same_numbers():
    net, (x, t, c) = make(), inputs()
    f, d, divergence = net(x, t, c)
    expected = net.write_back().eval(x.detach().numpy(), t.detach().numpy(), c.detach().numpy())
    for got, want in zip((f, d, divergence), expected):
        assert np.array_equal(got.detach().numpy(), want)


def test_training():
    net = hollownet.torch.HollowNet(dim=2, hidden=16, width=16, seed=3)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    torch.manual_seed(0)
    x = torch.randn(256, 2)
    target = torch.stack([torch.sin(x[:, 0]) + x[:, 1], x[:, 0] * x[:, 1]], dim=1)
    losses = []
    for _ in range(150):
        optimizer.zero_grad()
        f, d, _ = net(x)
        loss = ((f - target) ** 2).mean() + 0.1 * (
            (d[0] - torch.stack([torch.cos(x[:, 0]), x[:, 0]], dim=1)) ** 2
        ).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.1 * losses[0]
    net.write_back().to_bytes()  # masked entries stayed zero


def test_second_derivatives_are_refused():
    net, (x, t, c) = make(), inputs()
    with pytest.raises(NotImplementedError, match="second derivatives"):
        torch.autograd.grad(net(x, t, c)[2].sum(), x, create_graph=True)


def test_copies():
    net, (x, t, c) = make(), inputs()
    expected = net(x, t, c)[0]
    for other in (pickle.loads(pickle.dumps(net)), copy.deepcopy(net)):
        assert torch.equal(other(x, t, c)[0], expected)
    other = make()
    other.load_state_dict(net.state_dict())
    assert torch.equal(other(x, t, c)[0], expected)


def test_wrong():
    net, (x, t, c) = make(), inputs()
    with pytest.raises(TypeError):
        net(x.float(), t, c)
    with pytest.raises(ValueError):
        net(x[:, :2], t, c)
