"""What is deployed, in NumPy alone: the controller, its file, what it costs and its dial. Imports no JAX."""
