"""Tests in folders like those of the package: `dbcare/studies/stored.py` has `studies/test_stored.py`."""
