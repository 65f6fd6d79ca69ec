"""The public exception classes."""

from supple.base.errors import (
    ArgumentError,
    DiagnosticError,
    ExecutionError,
    FieldError,
    InternalError,
    MissingFunctionError,
    NotSupportedError,
    RegistryError,
    SuppleError,
    TypeCheckError,
)

__all__ = [
    "ArgumentError",
    "DiagnosticError",
    "ExecutionError",
    "FieldError",
    "InternalError",
    "MissingFunctionError",
    "NotSupportedError",
    "RegistryError",
    "SuppleError",
    "TypeCheckError",
]
