"""One module for each family of commands, imported when called."""
