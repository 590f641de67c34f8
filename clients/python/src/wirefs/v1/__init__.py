"""The messages and the stub of wirefs.v1, generated from wirefs.proto when the package is installed."""
