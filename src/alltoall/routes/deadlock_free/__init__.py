"""The best routes under deadlock freedom, by orders of channels and programs over these."""
