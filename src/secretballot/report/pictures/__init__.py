"""Pictures of released values, and the style that all pictures share."""
