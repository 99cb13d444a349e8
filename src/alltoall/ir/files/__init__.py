"""Bytes in and out: text with limits, JSON, compact arrays, XML, and the choice between them."""
