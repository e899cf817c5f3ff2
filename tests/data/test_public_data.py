"""What tests rest on: reference data as published."""

import numpy as np

from public_data import ADULT_CLASSES, ADULT_SCHEMA, ADULT_TARGET, adult
from reference_data import reference
from secretballot.data.schema import Schema


def test_adult_is_as_published_and_its_schema_has_every_cell_but_the_unknown_ones():
    frames = reference(adult)
    assert [frame.shape for frame in frames] == [(32561, 15), (16281, 15)]
    assert [(frame[ADULT_TARGET] == ">50K").sum() for frame in frames] == [7841, 3846]
    for frame in frames:
        assert set(frame[ADULT_TARGET]) == set(ADULT_CLASSES)
        for name, spec in ADULT_SCHEMA["columns"].items():
            if spec == "numeric":
                assert frame[name].dtype == np.int64
            else:
                assert set(frame[name]) <= {*spec, "?"}
    schema = Schema.from_json(ADULT_SCHEMA, public=frames.test.drop(columns=ADULT_TARGET))
    assert schema.classes == ADULT_CLASSES
    assert not schema.encoding(frames.train.head(100)).unreadable
