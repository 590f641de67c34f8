"""pandas and pyarrow through fsspec, on a gate that WIREFS_GATE names: scripts/python long puts it 20 ms away."""

import os

import fsspec
import pandas
import pyarrow.dataset
import pyarrow.parquet
import pytest

URL = f"wirefs://{os.environ['WIREFS_GATE']}"


@pytest.fixture
def filesystem():
    filesystem, _ = fsspec.core.url_to_fs(URL)
    filesystem.makedirs("frames", exist_ok=True)
    yield filesystem
    filesystem.rm("frames", recursive=True)


@pytest.fixture
def frame():
    return pandas.DataFrame({"number": range(100_000), "text": [f"row {n}" for n in range(100_000)]})


def test_pandas_writes_and_reads_csv_and_parquet(filesystem, frame):
    for kind in ("csv", "parquet"):
        url = f"{URL}/frames/frame.{kind}"
        getattr(frame, f"to_{kind}")(url, index=False)
        read = getattr(pandas, f"read_{kind}")(url)
        pandas.testing.assert_frame_equal(read, frame)


def test_a_csv_file_of_two_megabytes_takes_few_requests(filesystem, frame):
    before = filesystem.client.requests
    with filesystem.open("frames/frame.csv", "w") as file:
        frame.to_csv(file, index=False)
    assert filesystem.client.requests - before == 1, "one Store"
    before = filesystem.client.requests
    assert len(filesystem.cat_file("frames/frame.csv")) > 1_500_000
    assert filesystem.client.requests - before == 1, "one Fetch"


def test_pyarrow_writes_and_reads_a_partitioned_dataset(filesystem, frame):
    table = pyarrow.Table.from_pandas(frame.assign(part=frame.number % 4))
    pyarrow.dataset.write_dataset(
        table, "frames/set", filesystem=filesystem, format="parquet", partitioning=["part"]
    )
    found = pyarrow.dataset.dataset("frames/set", filesystem=filesystem, partitioning=["part"]).to_table()
    assert found.num_rows == 100_000
    assert sorted(found.column("number").to_pylist()) == list(range(100_000))
    one = pyarrow.dataset.dataset("frames/set", filesystem=filesystem, partitioning=["part"])
    assert one.to_table(filter=pyarrow.dataset.field("part") == 1).num_rows == 25_000
