"""Have Hadoop set the modes of files by itself in tests: where it has no library, it starts `chmod` for each file.

A third of the processor time of a small write went into that. `tools.warm` compiles `tests/spark/DirectFiles.java`,
where there is a `javac`, and every Java that tests start finds it behind Spark's own jars. Without a `javac`, tests run
as users' jobs do.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import tempfile
from hashlib import blake2b
from pathlib import Path
from zipfile import ZipFile

SOURCE = Path(__file__).parents[1] / "tests" / "spark" / "DirectFiles.java"
NAME = "godwit.tests.DirectFiles"
SERVICE = "META-INF/services/org.apache.hadoop.fs.FileSystem"
"""Of several classes for one kind of address, Hadoop takes the last that a file of this name tells."""
VARIABLE = "SPARK_DIST_CLASSPATH"
"""Names jars that come after Spark's own, so that Java still takes Spark's classes from an archive."""


def jar() -> Path | None:
    """Where it is, or would be; none without Spark."""
    spark = importlib.util.find_spec("pyspark")
    if spark is None or spark.origin is None:
        return None
    digest = blake2b(SOURCE.read_bytes() + spark.origin.encode(), digest_size=8).hexdigest()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))
    return cache / "godwit" / "tests" / f"direct-files-{digest}.jar"


def make() -> None:
    """Compile it, where that was not done and can be."""
    made, compiler, spark = jar(), shutil.which("javac"), importlib.util.find_spec("pyspark")
    if made is None or made.exists() or compiler is None or spark is None or spark.origin is None:
        return
    made.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=made.parent) as name:
        folder = Path(name)
        jars = Path(spark.origin).parent / "jars" / "*"
        words = [compiler, "--release", "17", "-proc:none", "-nowarn", "-cp", str(jars), "-d", str(folder), str(SOURCE)]
        if subprocess.run(words, stderr=subprocess.DEVNULL, check=False).returncode != 0:
            return
        with ZipFile(folder / "made.jar", "w") as written:
            for file in sorted(folder.rglob("*.class")):
                written.write(file, file.relative_to(folder))
            written.writestr(SERVICE, NAME + "\n")
        (folder / "made.jar").rename(made)


def use() -> None:
    """For all that this process starts from now on, where it was made."""
    made = jar()
    if made is not None and made.exists():
        os.environ[VARIABLE] = str(made)
