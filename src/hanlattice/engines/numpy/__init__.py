"""The numpy engine: models without torch, compiled kernels or ONNX Runtime.

Nothing is padded: the characters of all sentences of a batch are rows of one array, and so are their words.

- ``flat``: FLAT with one layer
- ``bilstm``, ``lattice_lstm``: recurrences, which read the sentences of a batch in step
- ``idcnn``: convolutions
"""
