"""Generates the client from the published .proto before the package is built."""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

PROTO = Path(__file__).resolve().parent / "../../crates/wirefs-grpc/proto"


class GenerateAndBuild(build_py):
    """Writes wirefs/v1/wirefs_pb2.py and wirefs_pb2_grpc.py into the build directory."""

    def run(self):
        super().run()
        from grpc_tools import protoc

        out = Path(self.build_lib)
        (out / "wirefs/v1").mkdir(parents=True, exist_ok=True)
        arguments = ["protoc", f"-Iwirefs/v1={PROTO.resolve()}", f"--python_out={out}", f"--grpc_python_out={out}"]
        if protoc.main([*arguments, "wirefs/v1/wirefs.proto"]) != 0:
            raise RuntimeError("protoc failed")
        (out / "wirefs/v1/__init__.py").touch()


setup(cmdclass={"build_py": GenerateAndBuild})
