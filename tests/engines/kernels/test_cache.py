"""Kernels are kept on disk under a digest of all code in them."""

import os
import pickle
import re
import shutil
import subprocess
import sys
import tempfile
from collections import namedtuple
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numba
import numpy as np
import pytest

from dbcare import Bandit, Breakeven, Risk
from dbcare.engines.kernels import compile as compiling
from dbcare.engines.kernels.cache import cache_folder, digest, globals_of
from dbcare.engines.kernels.compile import _held_by, kernel
from dbcare.engines.simulate import simulators
from dbcare.engines.simulate.draws import make_arms
from dbcare.lab.warm_up import BANDITS, _build
from dbcare.policies.registry import POLICIES
from dbcare.policies.rule import Calls
from tests.helpers.fork_server import ForkedProcess, ForkServer

POLICY = """
from dbcare import Bandit, Risk, evaluate
from dbcare.policies import Racing
print(evaluate(Racing(3, 0.1), Bandit.one_sparse(3, 0.5), Risk.misidentification(1e-3), runs=50, engine="direct").risk)
"""

# A kernel that says when it is being compiled, and then waits for a line.
OTHER_USER = 65534  # nobody: root may write despite the permissions
HALTED = f"""
import os, sys
import numpy as np
from numba.extending import intrinsic
from dbcare.engines.kernels import compile, cache as machine_code
from dbcare.policies.rule import Calls

@intrinsic
def halt(context, value):
    print("halfway", flush=True)
    sys.stdin.readline()
    return value(value), lambda context, builder, signature, arguments: arguments[0]

def double(values):
    for index in range(len(values)):
        values[index] = 2.0 * halt(values[index])

def decide(value):
    for _ in range(1):
        value = 2.0 * halt(value)
    return value

def decide_once(values):
    values[0] = decide(values[0])

def decide_twice(values):
    values[0] = decide(decide(values[0]))

def main(*options):
    if "unlocked" in options:
        machine_code.fcntl = None
    if "other user" in options and os.geteuid() == 0:
        os.setuid({OTHER_USER})
    (loop,) = [loop for loop in (decide_once, decide_twice) if loop.__name__ in options] or [double]
    values = np.ones(1)
    print("asks", flush=True)
    compile.kernel(loop, "a test", {{decide: Calls.SELDOM}}, keep="not kept" not in options)(values)
    print(values[0])
"""
# Loads what compiling needs, which takes longer than compiling such a kernel; also as root, for another user.
PREPARATION = """
import numba
import numpy as np
from dbcare.engines.kernels import cache as code_digest, compile, cache as machine_code
from dbcare.policies import rule

@numba.njit
def double(values):
    for index in range(len(values)):
        values[index] = 2.0 * values[index]

double(np.ones(1))
code_digest.digest(double.py_func)
"""
ONCE = "once on this machine; `dbcare warm-up` compiles all that ship in advance"
NOTICE = f"dbcare: compiling a test (usually a few seconds, {ONCE})\n"


def notice_of_each(folder: Path) -> str:
    return f"dbcare: compiling a test (usually a few seconds, in every process, as {folder} cannot be written)\n"


@pytest.fixture
def folder() -> Iterator[Path]:
    """Make a folder that others may read."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name)
        path.chmod(0o755)
        yield path
        if (path / "cache").is_dir():
            (path / "cache").chmod(0o755)


@pytest.fixture(scope="module")
def fork_server() -> Iterator[ForkServer]:
    server = ForkServer(PREPARATION)
    yield server
    server.close()


@pytest.fixture
def start(folder: Path, fork_server: ForkServer) -> Iterator[Callable[..., ForkedProcess]]:
    """Start a process that needs the kernel above."""
    (folder / "halted.py").write_text(HALTED)
    started = []

    def begin(*options: str, cache: str = "cache") -> ForkedProcess:
        code = "import sys; sys.path.insert(0, sys.argv[1]); import halted; halted.main(*sys.argv[2:])"
        started.append(fork_server.start(code, str(folder), *options, DBCARE_CACHE=str(folder / cache)))
        return started[-1]

    yield begin
    for process in started:
        process.close()


def says(process: ForkedProcess) -> str:
    return process.stdout.readline().strip()


def test_the_first_use_says_that_it_compiles_and_the_second_does_not(start: Any) -> None:
    assert start().communicate() == ("asks\nhalfway\n2.0\n", NOTICE)
    assert start().communicate() == ("asks\n2.0\n", "")


def test_kernels_share_what_they_call(start: Any, folder: Path) -> None:
    """The second kernel is compiled, but not the function that it has in common with the first."""
    assert start("decide_once").communicate() == ("asks\nhalfway\n2.0\n", NOTICE)
    assert start("decide_twice").communicate() == ("asks\n4.0\n", NOTICE)
    shutil.rmtree(folder / "cache" / "parts")  # kernels do not need them once they are compiled
    assert start("decide_once").communicate() == ("asks\n2.0\n", "")


def test_a_folder_that_cannot_be_written_only_costs_time(start: Any, folder: Path) -> None:
    (folder / "file").write_text("not a folder")
    for _ in range(2):
        assert start(cache="file").communicate() == ("asks\nhalfway\n2.0\n", notice_of_each(folder / "file"))


def test_what_is_not_kept_says_so(start: Any, folder: Path) -> None:
    """Neither the kernel nor what it calls."""
    out, notice = start("decide_once", "not kept").communicate()
    assert out == "asks\nhalfway\n2.0\n"
    assert "in every process, as its tables are defined in the main script" in notice
    assert not (folder / "cache").exists()


def list_files(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


def test_a_folder_that_can_only_be_read_is_read(start: Any, folder: Path) -> None:
    """Also after it was copied, as into an image, with other times of its files."""
    start(cache="original").communicate()
    cache = folder / "cache"
    shutil.copytree(folder / "original", cache, copy_function=shutil.copyfile)
    forbid_writing(cache)
    before = list_files(cache)
    assert start("other user").communicate() == ("asks\n2.0\n", "")
    assert list_files(cache) == before


@pytest.mark.parametrize("left", ["source", "damaged", "nothing"])
def test_what_a_folder_that_can_only_be_read_lacks_is_compiled(start: Any, folder: Path, left: str) -> None:
    cache = folder / "cache"
    cache.mkdir()
    if left != "nothing":
        start().communicate()
        (code,) = cache.rglob("*.nbc")
        if left == "source":
            code.unlink()
        else:
            cut(code)
    forbid_writing(cache)
    before = list_files(cache)
    assert start("other user").communicate() == ("asks\nhalfway\n2.0\n", notice_of_each(cache))
    assert list_files(cache) == before


def flip(code: Path) -> None:
    """Flip one bit of the machine code, which numba would load and run."""
    content = bytearray(code.read_bytes())
    content[content.index(b"ELF") + 1_000] ^= 1
    code.write_bytes(content)


def cut(code: Path) -> None:
    os.truncate(code, code.stat().st_size // 2)


def put_folder(code: Path) -> None:
    code.unlink()
    code.mkdir()
    (code / "file").write_text("in the way")


def put_link(code: Path, target: str) -> None:
    code.unlink()
    code.symlink_to(target)


def put_pipe(code: Path) -> None:
    code.unlink()
    os.mkfifo(code)


def put_other(code: Path) -> None:
    cache = code.parent.parent if code.parent.name == "parts" else code.parent
    [other] = cache.glob("double*.nbc")
    shutil.copyfile(other, code)


class Bomb:
    """An object that ends the process that unpickles it."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os._exit, (1,)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "missing": Path.unlink,
    "empty": lambda code: os.truncate(code, 0),
    "cut": cut,
    "all but a byte": lambda code: os.truncate(code, code.stat().st_size - 1),
    "zeros": lambda code: code.write_bytes(bytes(code.stat().st_size)),
    "noise": lambda code: code.write_bytes(np.random.default_rng(1).bytes(code.stat().st_size)),
    "flipped bit": flip,
    "longer": lambda code: code.write_bytes(code.read_bytes() + b"x"),
    "text": lambda code: code.write_text("\udcff", errors="surrogateescape"),
    "a pickle that ends the process": lambda code: code.write_bytes(pickle.dumps(Bomb())),
    "code of another kernel": put_other,
    "a folder": put_folder,
    "a dangling link": lambda code: put_link(code, "nowhere"),
    "a link to itself": lambda code: put_link(code, code.name),
    "endless": lambda code: put_link(code, "/dev/zero"),
    "a pipe": put_pipe,
    "unreadable": lambda code: code.chmod(0),
}


def test_damaged_code_is_compiled_and_replaced(start: Any, folder: Path) -> None:
    """Whatever became of a kernel and of what it calls, in any way; the next process finds sound code."""
    for loop in ("decide_once", "double"):
        start(loop, cache="sound").communicate()
    for name, damage in DAMAGES.items():
        shutil.copytree(folder / "sound", folder / name)
        for code in (folder / name).rglob("decide*.nbc"):
            damage(code)
    for path in [folder / "unreadable", folder / "unreadable" / "parts"]:
        path.chmod(0o777)
    user = {"unreadable": ["other user"]}
    for printed, notice in (("asks\nhalfway\n2.0\n", NOTICE), ("asks\n2.0\n", "")):
        started = {name: start("decide_once", *user.get(name, []), cache=name) for name in DAMAGES}
        found = {name: process.communicate() for name, process in started.items()}
        assert found == dict.fromkeys(DAMAGES, (printed, notice))
    for name in DAMAGES:
        assert not [path.name for path in (folder / name).rglob(".*")]  # no draft is left


def test_a_simulation_finds_its_code_unless_that_is_damaged(tmp_path: Path) -> None:
    """The result is the same in any case."""
    environment = os.environ | {"DBCARE_CACHE": str(tmp_path)}
    printed = []
    for notices in (1, 1, 0):
        done = subprocess.run(
            [sys.executable, "-c", POLICY], env=environment, capture_output=True, text=True, check=True
        )
        printed.append(done.stdout)
        assert done.stderr.count("dbcare: compiling") == notices
        for place, code in enumerate(sorted(tmp_path.rglob("*.nbc")) if len(printed) == 1 else []):
            (flip, cut, put_folder)[place % 3](code)
    assert len(set(printed)) == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="the owner of a folder may enter it")
def test_a_folder_of_another_user_that_may_not_be_entered(start: Any, folder: Path) -> None:
    start().communicate()
    (folder / "cache").chmod(0o700)
    assert start("other user").communicate() == ("asks\nhalfway\n2.0\n", notice_of_each(folder / "cache"))


def forbid_writing(cache: Path) -> None:
    for path in [cache, *cache.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)


class Mine(Breakeven):
    """A policy of a user's own."""


def test_notices_tell_simulators_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """By policy and arms; only a policy of the user's own is called theirs. Nothing is compiled here."""
    named: list[str] = []
    monkeypatch.setattr(simulators, "compile_kernel", lambda *called, of, keep: named.append(f"{called[1]} of {of}"))
    monkeypatch.setattr(simulators, "_shipped_kernel", simulators._loop_kernel)
    risk = Risk.simple_regret(1e-2)
    for bandit in (Bandit.gaussian([1.0, 0.0]), Bandit.bernoulli([0.9, 0.1])):
        for kind in (Breakeven, Mine):
            simulators._any_kernel(kind(risk, 2, 1.0), make_arms(bandit))
    assert named == [
        "a simulator of Breakeven on Gaussian arms",
        "a simulator of your policy Mine on Gaussian arms",
        "a simulator of Breakeven on arms with few values",
        "a simulator of your policy Mine on arms with few values",
    ]


def test_every_kernel_says_how_long_it_usually_takes() -> None:
    """The labels are read from the calls: none lacks its seconds, and no seconds are left without a kernel."""
    package = Path(compiling.__file__).parents[1]
    call = re.compile(r"(?:compile_)?kernel\(.*?, \"([^\"]+)\"(?:, .+)?\)")
    labels = {label for path in package.rglob("*.py") for label in call.findall(path.read_text())}
    assert labels == compiling.USUAL_SECONDS.keys()
    assert all(re.fullmatch(r"\d+ to \d+", seconds) for seconds in compiling.USUAL_SECONDS.values())


def test_processes_that_need_a_kernel_at_once_compile_it_once(start: Any) -> None:
    first = start()
    assert (says(first), says(first)) == ("asks", "halfway")
    others = [start(), start()]
    assert [says(other) for other in others] == ["asks", "asks"]
    assert first.communicate() == ("2.0\n", NOTICE)
    assert [other.communicate() for other in others] == [("2.0\n", "")] * 2


def test_without_locks_they_all_compile_it(start: Any) -> None:
    """The test above can fail: here, both get halfway."""
    both = [start("unlocked"), start("unlocked")]
    for process in both:
        assert (says(process), says(process)) == ("asks", "halfway")
    assert [process.communicate() for process in both] == [("2.0\n", NOTICE)] * 2


def test_a_process_killed_while_it_compiles_holds_nobody_up(start: Any) -> None:
    first = start()
    assert (says(first), says(first)) == ("asks", "halfway")
    second = start()
    assert says(second) == "asks"
    first.kill()
    assert second.communicate() == ("halfway\n2.0\n", NOTICE)


def test_the_folder_is_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DBCARE_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert cache_folder() == Path("/somewhere/dbcare")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path.home() / ".cache" / "dbcare"


def outer(inner: Any, constant: Any) -> Any:
    def loop(values):
        for index in range(len(values)):
            values[index] = inner(values[index]) + constant

    return loop


def twice(x):
    return 2.0 * x


def thrice(x):
    return 3.0 * x


def test_digest_sees_inner_functions_constants_arrays_and_options() -> None:
    jitted = [numba.njit(twice), numba.njit(fastmath=True)(twice)]
    loops = [
        outer(twice, 1.0),
        outer(thrice, 1.0),
        outer(twice, 2.0),
        outer(twice, np.arange(3)),
        outer(twice, np.arange(4)),
        outer(twice, (np.arange(5000),)),
        outer(twice, (np.arange(5000) + (np.arange(5000) == 2500),)),
        *(outer(each, 1.0) for each in jitted),
    ]
    assert len({digest(loop) for loop in loops}) == len(loops)
    assert digest(outer(twice, 1.0)) == digest(outer(twice, 1.0))


def nested(x):
    def inside(y):
        return y * FACTOR

    return inside(x)


def from_module(x):
    return x * settings.scale


FACTOR = 2.0
settings = ModuleType("settings")
settings.scale = 2.0  # type: ignore[attr-defined]  # a module made by the test


def test_digest_sees_defaults_modules_and_nested_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    def made(default: float) -> Any:
        def scaled(x: float, factor: float = default, *, more: float = default) -> float:
            return x * factor + more

        return scaled

    assert digest(outer(made(1.0), 0.0)) != digest(outer(made(2.0), 0.0))
    before = digest(outer(nested, 0.0)), digest(outer(from_module, 0.0))
    monkeypatch.setitem(nested.__globals__, "FACTOR", 3.0)
    monkeypatch.setattr(settings, "scale", 3.0)
    after = digest(outer(nested, 0.0)), digest(outer(from_module, 0.0))
    assert before[0] != after[0]
    assert before[1] != after[1]


def scale(tables, values):
    values[0] *= tables.factor


def test_a_kernel_for_tables_of_a_renamed_class_is_compiled_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The digest of the code is the same, and so is the class's name, but what is on disk refers to another class."""
    monkeypatch.setenv("DBCARE_CACHE", str(tmp_path))
    values = np.ones(1)
    for place, notices in (("OldTables", 1), ("NewTables", 1), ("NewTables", 0)):
        monkeypatch.setattr(compiling, "_LOADED", {})
        tables = namedtuple("tables", "factor", module=__name__)
        tables.__qualname__ = place
        with monkeypatch.context() as during:
            during.setitem(globals(), place, tables)
            kernel(scale, "a test")(tables(2.0), values)
        assert capsys.readouterr().err == NOTICE * notices
    assert values[0] == 8.0
    assert len(list(tmp_path.rglob("*.nbc"))) == 1


def test_kernels_with_other_insides_do_not_share_code(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DBCARE_CACHE", str(tmp_path))
    for inner, expected in ((twice, 7.0), (thrice, 10.0), (twice, 7.0)):
        values = np.full(2, 3.0)
        kernel(outer(inner, 1.0), "a test")(values)
        assert values.tolist() == [expected, expected]


def test_how_a_function_is_compiled_follows_from_its_rule(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Not from its name: one that is called for every pull is compiled by itself, one of any other name is copied."""
    monkeypatch.setenv("DBCARE_CACHE", str(tmp_path))
    made: dict[str, dict[str, Any]] = {}
    njit = numba.njit

    def record(**options: Any) -> Any:
        def compile_function(function: Any) -> Any:
            made[function.__name__] = options
            return njit(**options)(function)

        return compile_function

    monkeypatch.setattr(numba, "njit", record)

    def ask(x):
        return x + 1.0

    def choose(x):
        return x + 2.0

    def decide(x):
        return x + 3.0

    def loop(values):
        values[0] = ask(choose(decide(values[0])))

    kernel(loop, "a test", {choose: Calls.EACH_PULL, decide: Calls.SELDOM}, keep=False)
    assert made["ask"]["inline"] == "always"
    assert made["choose"].items() >= compiling.INLINING["by LLVM"].items()
    assert made["decide"]["inline"] == "never"
    assert "forceinline" not in made["decide"]
    assert digest(loop) != digest(loop, {choose: Calls.EACH_PULL}) != digest(loop, {choose: Calls.SELDOM})


@pytest.mark.parametrize("name", POLICIES.shipped)
def test_shipped_rules_say_what_they_call_seldom(name: str) -> None:
    """A function that decides, which is long, is named where its rule is put together."""
    policies = [policy for bandits in BANDITS.values() for bandit in bandits if (policy := _build(name, bandit))]
    assert policies
    for policy in policies:
        calls = policy.rule.calls
        for function in (policy.rule.ask, policy.rule.tell):
            assert calls[function] is Calls.EACH_PULL
            reached = {**globals_of(function), **_held_by(function)}  # type: ignore[arg-type]  # plain functions
            assert "decide" not in reached or calls[reached["decide"]] is Calls.SELDOM
