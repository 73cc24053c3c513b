"""Files of weights: safetensors, their indices, and what torch.save and torch.jit.save write."""
