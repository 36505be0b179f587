"""HDF5 with its tests, from the source package of a newer Debian release, built and kept.

The package comes through apt, from the mirror that this machine already uses: a list of sources of
our own names the newer releases, in a folder of our own, so nothing of the system changes. What
was downloaded and built stays in `target/hdf5/VERSION` and is used again. HDF5 2.x comes with a
crate, without its tests, and wants a newer CMake than Debian 12 has.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / "target" / "hdf5"
RELEASES = "trixie forky sid"
TOOLS = ("cmake", "ninja", "cc")

SHA256 = {
    "1.14.6": "c18bc47d07f76a5c2cfb70773bfe4152857e48ca4c96e7aef2684c96fa0e6a7c",
}
"""Of the original archive of each version that comes from Debian."""

CRATES = {"2.2.0": ("hdf5-metno-src", "=0.10.4")}
"""Versions that come with a crate: the library alone, without HDF5's tests."""

VERSIONS = [*SHA256, *CRATES]

OPTIONS = {
    "CMAKE_BUILD_TYPE": "None",
    "CMAKE_C_FLAGS": "-O1 -g1 -w",
    "BUILD_SHARED_LIBS": "ON",
    "BUILD_STATIC_LIBS": "OFF",
    "BUILD_TESTING": "ON",
    "HDF5_BUILD_HL_LIB": "OFF",
    "HDF5_BUILD_TOOLS": "OFF",
    "HDF5_BUILD_EXAMPLES": "OFF",
    "HDF5_BUILD_CPP_LIB": "OFF",
    "HDF5_BUILD_FORTRAN": "OFF",
    "HDF5_ENABLE_SZIP_SUPPORT": "OFF",
    "HDF5_TEST_API": "ON",
    "HDF5_TEST_API_ENABLE_ASYNC": "ON",
    "HDF5_TEST_CPP": "OFF",
    "HDF5_TEST_EXAMPLES": "OFF",
}
"""What is built of it. `-w`: its warnings are not ours."""

WITHOUT_TESTS = {
    "BUILD_TESTING": "OFF",
    "HDF5_TEST_API": "OFF",
    "HDF5_ENABLE_ZLIB_SUPPORT": "OFF",
}
"""What is different where the tests are not there."""

WATCHED = "watched"

KINDS = {
    "threadsafe": {"HDF5_ENABLE_THREADSAFE": "ON"},
    "plain": {"HDF5_ENABLE_THREADSAFE": "OFF"},
    WATCHED: {
        "HDF5_ENABLE_THREADSAFE": "ON",
        "CMAKE_C_FLAGS": f"{OPTIONS['CMAKE_C_FLAGS']} -fsanitize=thread",
        "BUILD_TESTING": "OFF",
        "HDF5_TEST_API": "OFF",
    },
}
"""The builds. A thread-safe one has no high-level library; what is watched by the thread sanitizer
has no tests of its own."""


class MissingError(Exception):
    """What this machine cannot give; the message says what to do."""


@dataclass(frozen=True)
class Build:
    """One built library."""

    version: str
    kind: str

    @property
    def folder(self) -> Path:
        """Where it was built."""
        return KEPT / self.version / self.kind

    @property
    def source(self) -> Path:
        """Its sources."""
        return KEPT / self.version / "source"

    @property
    def programs(self) -> Path:
        """Its libraries and test programs."""
        return self.folder / "bin"

    def compile_flags(self) -> list[str]:
        """What a C program needs to be built against it."""
        source = self.source / "src"
        folders = [source, self.folder / "src", *filter(Path.is_dir, source.iterdir())]
        return [f"-I{folder}" for folder in folders]

    @property
    def has_tests(self) -> bool:
        """Whether HDF5's own tests were built, too."""
        return self.version in SHA256 and self.kind != WATCHED


def _run(command: list[str], log: Path | None = None) -> str:
    """Runs a command to its end, and gives what it printed; its log says why it failed."""
    ended = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if log is not None:
        with log.open("a") as out:
            out.write(ended.stdout)
    if ended.returncode != 0:
        said = "\n".join(ended.stdout.splitlines()[-20:])
        raise MissingError(f"{' '.join(command[:4])} ... failed:\n{said}")
    return ended.stdout


def _mirror() -> str:
    """The archive of Debian that this machine uses."""
    wanted = ["Created-By: Packages", "Origin: Debian", "Label: Debian", "Component: main"]
    said = _run(["apt-get", "indextargets", "--format", "$(REPO_URI)", *wanted])
    if not said.strip():
        raise MissingError(
            "apt knows no archive of Debian: run `apt-get update` on a Debian machine"
        )
    return said.split()[0]


def _apt(folder: Path) -> list[str]:
    """Options of apt under which it sees our list of sources, and nothing else."""
    for name in ("lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    sources = folder / "newer.sources"
    sources.write_text(f"Types: deb-src\nURIs: {_mirror()}\nSuites: {RELEASES}\nComponents: main\n")
    settings = {
        "Dir::Etc::sourcelist": sources,
        "Dir::Etc::sourceparts": "-",
        "Dir::State::lists": folder / "lists",
        "Dir::Cache": folder / "cache",
        "APT::Sandbox::User": "root",
    }
    return [word for key, value in settings.items() for word in ("-o", f"{key}={value}")]


def _archive(version: str) -> Path:
    """The original archive of a version, downloaded if it is not there, and checked."""
    folder = KEPT / version
    folder.mkdir(parents=True, exist_ok=True)
    found = sorted(folder.glob("*.orig.tar.gz"))
    if not found:
        if shutil.which("apt-get") is None:
            raise MissingError("HDF5's sources come through apt: this needs a Debian machine")
        options = _apt(KEPT / "apt")
        _run(["apt-get", *options, "update"])
        said = _run(["apt-cache", *options, "showsrc", "hdf5"])
        packages = [line.split()[1] for line in said.splitlines() if line.startswith("Version:")]
        packages = [package for package in packages if package.split("+")[0] == version]
        if not packages:
            raise MissingError(f"none of the releases {RELEASES} has HDF5 {version} any more")
        before = Path.cwd()
        os.chdir(folder)
        try:
            source = ["source", "--download-only", "--tar-only", f"hdf5={packages[0]}"]
            _run(["apt-get", *options, *source])
        finally:
            os.chdir(before)
        found = sorted(folder.glob("*.orig.tar.gz"))
    archive = found[0]
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    if digest != SHA256[version]:
        raise MissingError(f"{archive} has the SHA-256 {digest}, not {SHA256[version]}: remove it")
    return archive


def _fetch_crate(version: str) -> Path:
    """The folder of the sources in a crate, which Cargo downloads and checks."""
    name, wanted = CRATES[version]
    folder = KEPT / version / "crate"
    (folder / "src").mkdir(parents=True, exist_ok=True)
    (folder / "src" / "lib.rs").touch()
    manifest = folder / "Cargo.toml"
    manifest.write_text(
        '[package]\nname = "fetch"\nversion = "0.0.0"\nedition = "2021"\n[workspace]\n'
        f'[dependencies]\n{name} = "{wanted}"\n'
    )
    command = ["cargo", "metadata", "--format-version", "1", "--manifest-path", str(manifest)]
    said = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    found = [entry for entry in json.loads(said)["packages"] if entry["name"] == name]
    return Path(found[0]["manifest_path"]).parent / "ext" / "hdf5"


def _unpack(version: str) -> None:
    source = KEPT / version / "source"
    if source.exists():
        return
    if version in CRATES:
        source.symlink_to(_fetch_crate(version))
        return
    archive = _archive(version)
    partial = source.with_name("source.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    _run(["tar", "xzf", str(archive), "-C", str(partial), "--strip-components=1"])
    partial.rename(source)


def build(version: str, kind: str) -> Build:
    """A library of this version (one of `VERSIONS`) and kind (of `KINDS`), built once."""
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        raise MissingError(f"install {', '.join(missing)} first")
    built = Build(version, kind)
    stamp = built.folder / "stamp-built"
    if stamp.exists():
        return built
    built.folder.mkdir(parents=True, exist_ok=True)
    _unpack(version)
    print(f"building HDF5 {version}, {kind}: some minutes", file=sys.stderr)
    options = OPTIONS | KINDS[kind]
    if version in CRATES:
        options |= WITHOUT_TESTS
    defined = [f"-D{key}={value}" for key, value in options.items()]
    log = built.folder.with_suffix(".log")
    place = ["-S", str(built.source), "-B", str(built.folder)]
    _run(["cmake", "-G", "Ninja", *place, *defined], log)
    _run(["ninja", "-C", str(built.folder)], log)
    stamp.touch()
    return built
