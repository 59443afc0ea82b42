"""Keyword arguments and their documentation from the library's tables of options."""

from __future__ import annotations

import ctypes
import difflib
import inspect
import keyword
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from . import _abi as abi
from ._library import Context, Handle, lib

_TYPES = {
    abi.HL_OPTION_FLAG: "bool",
    abi.HL_OPTION_INTEGER: "int",
    abi.HL_OPTION_REAL: "float",
    abi.HL_OPTION_TEXT: "str",
    abi.HL_OPTION_CHOICE: "str",
}


class Option(NamedTuple):
    """A row of a table of options."""

    name: str  #: as the library and the program call it, such as "ode-steps"
    keyword: str  #: as a keyword argument, such as ode_steps
    kind: int
    choices: tuple[str, ...]
    otherwise: str
    help: str
    applies: str


def read_table(name: str, renamed: dict[str, str] | None = None) -> list[Option]:
    """The options of a job, by the name of the function that returns its table; `renamed`: keywords that would hide a method."""
    table = getattr(lib, name)()
    options: list[Option] = []
    while table[len(options)].name:
        row = table[len(options)]
        choices: list[str] = []
        while row.choices and row.choices[len(choices)]:
            choices.append(row.choices[len(choices)].decode())
        text = row.name.decode()
        texts = [(t or b"").decode() for t in (row.otherwise, row.help, row.applies)]
        name_here = {"seed": "random_state", **(renamed or {})}.get(text, text.replace("-", "_"))
        if keyword.iskeyword(name_here):  # as lambda
            name_here += "_"
        options.append(Option(text, name_here, row.kind, tuple(choices), *texts))
    return options


def document(options: list[Option]) -> str:
    """The section "Parameters" of a docstring."""
    lines = []
    for option in options:
        kind = _TYPES[option.kind]
        if option.choices:
            kind = "{" + ", ".join(f'"{choice}"' for choice in option.choices) + "}"
        if option.keyword == "random_state":
            kind = "int, or a generator of numpy"
        lines.append(f"{option.keyword} : {kind}, optional")
        text = option.help[:1].upper() + option.help[1:]
        if option.otherwise:
            text += f". Default: {option.otherwise}"
        if option.applies:
            text += f". With {option.applies.replace('|', ' or ')}"
        lines.append(f"    {text}.")
    return "\n".join(lines)


def constructor(parameters: dict[str, Any]) -> Callable[..., None]:
    """An __init__ that takes these keyword arguments, and shows them in its signature."""

    def __init__(self: Any, **given: Any) -> None:
        for name in given:
            if name not in parameters:
                near = difflib.get_close_matches(name, parameters, n=1)
                hint = f"; did you mean {near[0]!r}?" if near else f"; it takes {', '.join(parameters)}"
                raise TypeError(f"{type(self).__name__} has no parameter {name!r}{hint}")
        for name, default in parameters.items():
            setattr(self, name, given.get(name, default))

    kind = inspect.Parameter.KEYWORD_ONLY
    shown = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    shown += [inspect.Parameter(name, kind, default=default) for name, default in parameters.items()]
    __init__.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    return __init__


def _text(option: Option, value: Any) -> str:
    """A value as the library's table spells it."""
    if option.kind == abi.HL_OPTION_FLAG:
        if isinstance(value, (bool, np.bool_)):
            return "on" if value else "off"
        raise TypeError(f"{option.keyword} must be True or False, but it is {value!r}")
    if option.kind == abi.HL_OPTION_INTEGER:
        if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
            return str(int(value))
        if isinstance(value, (float, np.floating)) and float(value).is_integer():
            return str(int(value))
        raise TypeError(f"{option.keyword} must be an integer, but it is {value!r}")
    if option.kind == abi.HL_OPTION_REAL:
        if isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool):
            return repr(float(value))
        raise TypeError(f"{option.keyword} must be a number, but it is {value!r}")
    if isinstance(value, (int, float)) and not isinstance(value, bool):  # such as validation_share="none"
        return repr(value)
    if isinstance(value, str):
        return value
    raise TypeError(f"{option.keyword} must be a text, but it is {value!r}")


def make_settings(context: Context, table: str, options: list[Option], values: dict[str, Any]) -> Handle:
    """The library's settings with the values that are not None; an error names the keyword."""
    create, free = lib.hl_settings_create, lib.hl_settings_free
    settings = Handle(context, create, free, context.handle, ctypes.cast(getattr(lib, table)(), ctypes.c_void_p))
    for option in options:
        value = values.get(option.keyword)
        if value is not None:
            context.check(lib.hl_settings_set(settings.value, option.name.encode(), _text(option, value).encode()))
    return settings
