"""Bayesian linear regression on noise of known size, its two variances by marginal likelihood."""

from dataclasses import dataclass

import numpy as np

from secretballot._typing import FloatArray

# Grids of the two variances, in units of the mean squared target that the features could explain.
# Steps of 10**0.25 are far finer than the evidence can distinguish.
_SIGNALS = 10.0 ** np.arange(-6, 4.01, 0.25)
_MISFITS = np.concatenate([[0.0], 10.0 ** np.arange(-4, 1.01, 0.25)])
# Directions below this share of the largest eigenvalue are rounding, not data.
_RANK_TOLERANCE = 1e-10


@dataclass
class Moments:
    """Sums over rows that determine the regression, added up block by block to bound the memory.

    Attributes
    ----------
    n_rows : int
    row_sum : ndarray of shape (n_features,)
    gram : ndarray of shape (n_features, n_features)
        Sum of the outer products of the rows.
    target_sum : ndarray of shape (n_outputs,)
    cross : ndarray of shape (n_features, n_outputs)
    target_squares : float
        Sum of squares of all targets, about their mean once `centred`.
    """

    n_rows: int
    row_sum: FloatArray
    gram: FloatArray
    target_sum: FloatArray
    cross: FloatArray
    target_squares: float

    @classmethod
    def empty(cls, n_features: int, n_outputs: int) -> "Moments":
        """Return the moments of no rows."""
        return cls(
            0,
            np.zeros(n_features),
            np.zeros((n_features, n_features)),
            np.zeros(n_outputs),
            np.zeros((n_features, n_outputs)),
            0.0,
        )

    def add(self, rows: FloatArray, targets: FloatArray) -> None:
        """Add feature rows of shape (n, n_features) and targets of shape (n, n_outputs)."""
        self.n_rows += len(rows)
        self.row_sum += rows.sum(axis=0)
        self.gram += rows.T @ rows
        self.target_sum += targets.sum(axis=0)
        self.cross += rows.T @ targets
        self.target_squares += float((targets**2).sum())

    def centred(self) -> "Moments":
        """Return the moments about the means, as an intercept under a flat prior sees them."""
        mean, target_mean = self.row_sum / self.n_rows, self.target_sum / self.n_rows
        return Moments(
            self.n_rows,
            mean,
            self.gram - self.n_rows * np.outer(mean, mean),
            target_mean,
            self.cross - self.n_rows * np.outer(mean, target_mean),
            max(0.0, self.target_squares - self.n_rows * float((target_mean**2).sum())),
        )


@dataclass(frozen=True)
class Posterior:
    """Posterior mean of a linear regression, and the evidence that chose its variances.

    Attributes
    ----------
    coef : ndarray of shape (n_features, n_outputs)
    intercept : ndarray of shape (n_outputs,)
    log_evidence : float
    signal : float
        Prior variance of the fitted function, averaged over the rows; in squared target units.
    misfit : float
        Variance that is neither noise nor linear; same units.
    """

    coef: FloatArray
    intercept: FloatArray
    log_evidence: float
    signal: float
    misfit: float


def fit_by_evidence(moments: Moments, noise_variance: float) -> Posterior:
    """Return the posterior mean under the variances of largest marginal likelihood.

    Model: target = intercept + row . coef + misfit + noise; coef has independent Gaussian priors of
    equal variance, the intercept a flat one, the noise the known variance. All outputs share the
    two variances.

    Parameters
    ----------
    moments : Moments
        Not yet centred; at least one row.
    noise_variance : float
        Of each target; positive.
    """
    # In the eigenbasis of the features every pair of variances costs a sum over directions alone,
    # so that a grid of hundreds of pairs is cheap; what lies outside of all directions is misfit
    # and noise.
    centre = moments.centred()
    values, vectors = np.linalg.eigh(centre.gram)
    kept = values > max(_RANK_TOLERANCE * float(values.max(initial=0.0)), 0.0)
    values, vectors = values[kept], vectors[:, kept]
    if not len(values):
        return Posterior(np.zeros_like(centre.cross), centre.target_sum, 0.0, 0.0, 0.0)
    loadings = (vectors.T @ centre.cross) / np.sqrt(values)[:, None]
    energies = (loadings**2).sum(axis=1)
    relative = values / values.sum() * centre.n_rows
    n_outputs = centre.cross.shape[1]
    degrees = max(0, (centre.n_rows - 1 - len(values)) * n_outputs)
    rest = max(0.0, centre.target_squares - float(energies.sum())) if degrees else 0.0

    # Scaled by what of the targets is not noise, so that one grid serves every release.
    unit = max(
        centre.target_squares / (centre.n_rows * n_outputs) - noise_variance, 1e-3 * noise_variance
    )
    signals, misfits = unit * _SIGNALS, unit * _MISFITS
    scatter = noise_variance + misfits
    totals = signals[:, None, None] * relative + scatter[None, :, None]
    log_evidence = -0.5 * (
        n_outputs * np.log(totals).sum(axis=-1)
        + (energies / totals).sum(axis=-1)
        + degrees * np.log(scatter)
        + rest / scatter
    )
    best_signal, best_misfit = np.unravel_index(int(np.argmax(log_evidence)), log_evidence.shape)
    prior = signals[best_signal] * relative
    shrunk = loadings * (prior / (prior + scatter[best_misfit]))[:, None]
    coef = vectors @ (shrunk / np.sqrt(values)[:, None])
    return Posterior(
        coef,
        centre.target_sum - centre.row_sum @ coef,
        float(log_evidence[best_signal, best_misfit]),
        float(signals[best_signal]),
        float(misfits[best_misfit]),
    )
