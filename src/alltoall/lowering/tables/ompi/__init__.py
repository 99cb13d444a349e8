"""Source-routed MPI: an XML of queue pairs whose hashes steer."""
