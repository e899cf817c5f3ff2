"""Plans as text: it fits on a screen, and votes are told from record moments."""

from dataclasses import replace

from made_plan import made_plan, share

from secretballot.planning.plan.model import MomentsForecast
from secretballot.planning.plan.text import plan_text


def test_votes_are_recommended_with_their_rivals() -> None:
    text = plan_text(made_plan())
    assert "recommended  pate: accuracy 0.840 (0.820 to 0.860)" in text
    assert "noisy counts, 200 teachers, 1,000 queries; noise of standard deviation 20 votes" in text
    assert "instead      nothing else was planned, since the number of teachers was given" in text
    assert "sparse vector, 400 teachers, 1,000 queries, 2 abstentions allowed: 0.700" in text
    assert "epsilon      0.1: nothing useful   1: 0.840   4: 0.700" in text
    assert "twice the private records: 3.0 points more" in text


def test_votes_beside_record_moments_are_said_to_be_votes() -> None:
    moments = MomentsForecast(share(0.86), ((0.5, share(0.8)), (1.0, share(0.86))), 3000, 500)
    text = plan_text(replace(made_plan(), moments=moments))
    assert "recommended  record-moments: accuracy 0.860" in text
    assert "instead      pate: accuracy 0.840" in text
    assert "epsilon      0.5: 0.800   1: 0.860" in text
    assert "would help   by votes, twice the private records" in text
