"""Fakes and scripted peers, shipped so that others can try the system without a GPU or a model."""
