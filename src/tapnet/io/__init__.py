"""File formats: finding, downloading, reading, checking, caching and writing graphs."""
