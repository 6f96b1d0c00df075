"""Pages of the lab: they need no backend."""

from pathlib import Path

import pytest
from flask.testing import FlaskClient

from frontend.app import create_app
from frontend.settings import Settings


@pytest.fixture
def lab_dirs(tmp_path: Path) -> tuple[Path, Path]:
    """Where results and examples are looked for; neither is there yet."""
    return tmp_path / "results", tmp_path / "examples"


@pytest.fixture
def lab_pages(lab_dirs: tuple[Path, Path]) -> FlaskClient:
    settings = Settings(backend_url="http://127.0.0.1:1", lab_dirs=lab_dirs)
    return create_app(settings).test_client()
