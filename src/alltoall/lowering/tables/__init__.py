"""Routes become tables: one file or folder per format."""
