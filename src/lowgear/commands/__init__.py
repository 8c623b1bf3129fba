"""The commands that need more than a few lines, one file each; heavy imports wait inside their functions."""
