"""What files look like: one format per file; finding, downloading, reading, checking and caching data sets."""
