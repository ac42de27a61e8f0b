"""Bad values of every flag of every command: one line that speaks of flags, not of Python."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dask
import numpy as np
import pytest
import typer
import zarr

from daskcoreset.cli.commands import app
from daskcoreset.sensitivities import CONSTRUCTIONS
from tests.pairs import few
from tests.tools.command_line import Capture, call_main

if TYPE_CHECKING:
    from collections.abc import Iterator

# What each kind of value is refused for, or taken: both must end without a word of Python.
_BAD = ("", "nope", "-1", "1.5", "nan", "9" * 40, "[1", "a=b", "y", "bad")

# What is no data, or is refused by some command.
_STORED: tuple[str, ...] = (
    "nope",
    "{text}",
    "{coreset}",
    *_BAD[2:],
    "{one}",
    "{cube}",
    "{none}",
    "{nan}",
    "{lost}",
)
_STORED += ("{cut.parquet}", "{group}", "{sea}", "{tree}", "{data}", ".", "*.x", "s4://b/x")
_STORED += ("memory://none", "a\\0b")

# Each is quick; all of them take a minute, and of flags the rest another one.
_MANY = pytest.mark.nightly

# Words of Python, outside of what the user has typed or stored, which is quoted or in a list.
_PYTHON = (
    r"\b[a-z]+_[a-z_]+\b",  # names of parameters
    r"\b\w+=(?!\w*VALUE)",  # of keywords
    r"\w\.\w+\(",  # of methods
    r"\w\[",  # of subscripts
    r"(?<!/)\b(?:X|y)\b",
    r"\b(?:None|True|False|Traceback)\b",
    r"\b\w+Error\b",
    r"\b(?:Coreset|CoresetTree|numpy|dask)\.\w+",
    r"\bpass the array\b|\bestimators?\b",
)

_QUOTED = r"'[^']*'|\"[^\"]*\"|`[^`]*`|(?<= )\[[^\]]*\]"

# A call of every command that it takes.
_DATA: dict[str, list[str]] = {
    "build": ["{data}", "{free}"],
    "store": ["{data}", "{free}"],
    "info": ["{coreset}"],
    "rows": ["{coreset}", "{rows.csv}"],
    "predict": ["{coreset}", "{data}", "{rows.csv}", "--clusters", "2"],
    "audit": ["{coreset}", "{data}", "--clusters", "2"],
    "plot": ["{coreset}", "{rows.png}", "{data}"],
    "tree create": ["{free}"],
    "tree append": ["{copy}", "{data}"],
    "tree delete": ["{copy}", "a"],
    "tree window": ["{copy}", "{free}"],
    "tree verify": ["{copy}"],
    "tree list": ["{copy}"],
    "demo": ["--data", "nope"],
}


def _commands() -> Iterator[tuple[str, Any]]:
    """Yield every command by its name, with what it takes."""
    top: Any = typer.main.get_command(app)
    for name, command in top.commands.items():
        inner = getattr(command, "commands", None)
        if inner is None:
            yield name, command
        else:
            yield from ((f"{name} {one}", two) for one, two in inner.items())


def _flags() -> Iterator[tuple[str, str, bool]]:
    """Yield every flag of every command, and whether it takes a value."""
    for name, command in _commands():
        for parameter in command.params:
            for flag in (*parameter.opts, *parameter.secondary_opts):
                if flag.startswith("--") and flag != "--help":
                    yield name, flag, not getattr(parameter, "is_flag", False)


def _arguments() -> Iterator[tuple[str, int]]:
    """Yield every place of a command where a path or a name stands."""
    for name, words in _DATA.items():
        yield from ((name, i) for i, word in enumerate(words) if word[0] == "{")


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return what the commands read, which includes much that they refuse."""
    folder = tmp_path_factory.mktemp("flags")
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 3))
    beside = {
        "y": np.where(rows[:, 0] > 0, "yes", "no"),
        "sample_weight": np.ones(300),
        "bad": np.r_[np.nan, np.full(299, -1.0)],
        "wide": rows,
    }
    arrays = {"one": rows[:, :1], "text": beside["y"], "cube": rows[None], "none": rows[:0]}
    arrays["nan"] = np.where(np.arange(900).reshape(300, 3) == 22, np.nan, rows)
    places = {"data": folder / "data.npz", "coreset": folder / "c", "tree": folder / "t"}
    np.savez(places["data"], X=rows, **beside)
    for name, array in arrays.items():
        places[name] = folder / f"{name}.npy"
        np.save(places[name], array)
    (folder / "cut.parquet").write_bytes(b"PAR1")
    group = zarr.create_group(folder / "group", zarr_format=3)
    for name in ("first", "second"):
        group.create_array(name, data=rows)
    cube = zarr.create_group(folder / "sea", zarr_format=3)
    dims = ("time", "lat", "lon")
    cube.create_array("sst", data=np.zeros((4, 3, 2)), dimension_names=dims)
    cube.create_array("bounds", data=np.zeros((4, 2)), dimension_names=("time", "bnds"))
    lost = zarr.create_array(folder / "lost", shape=(300, 3), chunks=(100, 3), dtype="f8")
    lost[:100] = 1.0
    places |= {name: folder / name for name in ("group", "sea", "lost", "cut.parquet")}
    assert call_main("build", places["data"], places["coreset"], "--size", 20, "--seed", 0) == 0
    assert call_main("tree", "create", places["tree"], "--size", 20, "--seed", 0) == 0
    assert call_main("tree", "append", places["tree"], places["data"], "--name", "a") == 0
    return places


class _Program:
    """The program in a folder of its own, and what it must not say."""

    def __init__(self, folder: Path, places: dict[str, Path], capsys: Capture) -> None:
        self.folder, self.places, self.capsys = folder, places, capsys

    def __call__(self, *words: str) -> None:
        named = self.places | {
            name: self.folder / name
            for name in ("free", "copy", "rows.png", "rows.html", "rows.csv")
        }
        shutil.rmtree(named["free"], ignore_errors=True)
        for name in ("rows.png", "rows.html", "rows.csv"):
            named[name].unlink(missing_ok=True)
        if "{copy}" in words:
            shutil.rmtree(named["copy"], ignore_errors=True)
            shutil.copytree(self.places["tree"], named["copy"])
        filled = [re.sub(r"\{(.+?)\}", lambda found: str(named[found[1]]), one) for one in words]
        self.capsys.readouterr()
        code = call_main(*filled)
        said = self.capsys.readouterr().err
        shown = f"{' '.join(words)}\n{said}"
        assert code in (0, 1, 2), shown
        lines = said.splitlines()
        assert all(line.startswith(("error: ", "warning: ")) for line in lines), shown
        assert sum(line.startswith("error: ") for line in lines) == (code != 0), shown
        for line in lines:
            for pattern in _PYTHON:
                assert not re.search(pattern, self.without_values(line, filled)), (pattern, shown)

    @staticmethod
    def without_values(line: str, words: list[str]) -> str:
        text = re.sub(_QUOTED, "", line)
        known = (*CONSTRUCTIONS, "DASKCORESET_DATA")
        for word in (*words, *known):
            text = text.replace(word, "") if len(word) > 3 or "=" in word else text
        return text


@pytest.fixture
def program(
    tmp_path: Path, places: dict[str, Path], capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> _Program:
    monkeypatch.chdir(tmp_path)  # a bad value may be the name of a folder to make
    return _Program(tmp_path, places, capsys)


def test_flags__are_of_all_commands() -> None:
    """The walk goes everywhere: a new command needs a line in the table."""
    assert {name for name, _ in _commands()} == _DATA.keys()
    assert len(list(_flags())) > 80


@pytest.mark.parametrize(
    "kind",
    [
        "one",
        pytest.param("in turn", marks=_MANY),  # of the others each flag meets one
        pytest.param("most", marks=_MANY),
    ],
)
@few("command", list(_DATA), always=2)
def test_flags__bad_values(program: _Program, command: str, kind: str) -> None:
    pytest.importorskip("distributed")
    usual = [*command.split(), *_DATA[command]]
    with dask.config.set({"distributed.comm.timeouts.connect": "100ms"}):
        flags = [flag[1:] for flag in _flags() if flag[0] == command]
        for turn, (flag, takes) in enumerate(flags):
            own = 1 + turn % len(_BAD[1:])
            chosen = {"one": _BAD[:1], "in turn": _BAD[own : own + 1], "most": _BAD[1:]}
            for value in chosen[kind] if takes else ():
                program(*usual, f"{flag}={value}")
            if kind == "one":
                program(*usual, flag)


@pytest.mark.parametrize(
    "kind",
    [
        "three",
        pytest.param("in turn", marks=_MANY),  # each place meets a third, each value some places
        pytest.param("most", marks=_MANY),
    ],
)
@few("which", range(len(list(_arguments()))), always=4)
def test_arguments__bad_values(program: _Program, which: int, kind: str) -> None:
    command, place = list(_arguments())[which]
    turn = which % 3
    chosen = {"three": _STORED[:3], "in turn": _STORED[3 + turn :: 3], "most": _STORED[3:]}
    for value in chosen[kind]:
        words = list(_DATA[command])
        words[place] = value
        program(*command.split(), *(["--"] if value[0] == "-" else []), *words)


@pytest.mark.nightly
@pytest.mark.parametrize("method", [*CONSTRUCTIONS, "coverage"])
def test_methods__what_they_refuse(program: _Program, method: str) -> None:
    given = ["", "--clusters=2", "--labels=y", "--labels=bad", "--labels=wide", "--weights=bad"]
    given += ["--weights=wide", "--labels=y --size=2", "--size=auto", "--size=auto --labels=y"]
    given += ["--sampling=multinomial --labels=y", "--passes=2 --labels=sample_weight"]
    given += ["--metric=cosine --clusters=2", "--timeout=1e-9", "--columns=a", "--chunks=7"]
    for one in given:
        program("build", "{data}", "{free}", "--method", method, *one.split())
    for data in ("{nan}", "{one}", "{none}", "{sea}"):
        program("build", data, "{free}", "--method", method, "--clusters=2")
    for one in ("", "--clusters=2", "--metric=cosine"):
        program("tree", "create", "{free}", "--method", method, *one.split())


def _synopsis() -> dict[str, str]:
    """Return the lines of the README for each command, what is written once put in its place."""
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    text = readme.partition("## Command line")[2].partition("```text\n")[2].partition("```")[0]
    calls, _, short = text.partition("\n\n")
    parts = dict(re.findall(r"^([A-Z]+): (.*)$", short, flags=re.MULTILINE))
    found = {}
    for call in re.split(r"^daskcoreset ", calls, flags=re.MULTILINE)[1:]:
        words = re.sub(r"#.*", "", call)
        for name in ("READING", "STORES"):  # the first holds the second
            words = words.replace(f"[{name}]", parts[name])
        name = next(name for name in _DATA if re.match(rf"{name}\b", words))
        found[name] = " ".join(words.removeprefix(name).split())
    return found


@pytest.mark.parametrize("command", _DATA)
def test_synopsis__of_the_readme_is_that_of_the_help(command: str) -> None:
    said = _synopsis()[command]
    parameters = dict(_commands())[command].params
    flags = {flag for name, flag, _ in _flags() if name == command}
    assert set(re.findall(r"--[a-z-]+", said)) == flags - {"--progress", "--no-progress"}
    places = [one.metavar for one in parameters if one.param_type_name == "argument"]
    assert re.findall(r"[A-Z.a-z\[\]]+", said.partition("[--")[0]) == [*places]
    for one in parameters:
        (default,) = re.findall(rf"{one.opts[0]} ([^\] ]+)", said) or [None]
        if default is not None and isinstance(one.default, str | int):
            assert default.partition("|")[0] == str(one.default), one.opts


def test_columns__of_what_has_none(program: _Program) -> None:
    for data in ("{sea}", "{group}", "{nan}", "{data}", "{coreset}", "{tree}"):
        program("build", data, "{free}", "--columns=sst")
        program("store", data, "{free}", "--columns=sst")
