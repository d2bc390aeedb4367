"""One folder a method: a policy that serves, a learner that makes it, and a card that names it."""
