"""Back ends: what turns a kernel program into something that runs."""
