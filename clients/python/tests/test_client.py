"""The client, against a gate of its own."""

import errno

import pytest

import wirefs
from conftest import Gate


def test_a_file_is_written_committed_read_and_removed(gate, client):
    client.create("client-file", exclusive=True)
    with pytest.raises(FileExistsError):
        client.create("client-file", exclusive=True)
    contents = bytes(range(256)) * 10_000
    verifier = client.write("client-file", 0, contents)
    assert client.commit("client-file") == verifier
    assert (gate.tree / "client-file").read_bytes() == contents
    assert client.read("client-file", 100, 2_000_000) == contents[100:2_000_100]
    assert client.fetch("client-file") == contents
    version = client.attributes("client-file").version
    assert client.is_current("client-file", version)
    client.set_attributes("client-file", size=3, mode=0o600)
    assert not client.is_current("client-file", version)
    assert client.fetch("client-file") == contents[:3]
    client.remove("client-file")
    with pytest.raises(FileNotFoundError) as failure:
        client.attributes("client-file")
    assert failure.value.filename == "client-file"


def test_names_are_bytes(client):
    client.mkdir(b"\xff dir")
    client.symlink("to", b"\xff dir/link")
    assert client.readlink(b"\xff dir/link") == b"to"
    assert [entry.name for entry in client.list(b"\xff dir")] == [b"link"]
    with pytest.raises(OSError) as failure:
        client.rmdir(b"\xff dir")
    assert failure.value.errno == errno.ENOTEMPTY
    client.rename(b"\xff dir/link", "moved")
    client.remove("moved")
    client.rmdir(b"\xff dir")


def test_ten_thousand_entries_are_found_in_one_request(tmp_path):
    for directory in range(100):
        place = tmp_path / str(directory)
        place.mkdir()
        for number in range(99):
            (place / f"file {number}").touch()
    # A gate that starts now has nothing to notice.
    gate = Gate(tmp_path)
    with wirefs.Client(gate.address) as client:
        assert len({entry.name for entry in client.find("")}) == 10_000
        assert client.requests == 1
    filesystem = wirefs.WirefsFileSystem(*gate.address.split(":"))
    assert len(filesystem.find("")) == 9_900
    assert filesystem.client.requests == 1
    gate.end()


def test_a_gate_that_is_not_there_is_a_host_that_is_down():
    with wirefs.Client("127.0.0.1:1", deadline=20) as client:
        with pytest.raises(OSError) as failure:
            client.attributes("")
    assert failure.value.errno == errno.EHOSTDOWN
