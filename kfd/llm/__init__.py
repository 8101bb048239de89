"""Where answers come from: models over HTTP, recordings, people."""
