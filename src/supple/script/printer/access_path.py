"""`AccessPath`: where an object is found, from a root through fields, elements and keys."""

from supple.ir.access_path import AccessPath

__all__ = ["AccessPath"]
