"""Training one network: settings, the trainer, process groups, and the protocols that say which epoch counts."""
