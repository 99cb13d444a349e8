"""Routes that are the best under deadlock freedom: one program over layered graphs, and orders."""
