"""The C++ engine. Python sees it only as registered torch ops; see ``../ops.py``."""
