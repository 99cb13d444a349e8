"""What lowered programs do: interpreters that find deadlocks, races, wrong and missing chunks."""
