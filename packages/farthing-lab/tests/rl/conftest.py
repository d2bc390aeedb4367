"""What the room's tests share: one thread, as training has, for the arrays are small."""

import torch

torch.set_num_threads(1)
