"""The gate, with failures as OSError."""

import errno
import os
from typing import Iterator, Optional

import grpc

from wirefs.v1 import wirefs_pb2 as messages
from wirefs.v1 import wirefs_pb2_grpc as service

#: The data of one message, at most, in bytes.
DATA_BYTES_MAX = 1024 * 1024
#: The port of gates unless one is named.
PORT_DEFAULT = 6441

_OPTIONS = [
    ("grpc.max_receive_message_length", 2 * DATA_BYTES_MAX),
    ("grpc.max_send_message_length", 2 * DATA_BYTES_MAX),
    # A long listing comes without a wait for the receiver in between.
    ("grpc.http2.lookahead_bytes", 16 * DATA_BYTES_MAX),
]

#: The meaning of a status without Linux's number, of another server or of the connection itself.
_CODES = {
    grpc.StatusCode.NOT_FOUND: errno.ENOENT,
    grpc.StatusCode.ALREADY_EXISTS: errno.EEXIST,
    grpc.StatusCode.PERMISSION_DENIED: errno.EACCES,
    grpc.StatusCode.UNAUTHENTICATED: errno.EACCES,
    grpc.StatusCode.INVALID_ARGUMENT: errno.EINVAL,
    grpc.StatusCode.OUT_OF_RANGE: errno.EINVAL,
    grpc.StatusCode.RESOURCE_EXHAUSTED: errno.ENOSPC,
    grpc.StatusCode.UNIMPLEMENTED: errno.EOPNOTSUPP,
    grpc.StatusCode.DEADLINE_EXCEEDED: errno.ETIMEDOUT,
    grpc.StatusCode.UNAVAILABLE: errno.EHOSTDOWN,
    grpc.StatusCode.ABORTED: errno.EAGAIN,
    grpc.StatusCode.CANCELLED: errno.EINTR,
}


def to_os_error(error: grpc.RpcError, path: bytes = b"") -> OSError:
    """Returns the failure as the OSError of a local file system."""
    numbers = dict(error.trailing_metadata() or ())
    number = int(numbers.get("wirefs-errno", _CODES.get(error.code(), errno.EIO)))
    return OSError(number, os.strerror(number), os.fsdecode(path))


class _Calls:
    """Calls of the stub, counted, whose failures are OSErrors."""

    def __init__(self, stub, deadline: Optional[float]):
        self._stub = stub
        self._deadline = deadline
        self.count = 0

    def one(self, name: str, request, path: bytes = b""):
        self.count += 1
        try:
            return getattr(self._stub, name)(request, timeout=self._deadline)
        except grpc.RpcError as error:
            raise to_os_error(error, path) from error

    def stream(self, name: str, request, path: bytes = b"") -> Iterator:
        self.count += 1
        try:
            yield from getattr(self._stub, name)(request, timeout=self._deadline)
        except grpc.RpcError as error:
            raise to_os_error(error, path) from error


class Client:
    """A connected gate. Paths are bytes or text, relative to the gate's source.

    `credentials` are those of a gate with certificates (`grpc.ssl_channel_credentials`), `deadline` is in seconds, of
    each call, and a call that takes longer fails with ETIMEDOUT.
    """

    def __init__(
        self,
        address: str,
        credentials: Optional[grpc.ChannelCredentials] = None,
        deadline: Optional[float] = None,
    ):
        if credentials is None:
            self._channel = grpc.insecure_channel(address, options=_OPTIONS)
        else:
            self._channel = grpc.secure_channel(address, credentials, options=_OPTIONS)
        self._calls = _Calls(service.FileSystemStub(self._channel), deadline)

    @property
    def requests(self) -> int:
        """The requests that were sent so far."""
        return self._calls.count

    def close(self) -> None:
        """Ends the connection."""
        self._channel.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_error) -> None:
        self.close()

    def _path(self, name: str, path):
        path = os.fsencode(path)
        return self._calls.one(name, messages.Path(path=path), path)

    def attributes(self, path) -> messages.Attributes:
        """Returns the attributes of an object; of a symbolic link, its own."""
        return self._path("GetAttributes", path)

    def set_attributes(self, path, **changes) -> messages.Attributes:
        """Changes mode, size, uid, gid, accessed, modified."""
        path = os.fsencode(path)
        return self._calls.one("SetAttributes", messages.SetAttributesRequest(path=path, **changes), path)

    def list(self, path) -> Iterator[messages.Entry]:
        """Lists a directory, with attributes. One request."""
        path = os.fsencode(path)
        return self._calls.stream("ReadDirectory", messages.Path(path=path), path)

    def find(self, path, depth: int = 0) -> Iterator[messages.Entry]:
        """Lists a subtree, by paths below `path`; `depth` levels, 0: all. One request."""
        path = os.fsencode(path)
        return self._calls.stream("Find", messages.FindRequest(path=path, depth=depth), path)

    def read(self, path, offset: int, count: int) -> bytes:
        """Reads up to `count` bytes: one request for each MiB."""
        path, parts = os.fsencode(path), []
        while count > 0:
            wanted = min(count, DATA_BYTES_MAX)
            part = self._calls.one("Read", messages.ReadRequest(path=path, offset=offset, count=wanted), path).data
            parts.append(part)
            offset, count = offset + len(part), count - len(part)
            if len(part) < wanted:
                break
        return b"".join(parts)

    def fetch(self, path) -> bytes:
        """Reads a whole file. One request."""
        path = os.fsencode(path)
        chunks = self._calls.stream("Fetch", messages.Path(path=path), path)
        return b"".join(chunk.data for chunk in chunks)

    def write(self, path, offset: int, data: bytes, append: bool = False) -> int:
        """Writes all; it is stable after a commit that returns the same verifier. Returns the verifier."""
        path, view, verifiers = os.fsencode(path), memoryview(data), set()
        for start in range(0, max(len(view), 1), DATA_BYTES_MAX):
            part = bytes(view[start : start + DATA_BYTES_MAX])
            request = messages.WriteRequest(path=path, offset=offset + start, data=part, append=append)
            verifiers.add(self._calls.one("Write", request, path).verifier)
        if len(verifiers) > 1:
            raise OSError(errno.EIO, "the gate has restarted between two writes: write again", os.fsdecode(path))
        return verifiers.pop()

    def commit(self, path) -> int:
        """Waits for the server's disk. Returns the verifier."""
        return self._path("Commit", path).verifier

    def store(self, path, parts, mode: int = 0o644) -> messages.Attributes:
        """Replaces a file by the bytes of `parts`, at the end and as a whole. One request."""
        path = os.fsencode(path)

        def requests():
            yield messages.StoreRequest(path=path, mode=mode)
            for part in parts:
                for start in range(0, len(part), DATA_BYTES_MAX):
                    yield messages.StoreRequest(data=bytes(part[start : start + DATA_BYTES_MAX]))
            yield messages.StoreRequest(is_last=True)

        return self._calls.one("Store", requests(), path)

    def create(self, path, mode: int = 0o644, exclusive: bool = False) -> messages.Attributes:
        """Creates an empty file; leaves one that is there as it is, or fails if `exclusive`."""
        path = os.fsencode(path)
        return self._calls.one("Create", messages.CreateRequest(path=path, mode=mode, exclusive=exclusive), path)

    def mkdir(self, path, mode: int = 0o755) -> messages.Attributes:
        """Makes a directory."""
        path = os.fsencode(path)
        return self._calls.one("MakeDirectory", messages.CreateRequest(path=path, mode=mode), path)

    def remove(self, path) -> None:
        """Removes a name of something that is no directory."""
        self._path("Remove", path)

    def rmdir(self, path) -> None:
        """Removes an empty directory."""
        self._path("RemoveDirectory", path)

    def rename(self, source, target) -> None:
        """Renames; replaces what is there."""
        source, target = os.fsencode(source), os.fsencode(target)
        request = messages.TwoPaths(**{"from": source, "to": target})
        self._calls.one("Rename", request, source)

    def readlink(self, path) -> bytes:
        """Returns the target of a symbolic link."""
        return self._path("ReadLink", path).target

    def symlink(self, target, path) -> messages.Attributes:
        """Makes a symbolic link at `path`."""
        path = os.fsencode(path)
        return self._calls.one("Symlink", messages.SymlinkRequest(path=path, target=os.fsencode(target)), path)

    def is_current(self, path, version: int) -> bool:
        """Whether the object still has this version (`Attributes.version`)."""
        path = os.fsencode(path)
        return self._calls.one("Validate", messages.ValidateRequest(path=path, version=version), path).is_current
