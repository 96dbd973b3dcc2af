"""What the command line knows of tasks: their settings, and whether data is there, without torch."""

import re
import subprocess
import sys
from dataclasses import fields

import pytest

from lrn import names, tasks
from lrn.tasks.settings import TaskSettings
from lrn.text.folders import plain_name
from lrn.training.config import EvaluateConfig, PredictConfig, TrainConfig


@pytest.mark.parametrize("name", names.TASKS)
def test_settings(name):
    task = tasks.settings(name)
    assert isinstance(task, TaskSettings)
    assert issubclass(task.train, TrainConfig)
    assert issubclass(task.evaluate, EvaluateConfig)
    assert issubclass(task.predict, PredictConfig)
    assert "quick" in task.presets
    assert task.files or task.described


@pytest.mark.parametrize(("name", "preset"), [(n, p) for n in names.TASKS for p in tasks.settings(n).presets])
def test_presets_are_settings(name, preset):
    task = tasks.settings(name)
    defaults = {field.name: field.default for field in fields(task.train)}
    for setting, value in task.presets[preset].items():
        assert type(value) is (str if defaults[setting] is None else type(defaults[setting])), setting
    task.train(**task.presets[preset], preset=preset)


def test_unknown_task():
    with pytest.raises(
        ValueError, match=rf"unknown task 'lmm'; allowed: {', '.join(names.TASKS)}; did you mean 'lm'\?"
    ):
        tasks.settings("lmm")


def test_without_torch():
    """And the function keeps its name, though a module has the same."""
    code = (
        "import sys; from lrn import tasks, names; [tasks.settings(name) for name in names.TASKS];"
        "import lrn.tasks.settings; assert callable(lrn.tasks.settings); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.fixture(params=names.TASKS)
def task(request):
    return tasks.settings(request.param)


def test_data_that_is_there(task, tmp_path):
    task.check_data(None)
    for files in task.files:
        folder = tmp_path / plain_name(files[0])
        folder.mkdir()
        for file in files:
            (folder / plain_name(file)).touch()
        task.check_data(str(folder))
    for name in task.builtin:
        task.check_data(name)


def test_data_that_is_not(task, tmp_path):
    """Which files are expected, and how to do without."""
    last = task.described or plain_name(task.files[-1][-1])
    expected = rf"expected .*{re.escape(last)}.*; without --data the built-in data is used$"
    with pytest.raises(FileNotFoundError, match=rf"^there is no folder {tmp_path}/none; {expected}"):
        task.check_data(str(tmp_path / "none"))
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match=rf"^{tmp_path}/file is a file, .*; {expected}"):
        task.check_data(str(tmp_path / "file"))
    if not task.files:  # their names depend on other settings
        return
    with pytest.raises(FileNotFoundError, match=rf"^{tmp_path} lacks .*; {expected}"):
        task.check_data(str(tmp_path))
    first, *others = map(plain_name, task.files[-1])
    (tmp_path / first).touch()
    missing = " and ".join(others)
    if missing:
        with pytest.raises(FileNotFoundError, match=rf"^{tmp_path} lacks {missing}; {expected}"):
            task.check_data(str(tmp_path))


def test_built_in_data_that_is_not():
    with pytest.raises(ValueError, match=r"'builtin:ceus'; allowed: .*; did you mean 'builtin:cues'\?"):
        tasks.settings("doc").check_data("builtin:ceus")
    with pytest.raises(FileNotFoundError, match="there is no folder builtin:cues"):
        tasks.settings("lm").check_data("builtin:cues")
