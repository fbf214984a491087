"""The spread of the rewards is stated alike in Python, in the shell, over HTTP and on the form, and so are mistakes."""

import html
import itertools
import math
import re
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
from typer.main import get_command
from typer.testing import CliRunner

import dbcare
from dbcare.base.options import OptionKind, read_options
from dbcare.cli import app
from dbcare.cli.shared import OptionNamingCommand
from dbcare.errors import InvalidValueError
from dbcare.server.pages.new import LABELS
from dbcare.studies.options import ReplayOptions, StudyOptions
from dbcare.studies.settings import Settings
from tests.helpers.service_process import run_service

pytestmark = pytest.mark.service

ARMS = ["A", "B"]
MONEY: dict[str, Any] = {"price": 0.5, "value": 1000.0}
ALERT = re.compile(r'role="alert" id="error">([^<]*)<')
BY_NAME = {"A": 0.5, "B": 2.0}

_names = (f"study {number}" for number in itertools.count())


@dataclass
class Interfaces:
    """Ways to create a study in one storage; each returns what it is refused with, or an empty text."""

    storage: str
    http: httpx.Client
    created: str = ""  # the last study

    def python(self, options: dict[str, Any]) -> str:
        try:
            dbcare.create_study(self._new_name(), ARMS, storage=self.storage, **options)
        except InvalidValueError as error:
            return str(error)
        return ""

    def shell(self, options: dict[str, Any]) -> str:
        return run_command("create", self._new_name(), "--arms", "A,B", "--storage", self.storage, *spell(options))[0]

    def api(self, options: dict[str, Any]) -> str:
        body = {"name": self._new_name(), "arms": ARMS, **options}
        if body.get("sigma_pulls") == math.inf:
            body["sigma_pulls"] = "inf"
        response = self.http.post("/v1/studies", json=body)
        assert response.status_code in (201, 422), response.text
        return "" if response.status_code == 201 else str(response.json()["detail"])

    def form(self, options: dict[str, Any]) -> str:
        return self.type_in({name: type_text(value, " ") for name, value in options.items() if value is not None})

    def type_in(self, typed: dict[str, str]) -> str:
        """Send the form with what is typed into its fields; `bounds` and `binary` are choices there."""
        fields = {"name": self._new_name(), "arms": "A\nB", "rewards": "unknown", **typed}
        for way in ("baseline", "sigma", "bounds", "binary"):
            if way in typed:
                fields["rewards"] = way
        if "bounds" in fields:
            fields["low"], _, fields["high"] = fields.pop("bounds").partition(" ")
        fields.pop("binary", None)
        response = self.http.post("/new", data=fields, headers={"Origin": str(self.http.base_url).rstrip("/")})
        if response.status_code == 303:
            return ""
        assert response.status_code == 422, response.text
        alerts: list[str] = ALERT.findall(response.text)
        assert re.search(r'aria-invalid="true"', response.text), alerts
        return html.unescape(alerts[0])

    def _new_name(self) -> str:
        self.created = next(_names)
        return self.created

    @property
    def settings(self) -> Settings:
        """Settings of the study that was created last."""
        return dbcare.load_study(self.created, self.storage).settings


COMMAND = get_command(app)  # building it takes longer than running it


def run_command(*arguments: str) -> tuple[str, str]:
    """Run a command; return the line it is refused with, or an empty text, and what it prints otherwise."""
    with redirect_stdout(StringIO()) as output, redirect_stderr(StringIO()) as problems:
        try:
            COMMAND.main(list(arguments), prog_name="dbcare")
        except SystemExit as ended:
            code = ended.code
    if not code:
        return "", output.getvalue()
    assert code == 2
    assert problems.getvalue().count("\n") == 1, problems.getvalue()
    return problems.getvalue().removeprefix("Error: ").strip(), ""


def type_text(value: Any, separator: str) -> str:
    """Return a value as people type it."""
    if isinstance(value, dict):
        return ",".join(f"{name}={amount}" for name, amount in value.items())
    return separator.join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def spell(options: dict[str, Any]) -> list[str]:
    """Return options as a shell takes them."""
    words = []
    for name, value in options.items():
        flag = f"--{name.replace('_', '-')}"
        words += [flag] if value is True else [] if value is None else [flag, type_text(value, ",")]
    return words


@pytest.fixture(scope="module")
def interfaces(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Interfaces]:
    storage = f"sqlite:///{tmp_path_factory.mktemp('spread') / 'studies.db'}"
    with run_service(storage) as address, httpx.Client(base_url=address, timeout=30.0) as http:
        yield Interfaces(storage, http)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("log") / "log.csv"
    file.write_text("arm,reward\n" + "A,1\nB,0\nA,0\nB,1\n" * 10)
    return file


@pytest.mark.parametrize("risk", ["simple_regret", "misidentification"])
@pytest.mark.parametrize(
    "statement",
    [
        {},
        {"sigma": 0.5},
        {"sigma": 0.5, "sigma_pulls": math.inf},
        {"baseline": 0.04, "sigma_pulls": 3},
        {"binary": True},
        {"bounds": [-1, 3]},
        {"bounds": [-1, 3], "sigma": 0.5, "cap": 2},
        {"price": BY_NAME, "cap": 500},
    ],
    ids=str,
)
def test_a_statement_means_the_same_everywhere(
    interfaces: Interfaces, log: Path, statement: dict[str, Any], risk: str
) -> None:
    options = {**MONEY, "risk": risk, **statement}
    assert interfaces.python(options) == ""
    expected = interfaces.settings
    assert expected.policy == "breakeven"
    for create in (interfaces.shell, interfaces.api, interfaces.form):
        assert create(options) == ""
        assert interfaces.settings == expected
        assert interfaces.settings.built_policy == expected.built_policy
    replay = dbcare.replay_log(dbcare.read_log(log), **options)
    assert replay.settings == expected
    assert run_command("import", str(log), *spell(options)) == ("", f"{replay}\n")
    learned = "Nothing was stated about the spread of the rewards, so it was learned from them."
    assert (learned in replay.sentences()) == (not expected.spread.is_stated)


def test_a_shell_says_what_a_learned_spread_means(interfaces: Interfaces) -> None:
    """A limit is promised only if it is set; in a pipe, the sentence does not mix with results."""

    def create(*options: str) -> str:
        name = ["create", next(_names), "--arms", "A,B", "--storage", interfaces.storage]
        result = CliRunner().invoke(app, [*name, "--price", "1", "--value", "9", *options])
        assert (result.exit_code, result.stdout) == (0, "")
        return result.stderr

    learned = "Nothing is stated about the spread of the rewards, so the study learns it from them. "
    assert create() == f"{learned}No limit on spending is promised unless you set --max-spend.\n"
    assert (
        create("--max-spend", "20")
        == f"{learned}It stops before it spends more than 20.00 USD, pending trials aside.\n"
    )
    assert create("--sigma", "1") == ""


# Mistakes, what is wrong with each, and the interfaces where it cannot be made.
MISTAKES: list[tuple[dict[str, Any], str, tuple[str, ...]]] = [
    ({"baseline": 1.5}, "{baseline} must lie strictly between 0 and 1 but got 1.5.", ()),
    ({"baseline": 0}, "{baseline} must lie strictly between 0 and 1 but got 0.0.", ()),
    ({"sigma": 0.5, "baseline": 0.04}, "State the spread of the rewards in one way", ("form",)),
    ({"sigma": 0.5, "binary": True}, "State the spread of the rewards in one way", ("form",)),
    ({"bounds": [0, 2], "baseline": 0.04}, "State the spread of the rewards in one way", ("form",)),
    ({"sigma": 1, "sigma_pulls": 0}, "{sigma_pulls} must be positive but got 0.0.", ()),
    ({"sigma": 1, "sigma_pulls": -3}, "{sigma_pulls} must be positive but got -3.0.", ()),
    ({"sigma_pulls": math.inf}, "{sigma_pulls} is the weight of a stated spread, and none is stated: state one, or "
     "leave it out; got inf.", ()),
    ({"bounds": [0, 5], "cap": 5}, "{cap} must lie between the bounds 0 and 5 but got 5.", ()),
    ({"binary": True, "cap": 1}, "{cap} is for rewards that vary widely, not for rewards of 0 or 1, but got 1.", ()),
    ({"price": {"A": 1}}, "{price} must have an entry for each arm but got none for 'B'.", ()),
    ({"price": {**BY_NAME, "C": 1}}, "{price} has an entry for 'C', which is not an arm; the arms are A, B.", ()),
    ({"price": {"A": 1, "B": -1}}, "{price} (entry 2) must be positive but got -1.0.", ("python", "api")),
    ({"price": [1, 2, 3]}, "{price} must have one entry per arm (2) but got 3.", ()),
    ({"value": [1.0, 2.0]}, "{value} must be one number but got [1.0, 2.0]; if arms differ in value, multiply each "
                            "arm's rewards by its own value instead.", ()),
    ({"value": BY_NAME}, "{value} must be one number but got {{'A': 0.5, 'B': 2.0}}; if arms differ in value, ", ()),
    ({"policy": "dbcare"}, "{sigma} is required here; Breakeven can learn it.", ()),
    ({"sigma": 1, "policy": "racing"}, "{policy} must be one of breakeven, ", ("api", "form")),
    ({"sigma": 1, "policy": "racing"}, "{policy}: Input should be one of 'breakeven'", ("python", "shell")),
]  # fmt: skip


@pytest.mark.parametrize(("wrong", "message", "impossible"), MISTAKES)
def test_a_mistake_is_explained_in_the_words_of_each_interface(
    interfaces: Interfaces, wrong: dict[str, Any], message: str, impossible: tuple[str, ...]
) -> None:
    python = {name: f"`{name}`" for name in StudyOptions.__annotations__}
    names = {
        "python": python,
        "api": python,
        "shell": {name: f"`--{name.replace('_', '-')}`" for name in python},
        "form": {name: LABELS[name] for name in python},
    }
    for interface in names.keys() - set(impossible):
        refused = getattr(interfaces, interface)({**MONEY, **wrong})
        expected = message.format(**names[interface])
        assert refused.startswith(expected), f"{interface}: {refused}"
    assert interfaces.created not in dbcare.list_studies(interfaces.storage)


BAD_TEXTS = ("-1", "0", "nan", "1e60", "x", "1,2", "1;2", "A=1", "C=1,D=2", "=", " ")
INTERNAL = {"bound", "largest_sigma", "sigma_guard", "max_pulls", "gap", "family"}  # what only Python has


@pytest.mark.parametrize("kind", ["shell", "import", "form"])
def test_no_message_shows_an_identifier_of_python(interfaces: Interfaces, log: Path, kind: str) -> None:
    """Whatever is typed for whichever option, also for several policies, and beside a stated spread or without."""
    options = read_options(ReplayOptions if kind == "import" else StudyOptions)
    names = set(options) | INTERNAL
    refused = set()
    contexts = itertools.cycle(
        [{}, {"sigma": "1"}, {"policy": "breakeven-racing"}, {"policy": "dbcare", "sigma": "1"}, {"price": "1e-9"}]
    )
    for (name, text), beside in zip(itertools.product(options, BAD_TEXTS), contexts, strict=False):
        if options[name].kind is OptionKind.FLAG or (kind == "form" and name == "cost"):
            continue
        typed = {**{option: str(value) for option, value in MONEY.items()}, **beside, name: text}
        if kind == "form":
            message = interfaces.type_in(typed)
        else:
            message = run_command("import", str(log), *spell(typed))[0] if kind == "import" else interfaces.shell(typed)
        refused |= {name} if message else set()
        assert find_identifiers(message, names) == set(), f"{name}={text!r}: {message}"
    flags = {name for name, option in options.items() if option.kind is OptionKind.FLAG}
    assert refused >= set(options) - flags - {"currency", "description", "cost"}


def find_identifiers(message: str, names: set[str]) -> set[str]:
    """Find names of Python: between backticks, before "=", or with an underscore; and its words for nothing."""
    without_input = re.sub(r"but got '.*", "", message)
    quoted = {
        word for inside in re.findall(r"`([^`]+)`", without_input) for word in re.findall(r"(?<![\w-])\w+", inside)
    }
    assigned = set(re.findall(r"\b(\w+)=", without_input)) - {"A", "B"}
    plain = {word for word in re.findall(r"\w+", without_input) if "_" in word or word in ("None", "True", "False")}
    return (quoted | assigned | plain) & (names | {"None", "True", "False"})


def test_the_search_for_identifiers_finds_them() -> None:
    """Negative control."""
    names = {"sigma", "sigma_pulls", "price"}
    assert find_identifiers("`sigma` must", names) == {"sigma"}
    assert find_identifiers("set sigma_pulls to a number", names) == {"sigma_pulls"}
    assert find_identifiers("but got price=None", names) == {"price", "None"}
    assert find_identifiers("`--sigma` must be a number but got 'sigma_pulls'", names) == set()


def test_every_command_names_its_own_options(interfaces: Interfaces) -> None:
    def find_commands(group: Any) -> Iterator[Any]:
        for command in group.commands.values():
            yield from find_commands(command) if hasattr(command, "commands") else [command]

    commands = list(find_commands(COMMAND))
    assert len(commands) >= 25
    assert [command.name for command in commands if not isinstance(command, OptionNamingCommand)] == []
    refused, _ = run_command("keys", "create", "--name", "x\ny", "--role", "admin", "--storage", interfaces.storage)
    assert refused.startswith("`--name` must be a string")


def test_the_api_describes_what_it_takes(interfaces: Interfaces) -> None:
    schema = interfaces.http.get("/v1/openapi.json").json()["components"]["schemas"]["NewStudy"]["properties"]
    weights = schema["sigma_pulls"]["anyOf"]
    assert schema["sigma_pulls"]["default"] == 6.0
    assert [weight.get("const", weight["type"]) for weight in weights] == ["number", "inf"]
    kinds = [kind["type"] for kind in schema["price"]["anyOf"]]
    assert kinds == ["number", "array", "object", "null"]
    assert [kind["type"] for kind in schema["value"]["anyOf"]] == ["number", "null"]
    for name in ("value", "sigma_pulls"):
        refused = interfaces.api({**MONEY, name: "x"})
        assert refused.startswith(f"`{name}`: Input should be a valid number")
        assert ";" not in refused
    assert "racing" not in schema["policy"]["enum"]
