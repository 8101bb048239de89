"""The thin command line of kfd."""
