"""A 3-D reaction-diffusion simulation that checkpoints every few steps."""
