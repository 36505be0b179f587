"""What a call needs to know of a function's parameters, made once at decoration.

No call looks at a signature again, unless it is wrong or leaves out a parameter with a direction.
"""

from __future__ import annotations

import builtins
import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from alongside.directions import NAMES, Direction, found_in
from alongside.errors import DirectionError

_MENTIONS = re.compile(r"\b(" + "|".join(NAMES) + r")\b")

ANY_NUMBER = 1 << 30


class Parameter(NamedTuple):
    """One parameter with a direction."""

    name: str
    position: int  # position, or -1 when it can only be given by name
    direction: Direction
    variadic: bool  # *paths: every further positional argument is one

    @property
    def path(self) -> bool:
        """Whether its arguments are paths."""
        return self.direction.path


class Table:
    """A function's parameters as calls use them."""

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        self.name = name
        try:
            self.signature: inspect.Signature | None = inspect.signature(function)
        except (TypeError, ValueError):  # some functions written in C do not say
            self.signature = None
        self.least, self.most = _counts(self.signature)
        self.directed = _directed(function, self.signature, name)
        self.plain = not self.directed

    def check(self, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        """Refuse a call that the function itself would refuse."""
        if self.signature is not None and (kwargs or not self.least <= len(args) <= self.most):
            try:
                self.signature.bind(*args, **kwargs)
            except TypeError as error:
                raise TypeError(f"{self.name}(): {error}") from None

    def complete(
        self, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> tuple[list[Any], dict[str, Any]]:
        """The same call, with the defaults of directed parameters that it left out."""
        if self.signature is None:
            return list(args), kwargs
        for parameter in self.directed:
            given = parameter.variadic or parameter.name in kwargs
            if not given and not 0 <= parameter.position < len(args):
                bound = self.signature.bind(*args, **kwargs)
                bound.apply_defaults()
                return list(bound.args), dict(bound.kwargs)
        return list(args), dict(kwargs)

    def argument_names(self, args: Sequence[Any]) -> list[str]:
        """The parameter that each positional argument goes to, for messages."""
        names: list[str] = []
        rest = None
        for parameter in self.signature.parameters.values() if self.signature else ():
            if parameter.kind is parameter.VAR_POSITIONAL:
                rest = parameter.name
            elif parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
                names.append(parameter.name)
        while len(names) < len(args):
            names.append(f"{rest or 'argument '}[{len(names)}]")
        return names


def _counts(signature: inspect.Signature | None) -> tuple[int, int]:
    """How many positional arguments a call without keywords may have, least and most."""
    if signature is None:
        return 0, ANY_NUMBER
    least = most = 0
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            most = ANY_NUMBER
        elif parameter.kind is parameter.KEYWORD_ONLY:
            if parameter.default is parameter.empty:
                least = ANY_NUMBER  # never fits without keywords: the slow way says what is wrong
        elif parameter.kind is not parameter.VAR_KEYWORD:
            most += 1
            if parameter.default is parameter.empty:
                least += 1
    return least, most


def _directed(
    function: Callable[..., Any], signature: inspect.Signature | None, name: str
) -> tuple[Parameter, ...]:
    if signature is None:
        return ()
    directed = []
    for position, parameter in enumerate(signature.parameters.values()):
        found = found_in(_annotation(function, parameter, name))
        if len(found) > 1:
            both = " and ".join(direction.name for direction in found)
            raise DirectionError(
                f"{name}(): parameter {parameter.name!r} has two directions, {both}; give it one"
            )
        if not found:
            continue
        if parameter.kind is parameter.VAR_KEYWORD:
            raise DirectionError(
                f"{name}(): **{parameter.name} cannot have the direction {found[0].name}; "
                "name the parameters that need one"
            )
        by_name = parameter.kind is parameter.KEYWORD_ONLY
        variadic = parameter.kind is parameter.VAR_POSITIONAL
        directed.append(Parameter(parameter.name, -1 if by_name else position, found[0], variadic))
    if signature.return_annotation is not signature.empty:
        returned = _evaluated(function, signature.return_annotation)
        if found_in(returned):
            raise DirectionError(
                f"{name}(): what it returns cannot have the direction "
                f"{found_in(returned)[0].name}; directions are for parameters"
            )
    return tuple(directed)


def _annotation(function: Callable[..., Any], parameter: inspect.Parameter, name: str) -> Any:
    if parameter.annotation is parameter.empty:
        return None
    annotation = _evaluated(function, parameter.annotation)
    if isinstance(annotation, str) and _MENTIONS.search(annotation):
        raise DirectionError(
            f"{name}(): the annotation {annotation!r} of parameter {parameter.name!r} cannot be "
            "read; names in it must exist when the function is decorated "
            f"(directions: {', '.join('alongside.' + one for one in NAMES)})"
        )
    return annotation


def _evaluated(function: Callable[..., Any], annotation: Any) -> Any:
    """The annotation as a value; its text if a name in it does not exist yet."""
    if not isinstance(annotation, str):
        return annotation
    inner = inspect.unwrap(function)
    scope = dict(vars(builtins))
    scope.update(getattr(inner, "__globals__", {}))
    code = getattr(inner, "__code__", None)
    for cell_name, cell in zip(
        getattr(code, "co_freevars", ()), getattr(inner, "__closure__", None) or (), strict=False
    ):
        try:
            scope[cell_name] = cell.cell_contents
        except ValueError:  # not filled yet
            continue
    try:
        return eval(annotation, scope)
    except Exception:
        return annotation
