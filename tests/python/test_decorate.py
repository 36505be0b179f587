"""What `@task` and `@io` take and refuse, and the sequential program without a session."""

import asyncio
import dataclasses
from pathlib import Path
from typing import Annotated, Optional

import pytest

import alongside as al
from alongside.directions import COMMUTATIVE, IN, INOUT, OUT


@al.task
def add(a, b=2):
    """Adds."""
    return a + b


@al.io
async def later(x):
    await asyncio.sleep(0)
    return x


class Account:
    def __init__(self, start):
        self.total = start

    @al.task
    def plus(self, amount):
        return self.total + amount

    @staticmethod
    @al.task
    def double(x):
        return 2 * x


def test_without_a_session_calls_are_plain_calls():
    assert add(1) == 3
    assert add(1, b=5) == 6
    assert al.wait(add(1)) == 3
    assert al.wait_all([add(1), 4]) == [3, 4]
    assert list(al.as_completed([1, 2])) == [1, 2]
    assert al.put(7) == 7
    assert later(4) == 4
    assert Account(3).plus(4) == 7
    assert Account.double(4) == 8


def test_without_a_session_a_coroutine_runs_inside_a_loop_too():
    async def main():
        return later(5)

    assert asyncio.run(main()) == 5


def test_metadata_is_kept():
    assert add.__name__ == "add"
    assert add.__doc__ == "Adds."
    assert add.name == "add"
    assert al.task(name="sum")(lambda: 1).name == "sum"
    assert "add" in repr(add)


def directions(function):
    return {p.name: (p.direction.name, p.position) for p in al.task(function).table.directed}


def test_directions_are_read_from_annotations():
    def plain(a: al.InOut, b: al.In, c: int, *, d: al.FileOut = "x"): ...

    def subscripted(a: al.InOut[list], b: al.Commutative[dict]): ...

    def annotated(a: Annotated[Path, al.FileIn], b: Annotated[list, al.Out]): ...

    def optional(a: al.FileIn | None = None, b: Optional[al.FileInOut] = None): ...  # noqa: UP045

    def many(*paths: al.FileIn): ...

    def listed(paths: list[al.FileIn]): ...

    assert directions(plain) == {"a": ("InOut", 0), "b": ("In", 1), "d": ("FileOut", -1)}
    assert directions(subscripted) == {"a": ("InOut", 0), "b": ("Commutative", 1)}
    assert directions(annotated) == {"a": ("FileIn", 0), "b": ("Out", 1)}
    assert directions(optional) == {"a": ("FileIn", 0), "b": ("FileInOut", 1)}
    assert directions(many) == {"paths": ("FileIn", 0)}
    assert directions(listed) == {"paths": ("FileIn", 0)}


def test_directions_are_read_from_texts():
    local = al.InOut

    def texts(a: "al.InOut", b: "local[int]", c: "NotThere", d: "int"):  # noqa: F821
        return local

    assert directions(texts) == {"a": ("InOut", 0), "b": ("InOut", 1)}


def test_numbers_are_those_of_the_runtime():
    assert (IN, OUT, INOUT, COMMUTATIVE) == (0, 1, 2, 4)


@pytest.mark.parametrize(
    ("option", "value", "part"),
    [
        ("cpus", 0, "from 1"),
        ("cpus", "2", "whole number"),
        ("cpus", True, "whole number"),
        ("returns", 0, "from 1"),
        ("priority", 1.5, "whole number"),
        ("retries", -1, "from 0"),
        ("timeout", 0, "more than 0"),
        ("timeout", "3s", "seconds"),
        ("on_failure", "explode", "'fail'"),
        ("name", "", "not empty"),
        ("bandwidth", "20MB/s", "option of @alongside.io"),
    ],
)
def test_bad_options_of_task_are_refused_at_decoration(option, value, part):
    with pytest.raises(al.ConstraintError) as error:
        al.task(**{option: value})(add.function)
    text = str(error.value)
    assert "add" in text
    assert option in text
    assert part in text


@pytest.mark.parametrize(
    ("option", "value", "part"),
    [
        ("bandwidth", "20 parsecs", "20 parsecs"),
        ("bandwidth", -1, "negative"),
        ("bandwidth", [], "20MB/s"),
        ("bandwidth", "auto(2,1,2)", "min is more than max"),
        ("size", "x", "x"),
        ("durable", 1, "True or False"),
        ("cpus", 1, "takes no processor"),
        ("colour", 1, "no option 'colour'"),
    ],
)
def test_bad_options_of_io_are_refused_at_decoration(option, value, part):
    with pytest.raises(al.ConstraintError) as error:
        al.io(**{option: value})(add.function)
    text = str(error.value)
    assert "add" in text
    assert option in text
    assert part in text


def test_units_are_read():
    options = al.io(bandwidth="20MB/s", size="1GiB")(add.function).options
    assert options.bandwidth == 20_000_000
    assert options.size == 1 << 30
    assert al.io(bandwidth=5e6)(add.function).options.bandwidth == 5_000_000


def test_functions_that_cannot_be_tasks():
    def generator():
        yield 1

    async def coroutine(): ...

    with pytest.raises(TypeError, match="generator"):
        al.task(generator)
    with pytest.raises(TypeError, match=r"alongside\.io"):
        al.task(coroutine)
    with pytest.raises(TypeError, match="below @staticmethod"):
        al.task(staticmethod(add.function))
    with pytest.raises(TypeError, match="already"):
        al.task(add)
    with pytest.raises(TypeError, match="for functions"):
        al.task(Account)
    with pytest.raises(TypeError, match="for functions"):
        al.task(3)


def test_directions_that_make_no_sense():
    def two(a: Annotated[al.In[int], al.Out]): ...

    def returned(a) -> al.FileOut: ...

    def keywords(**paths: al.FileIn): ...

    def unreadable(a: "nowhere.FileIn"): ...  # noqa: F821

    with pytest.raises(al.DirectionError, match=r"two\(\): parameter 'a' has two"):
        al.task(two)
    with pytest.raises(al.DirectionError, match="what it returns"):
        al.task(returned)
    with pytest.raises(al.DirectionError, match=r"\*\*paths"):
        al.task(keywords)
    with pytest.raises(al.DirectionError, match=r"'nowhere\.FileIn' of parameter 'a'"):
        al.task(unreadable)


def test_inline_durable_flushes(tmp_path):
    @al.io(durable=True)
    def save(path: al.FileOut, text):
        Path(path).write_text(text)

    save(str(tmp_path / "x"), "hello")
    assert (tmp_path / "x").read_text() == "hello"


def test_dataclass_like_arguments_are_untouched():
    @dataclasses.dataclass
    class Point:
        x: int

    point = Point(3)
    assert al.wait(point) is point
    nested = [point, {"a": (1, 2)}]
    assert al.wait(nested) is nested
