"""fsspec's own suites, and what they leave out."""

import fsspec
import fsspec.tests.abstract as abstract
import pytest

import wirefs


class WirefsFixtures(abstract.AbstractFixtures):
    @pytest.fixture
    def fs(self, gate):
        host, port = gate.address.split(":")
        return wirefs.WirefsFileSystem(host, int(port))

    @pytest.fixture
    def fs_path(self, fs):
        fs.makedirs("suite", exist_ok=True)
        yield "suite"
        fs.rm("suite", recursive=True)

    @pytest.fixture
    def fs_join(self):
        return lambda *parts: "/".join(str(part) for part in parts)


class TestCopy(abstract.AbstractCopyTests, WirefsFixtures):
    """fs.copy."""


class TestGet(abstract.AbstractGetTests, WirefsFixtures):
    """fs.get."""


class TestPut(abstract.AbstractPutTests, WirefsFixtures):
    """fs.put."""


class TestOpen(abstract.AbstractOpenTests, WirefsFixtures):
    """fs.open."""


class TestPipe(abstract.AbstractPipeTests, WirefsFixtures):
    """fs.pipe."""


def test_a_url_names_gate_and_file(gate):
    url = f"wirefs://{gate.address}/by/url.txt"
    with fsspec.open(url, "wt") as file:
        file.write("hello\n")
    assert (gate.tree / "by/url.txt").read_text() == "hello\n"
    with fsspec.open(url, "ab") as file:
        file.write(b"more\n")
    with fsspec.open(url) as file:
        assert file.read() == b"hello\nmore\n"
    filesystem, path = fsspec.core.url_to_fs(url)
    assert path == "by/url.txt" and filesystem.unstrip_protocol(path) == url
    filesystem.mv(path, "by/moved.txt")
    assert filesystem.cat_file("by/moved.txt", start=-5) == b"more\n"
    assert filesystem.ls("by", detail=False) == ["by/moved.txt"]
    filesystem.rm("by", recursive=True)


def test_a_written_file_appears_at_its_close_and_as_a_whole(gate):
    filesystem = wirefs.WirefsFileSystem(*gate.address.split(":"))
    filesystem.pipe_file("whole", b"old")
    with filesystem.open("whole", "wb", block_size=1 << 20) as file:
        for _ in range(5):
            file.write(bytes(1 << 20))
        assert filesystem.cat_file("whole") == b"old"
    assert filesystem.info("whole")["size"] == 5 << 20
    with filesystem.transaction:
        with filesystem.open("whole", "wb") as file:
            file.write(b"new")
        assert filesystem.info("whole")["size"] == 5 << 20
    assert filesystem.cat_file("whole") == b"new"
    filesystem.rm_file("whole")


def test_a_url_may_name_an_ipv6_address_with_or_without_port():
    parse = wirefs.WirefsFileSystem._get_kwargs_from_urls
    assert parse("wirefs://[::1]/f") == {"host": "[::1]", "port": 6441}
    assert parse("wirefs://[::1]:7000/f") == {"host": "[::1]", "port": 7000}
    assert parse("wirefs://host/f") == {"host": "host", "port": 6441}
    assert parse("wirefs://host:7000/f") == {"host": "host", "port": 7000}
    assert parse("wirefs:///f") == {}
