"""What several tests share: random graphs, commands as processes, the dense formulas, faults, hostile input."""
