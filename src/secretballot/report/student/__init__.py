"""The student as an ONNX file: how it is written, checked and read."""
