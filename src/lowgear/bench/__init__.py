"""What things take on this machine: time, instructions, energy."""
