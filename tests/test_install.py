"""Building and installing as README says it: from the sources and a wheel, with a compiler and without."""

import re
import shlex
import shutil
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
import torch
from fresh import NO_COMPILER, ROOT, Environment, done, run, write_wheel

import lrn
from lrn import checks

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
LIBRARIES = ("lrn/recurrence/cpu/liblrn_cpu.so", "lrn/recurrence/cpu/liblrn.so")
HERE = (f"VENV={sys.prefix}", "-o", f"{sys.prefix}/torch")
"""What makes ``make`` take the environment that runs the tests, rather than set up one."""

with_engine = pytest.mark.skipif(
    "cpu" not in lrn.engines() or shutil.which("make") is None, reason="the engine cannot be built here"
)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """What ``make wheel`` makes. It takes what was compiled when this checkout was installed."""
    folder = tmp_path_factory.mktemp("wheel")
    done("make", "wheel", *HERE, f"DIST={folder}")
    (file,) = folder.iterdir()
    return file


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """The sources as they are given away: an unpacked source distribution."""
    folder = tmp_path_factory.mktemp("sources")
    code = "import sys; sys.path.insert(0, 'tools'); import lrn_build; lrn_build.build_sdist(sys.argv[1])"
    done(sys.executable, "-c", code, folder)
    (file,) = folder.iterdir()
    with tarfile.open(file) as archive:
        archive.extractall(folder, filter="data")
    return folder / file.name.removesuffix(".tar.gz")


@pytest.fixture(scope="module")
def from_wheel(wheel, tmp_path_factory):
    """An environment with torch and the wheel, from which no compiler can be found."""
    environment = Environment(tmp_path_factory.mktemp("from_wheel") / "env")
    environment.borrow("torch")
    environment.pip("install", "--no-index", wheel, **without_compiler(environment))
    return environment


@pytest.fixture(scope="module")
def editable(sources, tmp_path_factory):
    """An environment where the sources are installed editable, and without the engine."""
    environment = Environment(tmp_path_factory.mktemp("editable") / "env")
    environment.borrow("torch", "scikit-build-core", "cmake", "ninja")
    environment.pip("install", "--no-index", "--no-build-isolation", "-e", sources, **NO_COMPILER)
    return environment


def without_compiler(environment):
    variables = {"PATH": str(environment.bin), **NO_COMPILER}
    assert not any(shutil.which(name, path=variables["PATH"]) for name in ("c++", "g++", "clang++", "cc"))
    return variables


def doctor(environment, *words, **variables):
    """What ``lrn doctor`` says, where no checkout is around."""
    return done(environment.bin / "lrn", "doctor", *words, cwd=environment.folder, **variables)


# What is built -----------------------------------------------------------------------------------


@with_engine
def test_one_wheel_for_every_python_and_torch(wheel):
    assert wheel.name == f"lrn_torch-{PROJECT['version']}-py3-none-linux_x86_64.whl"
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        about = f"lrn_torch-{PROJECT['version']}.dist-info"
        assert "\nTag: py3-none-linux_x86_64\n" in archive.read(f"{about}/WHEEL").decode()
        assert "\nName: lrn-torch\n" in archive.read(f"{about}/METADATA").decode()
        assert all(archive.read(name).startswith(b"\x7fELF") for name in LIBRARIES)
    assert {"lrn/__init__.py", "lrn/py.typed"} <= names
    assert {Path(name).parts[0] for name in names} == {"lrn", about}
    assert not [name for name in names if name.endswith((".cpp", ".h"))]


def test_source_distribution(sources):
    """All that a build reads, nothing that it leaves behind."""
    for name in ("pyproject.toml", "CMakeLists.txt", "tools/lrn_build.py", "constraints.txt", "LICENSE"):
        assert (sources / name).is_file(), name
    core = {path.relative_to(ROOT) for path in (ROOT / "src").rglob("*") if path.suffix in (".cpp", ".h")}
    assert core
    assert all((sources / path).is_file() for path in core)
    assert not any((sources / name).exists() for name in (".git", ".venv", "build", "dist"))


@with_engine
def test_no_wheel_without_the_engine(sources, tmp_path):
    ended = run("make", "wheel", *HERE, f"DIST={tmp_path / 'dist'}", cwd=sources, **NO_COMPILER)
    assert ended.returncode != 0
    assert "lrn: no C++ compiler" in ended.stdout + ended.stderr
    assert not list(tmp_path.rglob("*.whl"))


# What is installed -------------------------------------------------------------------------------


@with_engine
def test_wheel_without_compiler(from_wheel):
    said = doctor(from_wheel, "--seconds", "0.5", **without_compiler(from_wheel))
    assert re.search(r"^engines: cpu, ", said, re.M), said
    assert "the cpu engine agrees with the definition" in said
    assert "RuntimeWarning" not in said
    assert all((from_wheel.packages / name).is_file() for name in LIBRARIES)


def test_sources_without_compiler(editable, sources):
    """It installs all the same, says what is missing, and the next build looks for a compiler again."""
    said = doctor(editable, "--seconds", "0")
    assert "engine 'cpu' is missing (it was not built when lrn was installed)" in said
    assert "in lrn's source folder: pip install . " in said
    assert "everything runs by definition" not in said  # the engine that is parallel in time is checked
    cache = (sources / "build" / "cmake" / "CMakeCache.txt").read_text()
    assert "NOTFOUND" not in "".join(re.findall(r"^CMAKE_CXX_COMPILER:.*$", cache, re.M))


def least(requirement):
    """Name and oldest version of a requirement.

    >>> least("lightning>=2.6.6,<3")
    ('lightning', '2.6.6')
    """
    return re.match(r"([\w-]+)[>=]=([\d.]+)", requirement).groups()


@pytest.mark.parametrize(
    "kind", [pytest.param("from_wheel", marks=with_engine), "editable"], ids=["wheel", "editable"]
)
def test_hints_work_wherever_it_was_installed_from(kind, request, tmp_path):
    """pip leaves lrn as it is, and adds what the extra brings, also by way of another extra."""
    environment = request.getfixturevalue(kind)
    packages = dict(map(least, [*EXTRAS["train"], *EXTRAS["elmo"][1:]]))
    for name, version in packages.items():
        write_wheel(tmp_path / "registry", name, version)
    before = record(environment)
    command, install, extra = shlex.split(checks.install("elmo"))
    assert (command, install) == ("pip", "install")
    environment.pip(install, "--no-index", "--find-links", tmp_path / "registry", extra)
    assert record(environment) == before
    installed = {path.name for path in environment.packages.glob("*.dist-info")}
    assert {f"{name}-{version}.dist-info" for name, version in packages.items()} <= installed


def record(environment):
    """What pip remembers of our files, and when it wrote it."""
    (file,) = environment.packages.glob("lrn_torch-*.dist-info/RECORD")
    return file.stat().st_mtime_ns, file.read_text()


@pytest.fixture
def room(tmp_path_factory):
    """A folder for an environment with a torch of its own, which is not kept; and the registry is there."""
    folder = tmp_path_factory.mktemp("readme")
    if shutil.disk_usage(folder).free < 4 << 30:
        pytest.skip("less than 4 GB left for temporary files")
    probe = ("download", "--no-deps", "--timeout", "60", "--retries", "2", "-d", folder, "scikit-build-core")
    if run(sys.executable, "-m", "pip", *probe).returncode:
        pytest.skip("no package registry can be reached")
    yield folder
    shutil.rmtree(folder)


@with_engine
@pytest.mark.slow
def test_readme_in_a_fresh_environment(sources, room):
    """The lines of README; the second one first without a compiler, then once more as the warning says."""
    text = (ROOT / "README.md").read_text()
    first, second, third = (shlex.split(line) for line in re.findall(r"`(pip install [^`]+)`", text))
    assert (first, second) == (["pip", "install", "torch"], ["pip", "install", "."])
    environment = Environment(room / "env", pip=True)

    def pip(_, command, *words, **variables):
        constraints = {"PIP_CONSTRAINT": "constraints.txt"}
        return done(environment.bin / "pip", command, *words, cwd=sources, **constraints, **variables)

    if torch.version.cuda is None:
        pip(*first, "--no-compile")
    else:
        environment.borrow("torch")  # gigabytes
    pip(*second, **NO_COMPILER)
    (cure,) = re.findall(r"source folder: (pip install \.) ", doctor(environment, "--seconds", "0"))
    pip(*shlex.split(cure))
    said = doctor(environment, "--seconds", "1")
    assert re.search(r"^engines: cpu, ", said, re.M), said
    assert "the cpu engine agrees with the definition" in said
    assert "RuntimeWarning" not in said
    (added,) = re.findall(r"^Would install (.*)$", pip(*third, "--dry-run"), re.M)
    assert "lightning-" in added
    assert not re.search(r"\b(torch|lrn[-_]torch)-\d", added)


# What is said ------------------------------------------------------------------------------------


def texts():
    yield from (ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "Makefile"))
    yield from (path for path in ROOT.glob("docs/*.md"))
    yield from (path for path in (ROOT / "src").rglob("*.py"))


def test_nobody_is_told_to_install_a_stranger():
    """The registry's lrn is another project."""
    assert PROJECT["name"] == checks.DISTRIBUTION == "lrn-torch"
    found = []
    for path in texts():
        for words, extras in re.findall(
            r"pip install ((?:-\S+ )*'?[\w.-]+)(?:\[([\w,]+)\])?", path.read_text()
        ):
            name = words.split()[-1].lstrip("'")
            assert name in (".", "torch", checks.DISTRIBUTION), f"{path}: pip install {words}"
            assert set(filter(None, extras.split(","))) <= set(EXTRAS), f"{path}: {words}[{extras}]"
            found.append(name)
    assert {".", "torch", checks.DISTRIBUTION} == set(found)


def test_every_hint_names_an_extra_that_exists():
    named = set(checks.EXTRAS.values())
    for path in (ROOT / "src").rglob("*.py"):
        named |= set(re.findall(r"\binstall\(['\"](\w+)['\"]\)", path.read_text()))
    assert {"train", "peers", "gpu"} <= named <= set(EXTRAS)
    for requirement in (each for extra in EXTRAS.values() for each in extra):
        assert not requirement.startswith("lrn["), requirement
