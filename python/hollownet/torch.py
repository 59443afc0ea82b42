"""Hollow networks in torch programs: an nn.Module whose f, D^k f and divergence have exact gradients.

>>> import torch, hollownet.torch
>>> net = hollownet.torch.HollowNet(dim=3, time=True)
>>> f, d, divergence = net(torch.randn(8, 3), torch.rand(8))
>>> divergence.sum().backward()
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ._net import Net


class _Operator(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, net: Net, order: int, x: Any, t: Any, context: Any, *parameters: Any) -> Any:
        net.set_parameters(dict(zip(net.parameters, (_numpy(p) for p in parameters))))
        result = net.eval(_numpy(x), _numpy(t), _numpy(context), order=order)
        ctx.net, ctx.order, ctx.device = net, order, x.device
        ctx.save_for_backward(x, t, context, *parameters)
        outputs = [result.f] if order == 0 else [result.f, result.d, result.divergence]
        return tuple(torch.from_numpy(o).to(x.device) for o in outputs)

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        if torch.is_grad_enabled():  # create_graph=True
            raise NotImplementedError(
                "a hollow network has no second derivatives in torch; D^k and the divergence are outputs: ask for them by order="
            )
        x, t, context, *parameters = ctx.saved_tensors
        net = ctx.net
        net.set_parameters(dict(zip(net.parameters, (_numpy(p) for p in parameters))))
        gf, gd, gdiv = (_numpy(c) for c in (*cotangents, None, None)[:3])
        g = net.vjp(_numpy(x), _numpy(t), _numpy(context), gf=gf, gd=gd, gdivergence=gdiv)
        results = [g.x, g.t, g.context, *g.parameters.values()]
        return None, None, *(None if r is None else torch.from_numpy(r).to(ctx.device) for r in results)


def _numpy(tensor: Any) -> Any:
    return None if tensor is None else tensor.detach().cpu().numpy()


class HollowNet(torch.nn.Module):
    """A :class:`hollownet.Net` as a module. Takes its arguments, or a network.

    The module's parameters are torch's; their dtype is the network's, float32 by default. Gradients of gradients are refused with an
    error: D^k and the divergence are outputs, not derivatives that autograd would have to take.
    """

    def __init__(self, *arguments: Any, net: Net | None = None, **keywords: Any) -> None:
        super().__init__()
        self.net = net if net is not None else Net(*arguments, **keywords)
        self.names = list(self.net.parameters)
        self.values = torch.nn.ParameterList(torch.from_numpy(p.copy()) for p in self.net.parameters.values())

    def forward(self, x: Any, t: Any = None, context: Any = None, *, order: int = 1) -> Any:
        """(f, d, divergence) as :meth:`hollownet.Net.eval` gives them; f alone if `order` is 0."""
        dtype = torch.from_numpy(np.empty(0, self.net.dtype)).dtype
        if x.dtype != dtype:
            raise TypeError(f"x has dtype {x.dtype}, but the network's is {dtype}")
        if t is not None and not torch.is_tensor(t):
            t = torch.full((len(x),), float(t), dtype=dtype, device=x.device)
        result = _Operator.apply(self.net, order, x, t, context, *self.values)
        return result[0] if order == 0 else result

    def write_back(self) -> Net:
        """Copy the module's parameters to the network, and return it, as for saving."""
        self.net.set_parameters({name: _numpy(value) for name, value in zip(self.names, self.values)})
        return self.net
