"""Coverage coresets: core points such that every row is near one."""
