"""Long campaigns behind make targets: hostile inputs, kills and full disks, and attacks on whole
commands."""
