"""From a finding to a decision: whether a ranking may ship, and a fairer order of it without training."""
