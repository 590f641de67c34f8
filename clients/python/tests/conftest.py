"""A gate over a temporary directory, for each session of tests."""

import os
import subprocess
from pathlib import Path

import pytest

import wirefs

ROOT = Path(__file__).resolve().parents[3]


class Gate:
    """A running gate."""

    def __init__(self, tree):
        self.tree = tree
        program = os.environ.get("WIREFS_GRPC", str(ROOT / "target/debug/wirefs-grpc"))
        command = [program, str(tree), "--grpc", "127.0.0.1:0"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().split()[-1]

    def end(self):
        self.process.terminate()
        self.process.wait()
        self.process.stdout.close()


@pytest.fixture(scope="session")
def gate(tmp_path_factory):
    gate = Gate(tmp_path_factory.mktemp("tree"))
    yield gate
    gate.end()


@pytest.fixture
def client(gate):
    with wirefs.Client(gate.address) as client:
        yield client
