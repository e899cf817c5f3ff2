"""Teachers of the shards of a table, as tests train them."""

import numpy as np

from secretballot.teachers import TeacherEnsemble
from secretballot.teachers.ensemble import Shards


def ensemble_of(teacher, X, y, shards, *, n_teachers, **training):
    """Return one teacher for each shard of a table."""
    source = Shards(X, np.asarray(y), np.asarray(shards), n_teachers)
    return TeacherEnsemble.fit(teacher, source, **training)
