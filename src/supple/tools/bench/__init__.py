"""``supple bench``: Supple beside the libraries that are installed, on the same inputs, in turn, in one process."""
