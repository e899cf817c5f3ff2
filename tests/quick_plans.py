"""Plans in a tenth of the time, for tests that do not look at how good their numbers are."""

from contextlib import contextmanager

import pytest

from secretballot.planning import best_setting, moments_forecast, stand_in


def few_budgets_in(patched):
    """Forecast record moments at two budgets instead of six."""
    patched.setattr(moments_forecast, "FRONTIER", (1.0, 4.0))
    patched.setattr(moments_forecast, "_HERE", 0)
    patched.setattr(moments_forecast, "_HALVED", (0, 1))


@contextmanager
def quick_forecasts():
    """Forecast from fewer teachers and folds, for fewer settings and budgets, where the numbers of
    a plan are not looked at."""
    with pytest.MonkeyPatch.context() as quick:
        few_budgets_in(quick)
        quick.setattr(moments_forecast, "_TURNS", 2)
        quick.setattr(moments_forecast, "N_STAGES", 2)
        quick.setattr(stand_in, "_TRAINED", 20)
        quick.setattr(best_setting, "_FOLDS", 2)
        quick.setattr(best_setting, "FRONTIER", (1.0, 2.0))
        quick.setattr(best_setting, "_FINALISTS", 3)
        quick.setattr(best_setting, "_ACTIVE_LENGTHS", (0.4,))
        quick.setattr(best_setting, "_STOPS", (10,))
        # their calibration takes most of the time of a small plan
        quick.setattr(best_setting, "_tables_for", lambda *_: [])
        quick.setattr(best_setting, "_TEACHER_STEP", 4.0)
        quick.setattr(best_setting, "_QUERY_STEP", 4.0)
        yield
