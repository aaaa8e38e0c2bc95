"""Stretto for Python programs: `stretto.spark` trains on the executors of a Spark cluster."""
__version__ = "0.1.0"
