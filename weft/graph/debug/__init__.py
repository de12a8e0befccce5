"""Watch a program while it runs: nodes that show, stop and check, and a debugger over graphs."""
