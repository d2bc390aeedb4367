"""What ships: a folder with a policy's weights and everything needed to use them honestly.

    bundle/
    ├── weights.safetensors   the policy's arrays
    ├── bundle.json           what the policy is, its threshold, its certificate, its origin
    └── trained/              the trained policy, where a reference answers in its place

Nothing in it can run code: arrays are safetensors, the policy's class is looked up by its
registered name, and neither torch nor scikit-learn is needed to load. The hashes in `bundle.json`
reveal damage and edits; they are no signature, so take bundles from people you trust.
"""
