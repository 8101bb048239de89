"""The daemon: reactor, effects, configuration, lifespan and command line."""
