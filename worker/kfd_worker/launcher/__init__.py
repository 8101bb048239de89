"""The process that makes boxes: started before gRPC, and the only one that runs what candidates brought."""
