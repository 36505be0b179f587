"""The Gray-Scott model of two substances that react and spread, on a periodic cube.

    du/dt = D_u lap(u) - u v^2 + F (1 - u)
    dv/dt = D_v lap(v) + u v^2 - (F + k) v

Explicit Euler steps; the Laplacian is the mean of the six neighbours less the value (Pearson,
Complex patterns in a simple system, Science 261, 1993, in three dimensions). A step of some planes
needs one more plane on each side: `advance` takes planes with as many to spare as there are steps,
and returns those in the middle. Every value is computed by the same operations in the same order
however the cube is cut, so every cut gives the same bytes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Field = npt.NDArray[np.float32]

SPREAD_U, SPREAD_V = np.float32(0.2), np.float32(0.1)
FEED, KILL = np.float32(0.025), np.float32(0.055)
STEP = np.float32(1.0)
NONE = np.float32(1e-12)
"""Less of v is taken for none: numbers too small to be normal cost many times as much."""


class State(NamedTuple):
    """Both substances on some planes of the cube: arrays of shape (planes, side, side)."""

    u: Field
    v: Field


def first_state(side: int) -> State:
    """Return the whole cube at the beginning: u everywhere, v in a few blocks in the middle."""
    random = np.random.default_rng(7)
    u = np.ones((side, side, side), np.float32)
    v = np.zeros_like(u)
    half = max(1, side // 16)
    for _ in range(12):
        z, y, x = random.integers(side // 4, side - side // 4, size=3)
        block = np.s_[z - half : z + half, y - half : y + half, x - half : x + half]
        u[block], v[block] = 0.25, 0.33
    u += random.uniform(-0.01, 0.01, u.shape).astype(np.float32)
    return State(u, v)


def _laplacian(field: Field) -> Field:
    """Return the mean of the six neighbours less the value, on the inner planes."""
    inner = field[1:-1]
    total = field[:-2] + field[2:]
    for axis in (1, 2):
        total += np.roll(inner, 1, axis)
        total += np.roll(inner, -1, axis)
    total *= np.float32(1 / 6)
    total -= inner
    return total


def _step(state: State) -> State:
    """Return the inner planes one step later."""
    u, v = state.u[1:-1], state.v[1:-1]
    reaction = u * v
    reaction *= v
    du = _laplacian(state.u)
    du *= SPREAD_U
    du -= reaction
    du += FEED * (np.float32(1.0) - u)
    dv = _laplacian(state.v)
    dv *= SPREAD_V
    dv += reaction
    dv -= (FEED + KILL) * v
    next_v = v + STEP * dv
    next_v[next_v < NONE] = 0
    return State(u + STEP * du, next_v)


def advance(state: State, steps: int) -> State:
    """Return the state so many steps later, without the outer `steps` planes on each side."""
    for _ in range(steps):
        state = _step(state)
    return state


def wrapped(state: State, planes: int) -> State:
    """Return the whole cube with so many planes of its other end on each side."""
    u, v = (np.concatenate([f[-planes:], f, f[:planes]]) for f in state)
    return State(u, v)
