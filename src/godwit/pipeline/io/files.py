"""Files and folders by path, wherever Spark reads and writes: this machine's by Python, all others by Hadoop."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from pyspark.sql import SparkSession

from godwit.pipeline.driver import is_remote
from godwit.pipeline.errors import PipelineError
from godwit.pipeline.io.hadoop import HadoopFiles

PATTERN = set("*?[{")
DEFAULT = "spark.hadoop.fs.defaultFS"


class LocalFiles:
    """Those of this machine. Checksums that Hadoop writes beside files are not shown, as Hadoop does not show them."""

    def exists(self, path: str) -> bool:
        return place(path).exists()

    def names(self, folder: str) -> list[str]:
        here = place(folder)
        return sorted(child.name for child in here.iterdir() if not _is_checksum(child)) if here.is_dir() else []

    def walk(self, path: str) -> list[tuple[str, int, int]]:
        here = place(path)
        found = [here] if here.is_file() else [one for one in here.rglob("*") if one.is_file()]
        told = [(str(one), one.stat()) for one in found if not _is_checksum(one)]
        return sorted((name, stat.st_mtime_ns, stat.st_size) for name, stat in told)

    def rename(self, path: str, to: str) -> None:
        try:
            place(path).rename(place(to))
        except OSError as error:
            raise PipelineError(f"{path} cannot be renamed to {to}: {error.strerror}") from None

    def delete(self, path: str) -> None:
        here = place(path)
        if here.is_dir() and not here.is_symlink():
            shutil.rmtree(here, ignore_errors=True)
        else:
            here.unlink(missing_ok=True)
            _checksum(here).unlink(missing_ok=True)

    def make_folder(self, path: str) -> None:
        place(path).mkdir(parents=True, exist_ok=True)

    def read(self, path: str) -> str | None:
        try:
            return place(path).read_text()
        except FileNotFoundError:
            return None

    def write(self, path: str, text: str) -> None:
        here = place(path)
        here.parent.mkdir(parents=True, exist_ok=True)
        # A checksum that Hadoop left of an older one would call this one damaged.
        _checksum(here).unlink(missing_ok=True)
        unfinished = here.with_name(f".{here.name}.{os.getpid()}")
        unfinished.write_text(text)
        unfinished.replace(here)

    def write_new(self, path: str, text: str) -> bool:
        try:
            with place(path).open("x") as file:
                file.write(text)
        except FileExistsError:
            return False
        except OSError as error:
            raise PipelineError(f"{path} cannot be written: {error.strerror}") from None
        return True


class Files:
    """A path without a scheme is of the session's own file system: this machine's, unless Hadoop is configured."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._hadoop: HadoopFiles | None = None

    def local(self, path: str) -> Path | None:
        """Where it is on this machine; None where it is not."""
        if "://" not in path and not path.startswith("file:") and self._has_default():
            return self._far(path).local(path)
        return place(path) if "://" not in path or path.startswith("file:") else None

    def exists(self, path: str) -> bool:
        return self._at(path).exists(path)

    def names(self, folder: str) -> list[str]:
        """What is in a folder, hidden files included; nothing where there is no folder."""
        return self._at(folder).names(folder)

    def walk(self, path: str) -> list[tuple[str, int, int]]:
        """Name, time of change and size of every file there, or of those that a pattern finds."""
        return (self._far(path) if set(path) & PATTERN else self._at(path)).walk(path)

    def rename(self, path: str, to: str) -> None:
        self._at(path).rename(path, to)

    def delete(self, path: str) -> None:
        """A file, or a folder with all that is in it; nothing where there is none."""
        self._at(path).delete(path)

    def make_folder(self, path: str) -> None:
        self._at(path).make_folder(path)

    def read(self, path: str) -> str | None:
        """The text of a small file; None where there is none."""
        return self._at(path).read(path)

    def write(self, path: str, text: str) -> None:
        """In the place of an older one."""
        self._at(path).write(path, text)

    def write_new(self, path: str, text: str) -> bool:
        """False where there is one already, which stays as it is."""
        return self._at(path).write_new(path, text)

    def _at(self, path: str) -> LocalFiles | HadoopFiles:
        return self._far(path) if self.local(path) is None else LocalFiles()

    def _has_default(self) -> bool:
        """Whether paths without a scheme may be of another machine: Hadoop's configuration says so."""
        if is_remote(self._spark):
            return False
        return "HADOOP_CONF_DIR" in os.environ or bool(self._spark.conf.get(DEFAULT, ""))

    def _far(self, path: str) -> HadoopFiles:
        if is_remote(self._spark):
            raise PipelineError(
                f"{path}: a client of Spark Connect has no Hadoop; right would be a path of a file system that this"
                " machine and the server both have, or a table"
            )
        if self._hadoop is None:
            self._hadoop = HadoopFiles(self._spark)
        return self._hadoop


def place(path: str) -> Path:
    """Of a file of this machine, with or without `file:`; as in Hadoop, nothing in it is quoted."""
    return Path(path.removeprefix("file:").removeprefix("//") if path.startswith("file:") else path).absolute()


def _checksum(file: Path) -> Path:
    return file.with_name(f".{file.name}.crc")


def _is_checksum(file: Path) -> bool:
    return file.name.startswith(".") and file.suffix == ".crc"


def beside(path: str, word: str) -> str:
    """A hidden name in the same folder."""
    folder, slash, name = path.rstrip("/").rpartition("/")
    return f"{folder}{slash}.{name}.{word}"


def within(path: str, name: str) -> str:
    return f"{path.rstrip('/')}/{name}"
