"""Builds and runs the C tests: every trap in a process and a folder of its own."""

from __future__ import annotations

import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.hdf5.builds import ROOT, Build
from tests.hdf5.suites import CONNECTOR, environment

SOURCES = ROOT / "tests" / "hdf5" / "traps"
USUAL = "alongside under_vol=0;under_info={}"
LENDING = CONNECTOR + ";limit=0"
TRAP_S_MAX = 120.0
SKIPPED = 77
HEADERS = f"-I{ROOT / 'python' / 'alongside' / 'hdf5' / 'include'}"
FLAGS = ["-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-Wl,-z,now", HEADERS]
OURS = "alongside: hdf5: "
ALONE = ("two", "random", "content")
"""What the sources of programs of their own begin with."""

LENT = "a_buffer_lent_by_the_connector_string_is_used_in_place"
EXIT = "an_exit_with_a_failed_write_says_so"

NATIVE = {
    "a_failed_open_leaves_its_errors",
    "a_dataset_closed_twice_is_refused",
    "a_deleted_attribute_is_read_while_it_is_open",
    "a_list_of_the_wrong_kind_is_refused_by_the_call",
    "a_file_open_for_reading_takes_no_write",
    "a_file_deleted_under_us_can_still_be_closed",
    "a_file_is_written_and_read",
    "a_program_without_errors_prints_none",
    "many_writes_of_many_files_end_in_one_set",
    "a_buffer_is_copied_and_may_be_changed",
    "what_is_converted_or_gathered_is_right_without_a_copy_of_ours",
    "a_child_sees_what_was_queued_and_writes_itself",
    "a_cache_is_emptied_at_exit",
    "an_exit_without_a_close_writes_all",
    "a_close_of_the_library_writes_all",
    "readers_beside_a_writer_see_every_flush",
    "threads_write_files_of_their_own",
    "threads_write_one_file",
    "a_flush_of_a_virtual_dataset_reaches_its_source",
    "a_fork_ends_although_a_thread_goes_on_writing",
    "a_program_may_close_all_descriptors",
    "what_is_longer_than_files_may_be_is_refused_by_the_call",
    "what_comes_at_once_sees_a_noted_write",
    "a_dataset_is_closed_after_its_writes",
    "a_part_of_a_buffer_is_all_that_is_touched",
    "a_close_that_waits_has_what_was_read",
    "transfers_with_an_event_set_keep_their_order",
    "an_exit_does_what_is_noted",
    "a_close_of_the_library_does_what_is_noted",
    "a_fork_does_what_is_noted",
    "a_write_that_hdf5_refuses_is_refused_by_the_call",
}
"""Those that HDF5 alone passes, too: so they ask for nothing that it does not promise."""

WRONG = [
    "alongside nonsense",
    "alongside limit=many",
    "alongside behind=-1",
    "alongside under_vol=12345",
    "alongside under_vol=nobody",
    "alongside under_vol=0;under_info={",
]
"""Connector strings that cannot be used."""


@dataclass(frozen=True)
class Result:
    """How a trap ended; `why` is empty if it did what it should."""

    name: str
    why: str
    was_skipped: bool


WATCHED_FLAGS = ["-fsanitize=thread", "-fno-builtin"]
NAMES = ROOT / "crates" / "capi" / "tests" / "sanitizer_names.c"
"""Of the thread sanitizer that watches Rust, in terms of the one that watches C."""


def _compile(build: Build, sources: list[str], name: str, libraries: list[str]) -> Path:
    program = build.folder / name
    files = [str(SOURCES / source) for source in sources]
    command = ["cc", *FLAGS, *build.compile_flags(), *files, "-o", str(program), *libraries]
    subprocess.run(command, check=True)
    return program


def _libraries(build: Build) -> list[str]:
    where = str(build.programs)
    return ["-rdynamic", f"-L{where}", f"-Wl,-rpath,{where}", "-lhdf5", "-lpthread"]


def sources_of(name: str) -> list[str]:
    """The files of a program of its own: those whose names begin with its name."""
    return sorted(path.name for path in SOURCES.glob(f"{name}*.c"))


def compile_one(build: Build, name: str) -> Path:
    """A program of its own, against this library."""
    return _compile(build, sources_of(name), name, _libraries(build))


def _trap_sources() -> list[str]:
    return sorted(path.name for path in SOURCES.glob("*.c") if not path.stem.startswith(ALONE))


def compile_traps(build: Build) -> Path:
    """The program with the traps, against this library."""
    return _compile(build, _trap_sources(), "traps", _libraries(build))


def compile_watched(build: Build) -> tuple[Path, Path]:
    """The traps and the random program, with the thread sanitizer."""
    words = [*WATCHED_FLAGS, str(NAMES), *_libraries(build)]
    return (
        _compile(build, _trap_sources(), "traps", words),
        _compile(build, sources_of("random"), "random", words),
    )


def _run(
    name: str, command: list[str], variables: dict[str, str], lines: int = 0, code: int = 0
) -> Result:
    """Runs a trap: it has to exit with the code, and to say so many lines of ours."""
    with tempfile.TemporaryDirectory(prefix="alongside-hdf5-") as folder:
        try:
            ended = subprocess.run(
                command,
                cwd=folder,
                env=variables | {"LD_BIND_NOW": "1"},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=TRAP_S_MAX,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Result(name, f"it did not end in {TRAP_S_MAX:.0f} s", False)
    if ended.returncode == SKIPPED:
        return Result(f"{name}: {ended.stdout.strip()}", "", True)
    said = [line for line in ended.stderr.splitlines() if line.startswith(OURS)]
    others = ended.stderr.splitlines() if code == lines == 0 else []
    if ended.returncode != code or len(said) != lines or others:
        text = "\n    ".join(ended.stderr.splitlines()[:30])
        why = f"exit {ended.returncode}, {len(said)} lines of ours (wanted {lines}):\n    {text}"
        return Result(name, why, False)
    return Result(name, "", False)


def run_traps(build: Build) -> list[Result]:
    """Runs all traps of a library, natively where that makes sense, and under the connector."""
    program = str(compile_traps(build))
    listed = subprocess.run([program], stdout=subprocess.PIPE, text=True, check=True)
    names = listed.stdout.split()
    results = []
    for name in names:
        ways = [CONNECTOR, USUAL] if name != LENT else [LENDING]
        lines = 1 if name == EXIT else 0
        for way in ways:
            case = f"{build.kind} {way} {name}"
            results.append(_run(case, [program, name], environment(way), lines))
        if name in NATIVE:
            case = f"{build.kind} native {name}"
            results.append(_run(case, [program, name], environment(None)))
    for wrong in WRONG:
        command = [program, "no_file_is_made"]
        results.append(_run(f"{build.kind} {wrong!r}", command, environment(wrong), lines=1))
    variables = environment(CONNECTOR) | {"ALONGSIDE_HDF5_LIMIT": "many"}
    command = [program, "no_file_is_made"]
    results.append(_run(f"{build.kind} a limit that is no number", command, variables, lines=1))
    return results


def run_two(one: Build, other: Build) -> list[Result]:
    """Two libraries in one process, in both orders."""
    program = _compile(one, ["two.c"], "two", ["-ldl"])
    results = []
    for first, second in ((one, other), (other, one)):
        libraries = [str(build.programs / "libhdf5.so") for build in (first, second)]
        for way in (CONNECTOR, USUAL):
            case = f"two libraries: {first.kind}, {second.kind}: {way}"
            results.append(_run(case, [str(program), *libraries], environment(way)))
    return results
