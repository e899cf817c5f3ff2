"""Pictures and captions of what was asked, round by round."""
