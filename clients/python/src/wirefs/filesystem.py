"""`wirefs://host:port/path` for fsspec, and so for pandas, pyarrow, dask and others."""

import errno
import os
from datetime import datetime, timezone

from fsspec.spec import AbstractBufferedFile, AbstractFileSystem

from wirefs.client import PORT_DEFAULT, Client
from wirefs.v1 import wirefs_pb2 as messages

_KINDS = {messages.FILE: "file", messages.DIRECTORY: "directory", messages.SYMLINK: "link"}


class WirefsFileSystem(AbstractFileSystem):
    """A gate for gRPC as a file system.

    A written file appears at its close, whole, in place of the former one. Nothing is cached here: the gate caches.
    Symbolic links are listed as links, and not followed.
    """

    protocol = "wirefs"
    root_marker = ""

    def __init__(self, host="127.0.0.1", port=PORT_DEFAULT, credentials=None, deadline=None, **options):
        options["use_listings_cache"] = False
        super().__init__(**options)
        self.host, self.port = host, port
        self.client = Client(f"{host}:{port}", credentials, deadline)

    @classmethod
    def _strip_protocol(cls, path):
        if isinstance(path, list):
            return [cls._strip_protocol(one) for one in path]
        path = os.fspath(path)
        if path.startswith("wirefs://"):
            path = path[len("wirefs://") :].partition("/")[2]
        return "/".join(name for name in path.split("/") if name)

    @staticmethod
    def _get_kwargs_from_urls(path):
        if not path.startswith("wirefs://"):
            return {}
        gate = path[len("wirefs://") :].partition("/")[0]
        host, colon, port = gate.rpartition(":")
        # The colons of an IPv6 address are in brackets.
        if not colon or gate.endswith("]"):
            host, port = gate, PORT_DEFAULT
        return {"host": host, "port": int(port)} if host else {}

    def unstrip_protocol(self, name):
        return f"wirefs://{self.host}:{self.port}/{self._strip_protocol(name)}"

    @staticmethod
    def _info(path, found):
        modified = found.modified.seconds + found.modified.nanoseconds / 1e9
        kind = _KINDS.get(found.kind, "other")
        return {
            "name": path,
            "size": found.size if kind == "file" else 0,
            "type": kind,
            "mode": found.mode,
            "uid": found.uid,
            "gid": found.gid,
            "ino": found.inode,
            "nlink": found.links,
            "mtime": modified,
            "version": found.version,
        }

    def info(self, path, **_options):
        path = self._strip_protocol(path)
        return self._info(path, self.client.attributes(path))

    def ls(self, path, detail=True, **_options):
        path = self._strip_protocol(path)
        try:
            entries = [
                self._info(f"{path}/{name}" if path else name, entry.attributes)
                for entry in self.client.list(path)
                for name in [os.fsdecode(entry.name)]
            ]
        except NotADirectoryError:
            entries = [self.info(path)]
        entries.sort(key=lambda entry: entry["name"])
        return entries if detail else [entry["name"] for entry in entries]

    def find(self, path, maxdepth=None, withdirs=False, detail=False, **_options):
        """Lists all files below, in one request."""
        if maxdepth is not None and maxdepth < 1:
            raise ValueError("maxdepth must be at least 1")
        path = self._strip_protocol(path)
        found = {}
        try:
            for entry in self.client.find(path, maxdepth or 0):
                name = os.fsdecode(entry.name)
                full = f"{path}/{name}" if path else name
                if withdirs or entry.attributes.kind != messages.DIRECTORY:
                    found[full] = self._info(full, entry.attributes)
            if withdirs and path:
                found[path] = self.info(path)
        except NotADirectoryError:
            found[path] = self.info(path)
        except FileNotFoundError:
            pass
        names = sorted(found)
        return {name: found[name] for name in names} if detail else names

    def mkdir(self, path, create_parents=True, **_options):
        path = self._strip_protocol(path)
        if create_parents and "/" in path:
            self.makedirs(self._parent(path), exist_ok=True)
        self.client.mkdir(path)

    def makedirs(self, path, exist_ok=False):
        names = self._strip_protocol(path).split("/")
        for count in range(1, len(names) + 1):
            try:
                self.client.mkdir("/".join(names[:count]))
            except FileExistsError:
                if count == len(names) and not exist_ok:
                    raise
            except OSError as error:
                # The source itself has no name, and is there.
                if error.errno != errno.EBUSY or names != [""]:
                    raise

    def rmdir(self, path):
        self.client.rmdir(self._strip_protocol(path))

    def rm_file(self, path):
        """Removes a file or an empty directory: fsspec removes trees by this."""
        path = self._strip_protocol(path)
        try:
            self.client.remove(path)
        except IsADirectoryError:
            self.client.rmdir(path)

    def cp_file(self, path1, path2, **_options):
        source, target = self._strip_protocol(path1), self._strip_protocol(path2)
        try:
            contents = self.client.fetch(source)
        except IsADirectoryError:
            return self.makedirs(target, exist_ok=True)
        self._store(target, [contents])

    def mv(self, path1, path2, recursive=False, maxdepth=None, **options):
        """Renames at the server. Patterns and lists are moved as fsspec does, by copies."""
        if isinstance(path1, str) and isinstance(path2, str) and not set(path1) & set("*?["):
            source, target = self._strip_protocol(path1), self._strip_protocol(path2)
            if path2.endswith("/") or (source != target and self.isdir(target)):
                target = f"{target}/{source.rpartition('/')[2]}"
            return self.client.rename(source, target)
        super().mv(path1, path2, recursive=recursive, maxdepth=maxdepth, **options)

    def _store(self, path, parts):
        """Stores a file, and makes the directories above it as object stores seem to."""
        parts = list(parts)
        try:
            self.client.store(path, parts)
        except FileNotFoundError:
            if "/" not in path:
                raise
            self.makedirs(self._parent(path), exist_ok=True)
            self.client.store(path, parts)

    def cat_file(self, path, start=None, end=None, **_options):
        path = self._strip_protocol(path)
        if start is None and end is None:
            return self.client.fetch(path)
        size = self.client.attributes(path).size if (start or 0) < 0 or end is None or end < 0 else None
        start, end = self._place(start or 0, size), self._place(size if end is None else end, size)
        return self.client.read(path, start, max(0, end - start))

    @staticmethod
    def _place(offset, size):
        return max(0, size + offset) if offset < 0 else offset

    def pipe_file(self, path, value, mode="overwrite", **_options):
        path = self._strip_protocol(path)
        if mode == "create":
            self._claim(path)
        self._store(path, [value])

    def _claim(self, path):
        """Creates an empty file that was not there."""
        try:
            self.client.create(path, exclusive=True)
        except FileNotFoundError:
            if "/" not in path:
                raise
            self.makedirs(self._parent(path), exist_ok=True)
            self.client.create(path, exclusive=True)

    def touch(self, path, truncate=True, **_options):
        path = self._strip_protocol(path)
        if truncate:
            return self._store(path, [])
        if self.exists(path):
            self.client.set_attributes(path, modified_now=True)
        else:
            self._store(path, [])

    def modified(self, path):
        return datetime.fromtimestamp(self.info(path)["mtime"], timezone.utc)

    def ukey(self, path):
        return str(self.info(path)["version"])

    def _open(self, path, mode="rb", block_size=None, autocommit=True, cache_options=None, **options):
        if mode not in ("rb", "wb", "ab", "xb"):
            raise ValueError(f"files are opened as rb, wb, ab or xb, and not as {mode}")
        if mode == "xb":
            self._claim(path)
        size = block_size or AbstractBufferedFile.DEFAULT_BLOCK_SIZE
        return WirefsFile(self, path, mode, size, autocommit, cache_options=cache_options, **options)


class WirefsFile(AbstractBufferedFile):
    """An open file. What is written is stored at the close, as a whole; what is appended is written as it comes."""

    def _fetch_range(self, start, end):
        return self.fs.client.read(self.path, start, end - start)

    def _initiate_upload(self):
        self._parts = []
        if "a" in self.mode:
            self.fs.client.create(self.path)

    def _upload_chunk(self, final=False):
        data = self.buffer.getvalue()
        if "a" in self.mode:
            if data:
                self.fs.client.write(self.path, 0, data, append=True)
            if final:
                self.fs.client.commit(self.path)
            return True
        self._parts.append(data)
        if final and self.autocommit:
            self.commit()
        return True

    def commit(self):
        """Makes the written file appear."""
        if "a" not in self.mode:
            self.fs._store(self.path, self._parts)
            self._parts = []

    def discard(self):
        """Drops what was written."""
        self._parts = []
