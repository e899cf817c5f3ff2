"""What all families share: private tables read cell by cell, shards, teachers, and the account
of a fit."""
