"""REX: a learning rate that falls ever faster towards the end (Chen et al., 2021)."""


def rex(progress: float, warm: float = 0.0) -> float:
    """Return the share of the first learning rate, after so much of the training.

    It is (1 - z) / (1/2 + 1/2 (1 - z)) at progress z: high for long, 0 at the end. In the warm-up
    that is multiplied by z / warm, so that the rate rises from 0.

    Args:
        progress: z, the share of all updates that are done, in [0, 1].
        warm: the share of all updates that the warm-up takes, in [0, 1]; 0: none.

    Raises:
        ValueError: either is outside [0, 1].

    Source: Chen et al. 2021, "REX: Revisiting Budgeted Training with an Improved Schedule"
    (arXiv 2107.04197); the warm-up is ours.

    >>> rex(0.0), rex(0.5), rex(1.0)
    (1.0, 0.6666666666666666, 0.0)
    >>> rex(0.0, warm=0.2), rex(0.1, warm=0.2) == rex(0.1) / 2, rex(0.5, warm=0.2) == rex(0.5)
    (0.0, True, True)
    """
    if not (0.0 <= progress <= 1.0 and 0.0 <= warm <= 1.0):
        raise ValueError(f"progress {progress} and warm {warm} must both be in [0, 1]")
    left = 1.0 - progress
    risen = min(1.0, progress / warm) if warm else 1.0
    return risen * left / (0.5 + 0.5 * left)
