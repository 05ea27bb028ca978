"""Tables as sources, here in moto's S3 server on this machine; Hadoop's own s3a comes from Maven and is not tried."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.fs as fs
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")
pytest.importorskip("deltalake")
pytest.importorskip("pyiceberg")
pytest.importorskip("moto")

from moto.server import ThreadedMotoServer
from pyiceberg.utils.config import Config
from pyspark.sql import SparkSession
from tests.brokers import own_ports

from godwit.pipeline.io.lake.publication import published
from godwit.pipeline.io.reading import read
from godwit.pipeline.schemas import SITES


@pytest.fixture
def port() -> Iterator[int]:
    with own_ports(1) as [own]:
        yield own


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, port: int) -> Iterator[str]:
    """A bucket called lake, and the environment by which clients find it."""
    running = ThreadedMotoServer(ip_address="127.0.0.1", port=port, verbose=False)
    running.start()
    place = f"http://127.0.0.1:{port}"
    told = {"ENDPOINT_URL": place, "ACCESS_KEY_ID": "k", "SECRET_ACCESS_KEY": "s", "REGION": "us-east-1"}
    told |= {"ALLOW_HTTP": "true", "DEFAULT_REGION": "us-east-1", "EC2_METADATA_DISABLED": "true"}
    for name, value in told.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    store = fs.S3FileSystem(endpoint_override=place, access_key="k", secret_key="s", allow_bucket_creation=True)
    store.create_dir("lake")
    catalog = {"TYPE": "sql", "URI": f"sqlite:///{tmp_path / 'catalog.db'}", "WAREHOUSE": "s3://lake/warehouse"}
    catalog |= {
        "S3__ENDPOINT": place,
        "S3__ACCESS_KEY_ID": "k",
        "S3__SECRET_ACCESS_KEY": "s",
        "S3__REGION": "us-east-1",
    }
    for name, value in catalog.items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__FAR__{name}", value)
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())
    yield place
    running.stop()


@pytest.mark.parametrize("target", ["delta:s3://lake/delta", "iceberg:far.fleet"])
def test_tables_are_published_to_a_bucket_and_read_back_by_tasks(
    target: str, server: str, spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "out" / "sites").mkdir(parents=True)
    told = pa.table({"site": ["a", "b"], "lat": [1.0, 2.0], "lon": [3.0, 4.0]})
    pq.write_table(told, tmp_path / "out" / "sites" / "a.parquet")
    assert published(str(tmp_path / "out"), target) == {"sites": 2}
    address = f"{target}{'/' if target.startswith('delta') else '.'}sites"
    assert {row.site for row in read(spark, address, SITES, "sites").good.collect()} == {"a", "b"}
