"""Linear programs and the solvers behind one interface; knows nothing of networks."""
