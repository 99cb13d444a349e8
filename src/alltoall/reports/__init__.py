"""Pages to look at: what files say, as one HTML page that needs nothing else."""
