"""Hadoop's file systems, which are those that Spark reads and writes: the one place that asks them by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from godwit.pipeline.errors import PipelineError


class Files:
    """Files and folders by path; one without a scheme is of the session's own file system."""

    def __init__(self, spark: SparkSession) -> None:
        self._jvm: Any = spark._jvm
        self._hadoop: Any = spark._jsc.hadoopConfiguration()

    def exists(self, path: str) -> bool:
        return bool(self._system(path).exists(self._path(path)))

    def local(self, path: str) -> Path | None:
        """Where it is on this machine; None where it is not."""
        system = self._system(path)
        if system.getScheme() != "file":
            return None
        return Path(system.makeQualified(self._path(path)).toUri().getPath())

    def names(self, folder: str) -> list[str]:
        """What is in a folder, hidden files included; nothing where there is no folder."""
        if not self.exists(folder):
            return []
        return sorted(status.getPath().getName() for status in self._system(folder).listStatus(self._path(folder)))

    def walk(self, path: str) -> list[tuple[str, int, int]]:
        """Name, time of change and size of every file there, or of those that a pattern finds."""
        system, found = self._system(path), list[tuple[str, int, int]]()
        for place in system.globStatus(self._path(path)) or ():
            files = system.listFiles(place.getPath(), True)
            while files.hasNext():
                file = files.next()
                found.append((file.getPath().toString(), file.getModificationTime(), file.getLen()))
        return sorted(found)

    def rename(self, path: str, to: str) -> None:
        if not self._system(path).rename(self._path(path), self._path(to)):
            raise PipelineError(f"{path} cannot be renamed to {to}: may this user write there?")

    def delete(self, path: str) -> None:
        self._system(path).delete(self._path(path), True)

    def make_folder(self, path: str) -> None:
        self._system(path).mkdirs(self._path(path))

    def read(self, path: str) -> str | None:
        """The text of a small file; None where there is none."""
        if not self.exists(path):
            return None
        stream = self._system(path).open(self._path(path))
        try:
            return bytes(stream.readAllBytes()).decode()
        finally:
            stream.close()

    def write(self, path: str, text: str) -> None:
        """In the place of an older one."""
        stream = self._system(path).create(self._path(path), True)
        stream.write(text.encode())
        stream.close()

    def write_new(self, path: str, text: str) -> bool:
        """False where there is one already, which stays as it is."""
        try:
            stream = self._system(path).create(self._path(path), False)
        except Py4JJavaError as error:
            if self.exists(path):
                return False
            raise PipelineError(f"{path} cannot be written: {error.java_exception.getMessage()}") from None
        stream.write(text.encode())
        stream.close()
        return True

    def _path(self, path: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(path)

    def _system(self, path: str) -> Any:
        return self._path(path).getFileSystem(self._hadoop)


def beside(path: str, word: str) -> str:
    """A hidden name in the same folder."""
    folder, slash, name = path.rstrip("/").rpartition("/")
    return f"{folder}{slash}.{name}.{word}"


def within(path: str, name: str) -> str:
    return f"{path.rstrip('/')}/{name}"
