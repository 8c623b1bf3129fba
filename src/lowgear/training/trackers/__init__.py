"""Where a run is shown besides its directory: TensorBoard, Weights & Biases, MLflow, behind one interface."""
