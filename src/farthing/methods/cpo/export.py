"""A trained network as the policy that ships."""

from farthing.features.rounds import FeatureSet
from farthing.methods.cpo.policy import NetworkPolicy
from farthing.rl.networks import Network


def to_policy(network: Network, features: FeatureSet) -> NetworkPolicy:
    """Return the policy that ships."""
    weights, biases = zip(*network.layers(), strict=True)
    return NetworkPolicy(features, [w.copy() for w in weights], [b.copy() for b in biases])
