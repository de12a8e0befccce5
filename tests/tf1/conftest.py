"""What of this folder is no test: programs, which test_programs.py runs, imports served."""

collect_ignore_glob = ["programs/*.py", "input_programs/*.py"]
