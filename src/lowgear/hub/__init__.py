"""A controller as a folder that the Hugging Face hub takes as a model; pushing it is a person's own command."""
