"""Commands that install an extra work where dbcare came from a folder, a file, or an index."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

CODE = "from dbcare.base.extras import say_how_to_install; print(say_how_to_install('server'))"


def ask(packages: Path, origin: object) -> str:
    """Return the command where pip has installed dbcare from `origin`; None: from an index."""
    info = packages / "dbcare-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: dbcare\nVersion: 0.1.0\n")
    if origin is not None:
        (info / "direct_url.json").write_text(json.dumps(origin))
    environment = os.environ | {"PYTHONPATH": str(packages)}
    ran = subprocess.run([sys.executable, "-c", CODE], env=environment, capture_output=True, text=True, check=True)
    return ran.stdout.strip()


@pytest.mark.parametrize(
    ("name", "info", "expected"),
    [
        ("my checkout", {"dir_info": {}}, "pip install '{place}[server]'"),
        ("checkout", {"dir_info": {"editable": True}}, "pip install -e '{place}[server]'"),
        ("dbcare-0.1.0-py3-none-any.whl", {"archive_info": {}}, "pip install '{place}[server]'"),
    ],
)
def test_from_a_folder_or_a_wheel(tmp_path: Path, name: str, info: dict[str, object], expected: str) -> None:
    packages, place = tmp_path / "packages", tmp_path / name
    packages.mkdir()
    place.mkdir()
    assert ask(packages, {"url": place.as_uri(), **info}) == expected.format(place=place)


@pytest.mark.parametrize("origin", [None, {"url": "file:///nowhere/at/all", "dir_info": {}}, {"url": "https://host/x"}])
def test_from_elsewhere(tmp_path: Path, origin: object) -> None:
    """From an index, or from a folder that is gone."""
    assert ask(tmp_path, origin) == "pip install 'dbcare[server]'"
