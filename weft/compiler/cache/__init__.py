"""Programs on disk: what some process has compiled is ready without its compiler."""
