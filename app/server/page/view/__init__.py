"""Renders the page: transcript rows to blocks, blocks to HTML, and patches for open pages."""
