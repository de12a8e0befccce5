"""The examples that programs import their data from."""
