"""Students as files: canonical bytes, what a file may hold, and the conversion to ONNX."""
