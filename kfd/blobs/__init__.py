"""Content-addressed files of the daemon."""

from kfd.blobs.store import BlobStore

__all__ = ["BlobStore"]
