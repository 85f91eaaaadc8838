"""The table of frameworks says what each scene shows, played here and now."""

import pytest

from tests.frameworks.scene import SCENES, Scene, scenes_here
from tests.frameworks.table import Seen, name_of, play, row, rows_on_page
from tests.support.server import Server

HERE = list(scenes_here())


@pytest.mark.parametrize("scene", HERE, ids=lambda scene: scene.module)
def test_the_line_of_a_framework_is_what_its_scene_shows(scene: Scene, server: Server) -> None:
    seen = play(scene, server)
    assert seen == Seen(permitted=True, denied=True, down=True)
    line = row(scene, seen)
    assert rows_on_page().get(name_of(line)) == line


def test_every_scene_has_its_line() -> None:
    assert len(rows_on_page()) == len(list(SCENES.glob("*.py")))
