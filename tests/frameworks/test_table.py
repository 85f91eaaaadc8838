"""The table of docs/frameworks.md matches what the scenes show."""

import pytest

from tests.frameworks.scene import SCENES, Scene, scenes_here
from tests.frameworks.table import SceneResult, play, row_key, rows_on_page, table_row
from tests.support.server import Server

HERE = list(scenes_here())


@pytest.mark.parametrize("scene", HERE, ids=lambda scene: scene.module)
def test_the_line_of_a_framework_is_what_its_scene_shows(scene: Scene, server: Server) -> None:
    result = play(scene, server)
    assert result == SceneResult(permitted=True, denied=True, down=True)
    line = table_row(scene, result)
    assert rows_on_page().get(row_key(line)) == line


def test_every_scene_has_its_line() -> None:
    assert len(rows_on_page()) == len(list(SCENES.glob("*.py")))
