"""A client of the wirefs gate for gRPC (`wirefs-grpc SOURCE --grpc HOST:PORT`), and a file system for fsspec."""

from wirefs.client import Client
from wirefs.filesystem import WirefsFileSystem

__all__ = ["Client", "WirefsFileSystem"]
