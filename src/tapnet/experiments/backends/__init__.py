"""Where trials run: processes of this machine, a Ray cluster, several devices."""
