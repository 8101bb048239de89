"""What needs an NVIDIA device, run by ``h200.sh``; nothing here is collected by pytest."""
