"""One file a method: the policy that serves, its learner, and the card that names both."""
