"""Hadoop's file systems, which are those that Spark reads and writes: hdfs, s3a, gs and what else a session knows.

They are Java's, so a session of this process is needed; `files` asks for them only where a path is not of this machine.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from godwit.pipeline.errors import PipelineError


class HadoopFiles:
    """Files and folders by path; one without a scheme is of the session's own file system."""

    def __init__(self, spark: SparkSession) -> None:
        self._jvm: Any = spark._jvm
        self._hadoop: Any = spark._jsc.hadoopConfiguration()

    def local(self, path: str) -> Path | None:
        """Where it is on this machine; None where it is not."""
        system = self._system(path)
        if system.getScheme() != "file":
            return None
        return Path(system.makeQualified(self._path(path)).toUri().getPath())

    def exists(self, path: str) -> bool:
        return bool(self._system(path).exists(self._path(path)))

    def names(self, folder: str) -> list[str]:
        if not self.exists(folder):
            return []
        return sorted(status.getPath().getName() for status in self._system(folder).listStatus(self._path(folder)))

    def walk(self, path: str) -> list[tuple[str, int, int]]:
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
        if not self.exists(path):
            return None
        stream = self._system(path).open(self._path(path))
        try:
            return bytes(stream.readAllBytes()).decode()
        finally:
            stream.close()

    def write(self, path: str, text: str) -> None:
        stream = self._system(path).create(self._path(path), True)
        stream.write(text.encode())
        stream.close()

    def write_new(self, path: str, text: str) -> bool:
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
