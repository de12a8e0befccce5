"""When two graphs are one: canonical forms, content and fingerprints."""
