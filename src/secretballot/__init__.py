"""Learn publishable models from private labels with any black-box learner."""
