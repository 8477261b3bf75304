"""What removes bias: each method one small piece, usable alone."""
