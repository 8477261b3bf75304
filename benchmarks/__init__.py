"""Speed and memory of evenrank, each as a ratio to a peer in the same run: ``make bench``."""
