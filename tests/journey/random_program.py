"""A random program, the same for the same seed: run as it stands, or as tasks under a session.

Everything that a task may be killed in the middle of is in it: chains, fans, nested futures, large
arrays, objects changed in place, files written, flushed, read and passed on. Every task may run
twice (`retries`), so a task depends on nothing but its arguments, and writes its file whole.
"""

from __future__ import annotations

import hashlib
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import alongside as al

RETRIES = 1000
VALUES_MAX = 12
ARRAY_ITEMS = 40_000
BUSY_S_MAX = 0.012
FAN_WIDTH_MAX = 40


def busy(seconds: float) -> None:
    """Use the processor, so that a kill hits running tasks."""
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


@al.task(retries=RETRIES)
def combine(one: Any, other: int, seconds: float) -> int:
    busy(seconds)
    return (digest_of(one) * 31 + other) % 1_000_003


@al.task(retries=RETRIES)
def grow(one: Any, items: int) -> np.ndarray:
    return np.arange(items, dtype=np.int64) * (digest_of(one) % 97 + 1)


@al.task(retries=RETRIES, returns=2)
def split(one: Any) -> tuple[int, np.ndarray]:
    number = digest_of(one)
    return number // 2, np.full(ARRAY_ITEMS, number % 251)


@al.task(retries=RETRIES)
def gather(parts: dict[str, list[Any]]) -> int:
    return sum(digest_of(part) for part in parts["all"]) % 1_000_003


@al.task(retries=RETRIES)
def change(state: al.InOut[dict[str, Any]], by: int, seconds: float) -> None:
    busy(seconds)
    state["sum"] = (state["sum"] * 7 + by) % 1_000_003
    state["array"][by % len(state["array"])] += by


@al.io(retries=RETRIES, durable=True)
def write(path: al.FileOut, one: Any) -> int:
    data = data_of(one)
    with al.open(path, "wb") as file:
        file.write(data)
        al.fsync(file)
    return len(data)


@al.io(retries=RETRIES)
def read(path: al.FileIn) -> bytes:
    with al.open(path, "rb") as file:
        return bytes(file.read())


@al.io(retries=RETRIES)
async def measure(path: al.FileIn) -> int:
    return Path(path).stat().st_size


def data_of(value: Any) -> bytes:
    """The bytes that a value is stored as."""
    return value.tobytes() if isinstance(value, np.ndarray) else repr(value).encode()


def digest_of(value: Any) -> int:
    """A small number that depends on all of a value."""
    return int.from_bytes(hashlib.blake2b(data_of(value), digest_size=4).digest(), "little")


@dataclass
class Program:
    """The state of a run: what later calls may take, and which files there are."""

    seed: int
    calls: int
    folder: Path
    durable: Callable[[str, bytes], None] = lambda name, data: None
    values: list[Any] = field(default_factory=lambda: [1, 2, 3])
    files: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.state = {"sum": 1, "array": np.zeros(1000, dtype=np.int64)}
        self.written: list[tuple[str, Any, Any]] = []

    def any_value(self) -> Any:
        """One of the last values; a future under a session."""
        return self.random.choice(self.values[-VALUES_MAX:])

    def run(self) -> str:
        """All calls, and a text that stands for all results."""
        steps = [
            *[self.step_combine] * 6,
            *[self.step_fan] * 2,
            self.step_grow,
            self.step_split,
            self.step_change,
            *[self.step_write] * 3,
            *[self.step_read] * 2,
        ]
        for _ in range(self.calls):
            self.random.choice(steps)()
        return self.summary()

    def step_combine(self) -> None:
        seconds = self.random.random() * BUSY_S_MAX
        self.values.append(combine(self.any_value(), self.random.randrange(1000), seconds))

    def step_fan(self) -> None:
        width = self.random.randrange(2, FAN_WIDTH_MAX)
        root = self.any_value()
        parts = [combine(root, number, 0.0) for number in range(width)]
        self.values.append(gather({"all": parts}))

    def step_grow(self) -> None:
        self.values.append(grow(self.any_value(), self.random.choice([10, 5000, ARRAY_ITEMS])))

    def step_split(self) -> None:
        self.values.extend(split(self.any_value()))

    def step_change(self) -> None:
        change(self.state, self.random.randrange(1000), self.random.random() * BUSY_S_MAX)

    def step_write(self) -> None:
        name = f"file-{len(self.files)}"
        value = self.any_value()
        self.files.append(name)
        length = write(str(self.folder / name), value)
        self.written.append((name, value, length))
        self.values.append(length)
        if len(self.written) % 3 == 0:
            self.tell_durable()

    def tell_durable(self) -> None:
        """Wait for a write, and say that its data are on the device."""
        name, value, length = self.random.choice(self.written)
        data = data_of(al.wait(value))
        if al.wait(length) != len(data):
            raise AssertionError(f"{name}: {al.wait(length)} bytes written, not {len(data)}")
        self.durable(name, data)

    def step_read(self) -> None:
        if self.files:
            place = str(self.folder / self.random.choice(self.files))
            self.values.append(self.random.choice([read, measure])(place))

    def summary(self) -> str:
        """Wait for everything; equal for equal results."""
        values = [al.wait(value) for value in self.values]
        state = al.wait(self.state)
        whole = hashlib.blake2b(digest_size=16)
        for value in [*values, state["sum"], state["array"]]:
            whole.update(data_of(value))
        for name in self.files:
            with al.open(str(self.folder / name), "rb") as file:
                whole.update(file.read())
        return whole.hexdigest()
