"""Term frequencies and TF-IDF of the pages in a web archive, while it is being read."""
