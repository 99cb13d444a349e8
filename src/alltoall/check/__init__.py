"""The judges: they import the nouns and nothing that produces them, which makes them evidence."""
