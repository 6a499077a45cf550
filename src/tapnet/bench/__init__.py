"""Side by side with PyG: the same work on the same data in one run, and the ratio of the times."""
