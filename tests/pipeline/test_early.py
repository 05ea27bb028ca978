"""The source of a stream connects to Spark before it loads anything; test_source.py shows that Spark then takes it."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest

from godwit.pipeline import early


def test_whoever_knows_the_secret_is_connected_before_pyspark_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as java:
        monkeypatch.setenv("PYTHON_WORKER_FACTORY_PORT", str(java.getsockname()[1]))
        monkeypatch.setenv("PYTHON_WORKER_FACTORY_SECRET", "é")
        code = "import sys; from godwit.pipeline.early import connection; connection(); print('pyspark' in sys.modules)"
        worker = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        accepted, _ = java.accept()
        with accepted, accepted.makefile("rwb") as file:
            assert file.read(6) == b"\0\0\0\x02" + "é".encode()
            file.write(b"\0\0\0\x02ok")
            file.flush()
            told, _ = worker.communicate()
    assert told == "False\n"


def test_where_spark_has_another_way_it_is_left_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHON_WORKER_FACTORY_PORT", raising=False)
    assert early.connection() is None
