"""Running work in parallel: compiled loops, threads, parts of files, Ray."""
