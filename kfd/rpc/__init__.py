"""The daemon's side of the wire: servicers, translation, interceptors."""
