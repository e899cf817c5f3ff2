"""Encryption at rest of the files in a vault: an option, authenticated, with a key of the user's.

A vault has one data key, kept in its `encryption.json` wrapped by the user's key (`envelope`). Each
file is encrypted by a key of its own that follows from the data key, a random salt and the file's
place (`sealed_files`). Keys are asked for where the user says (`key_sources`); which vaults are
open is known to this process alone (`unlocked`). `whole_vaults` converts a vault that is there.

Random salts and data keys are drawn by the library of the cipher from the operating system. They
are no noise: what is released does not depend on them.
"""
