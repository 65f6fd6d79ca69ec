"""Python text from a tree of documents: `doc` has the kinds, `doc_printer.to_python_script` writes the text."""

from supple.script.printer import doc, doc_printer

__all__ = ["doc", "doc_printer"]
