"""Devices that run slots stand for."""
