"""Programs of this folder are no tests: test_programs.py runs them with their imports served."""

collect_ignore_glob = ["programs/*.py"]
