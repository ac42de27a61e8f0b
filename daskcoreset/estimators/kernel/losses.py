r"""Losses of the margin :math:`z = y \langle w, \varphi(x) \rangle` in one form.

.. math:: f(w) = \frac12 |w|^2 + \frac{\lambda}{M} \sum_i u_i\, l(z_i),
          \qquad \nabla l = a\, \varphi(x), \quad a = y\, l'(z).

hinge :math:`[1 - z]_+`, squared hinge :math:`[1 - z]_+^2` and that of the optimal margin
distribution machine, :math:`([1 - \theta - z]_+^2 + \mu [z - 1 - \theta]_+^2) / (1 - \theta)^2`,
of which the squared hinge is the case :math:`\theta = \mu = 0`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from daskcoreset.core.errors import InvalidInputError
from daskcoreset.core.typing import FloatArray
from daskcoreset.core.validation import is_choice

# Widths from the corner of a rounded hinge at which its curvature, a thousandth, ends.
_REACH = 30.0


@dataclass(frozen=True)
class MarginLoss:
    r"""One loss.

    Parameters
    ----------
    name : str
    theta : float, default=0.0
        Half the width of the band of margins without loss, in [0, 1).
    mu : float, default=0.0
        Weight of margins beyond the band.
    linear : bool, default=False
        The hinge, instead of squares.
    width : float, default=0.0
        How widely the corner of the hinge is rounded, to :math:`(s + \sqrt{s^2 + width^2}) / 2`
        with s = 1 - z; zero for the hinge itself.

    References
    ----------
    Tan, Zhang and Wang (2019), Remarks 1 and 2. (The 1/m inside the loss of Remark 2 is a
    misprint, for equation 3 divides already.)
    """

    name: str
    theta: float = 0.0
    mu: float = 0.0
    linear: bool = False
    width: float = 0.0

    @property
    def low(self) -> float:
        """Margin below which there is loss."""
        return 1.0 - self.theta

    @property
    def high(self) -> float:
        """Margin above which there is loss."""
        return 1.0 + self.theta

    @property
    def scale(self) -> float:
        """Factor of the squares."""
        return 1.0 / (1.0 - self.theta) ** 2

    @property
    def numbers(self) -> FloatArray:
        """The parameters as the compiled loops take them."""
        return np.array([self.low, self.high, self.scale, self.mu, float(self.linear)])

    def value(self, z: FloatArray) -> FloatArray:
        """Loss of margins.

        Examples
        --------
        >>> LOSSES["squared_hinge"].value(np.array([-1.0, 0.5, 2.0]))
        array([4.  , 0.25, 0.  ])
        """
        if not self.linear:
            short = np.maximum(self.low - z, 0.0)
            out = short * short
            if self.mu:
                over = np.maximum(z - self.high, 0.0)
                out += self.mu * (over * over)
            return np.asarray(out * self.scale)
        gap = 1.0 - z
        if not self.width:
            return np.maximum(gap, 0.0)
        # Written so that nothing cancels where the gap is negative.
        root = np.sqrt(gap * gap + self.width**2)
        return np.asarray(np.maximum(gap, 0.0) + 0.5 * self.width**2 / (root + np.abs(gap)))

    def slope(self, z: FloatArray) -> FloatArray:
        """Return derivatives with respect to the margin; of the hinge, from the left at 1.

        Examples
        --------
        >>> LOSSES["hinge"].slope(np.array([0.0, 1.0, 2.0]))
        array([-1., -1.,  0.])
        """
        if not self.linear:
            out = np.minimum(z - self.low, 0.0)
            if self.mu:
                out += self.mu * np.maximum(z - self.high, 0.0)
            return np.asarray(out * (2.0 * self.scale))
        if not self.width:
            return np.where(z <= 1.0, -1.0, 0.0)
        gap = 1.0 - z
        return np.asarray(-0.5 - 0.5 * gap / np.sqrt(gap * gap + self.width**2))

    def curvature(self, z: FloatArray) -> FloatArray:
        """Second derivative with respect to the margin, where there is one.

        Of the rounded hinge more than that, as far as 30 widths from the corner: halfway to the
        curvature of the least parabola that touches the loss and lies above it. With that one
        steps are never too long, but many; with the second derivative more than half are too
        long, and on three sets the hinge took half as many reads again.

        Examples
        --------
        >>> LOSSES["squared_hinge"].curvature(np.array([0.0, 2.0]))
        array([2., 0.])
        """
        if not self.linear:
            out = (z < self.low).astype(np.float64)
            if self.mu:
                out += self.mu * (z > self.high)
            return np.asarray(out * (2.0 * self.scale))
        if not self.width:
            return np.zeros_like(z)
        gap = 1.0 - z
        bend = 0.5 * self.width / (gap * gap + self.width**2)
        return np.where(np.abs(gap) < _REACH * self.width, bend, 0.0)

    @property
    def smoothness(self) -> float:
        """The largest second derivative; infinite for the hinge."""
        if not self.linear:
            return 2.0 * self.scale * max(1.0, self.mu)
        return 1.0 / (2.0 * self.width) if self.width else np.inf

    def safe_radius(self, lam: float) -> float:
        r"""Radius of a ball about zero that holds the optimum.

        There :math:`|w|^2 = -(\lambda / M) \sum_i u_i z_i l'(z_i)`, and :math:`-z l'(z)` is at
        most 1 for the hinge and 1/2 for the others. Theorem 1's radius :math:`\lambda` for the
        squared hinge would cut off the optimum where :math:`\lambda < 1/2`.

        Examples
        --------
        >>> LOSSES["hinge"].safe_radius(4.0), LOSSES["squared_hinge"].safe_radius(8.0)
        (2.0, 2.0)
        """
        return float(np.sqrt(lam if self.linear else lam / 2.0))

    def slope_bound(self, radius: float) -> float:
        """Largest absolute derivative where ``|z| <= radius``; A of Theorem 4.

        Examples
        --------
        >>> LOSSES["squared_hinge"].slope_bound(2.0)
        6.0
        """
        return float(np.abs(self.slope(np.array([-radius, radius]))).max())

    def smoothed(self, width: float) -> MarginLoss:
        """Return the hinge with a rounded corner, above the hinge by ``width / 2`` at most."""
        return replace(self, width=width)


# The losses by name; `resolve_loss` sets the parameters of "odm".
LOSSES = {
    "hinge": MarginLoss("hinge", linear=True),
    "squared_hinge": MarginLoss("squared_hinge"),
    "odm": MarginLoss("odm", theta=0.4, mu=0.4),
}


def resolve_loss(name: str, *, theta: float, mu: float) -> MarginLoss:
    """Return the loss of a name.

    Parameters
    ----------
    name : {"hinge", "squared_hinge", "odm"}
    theta, mu : float
        Of "odm"; the others have none, but wrong values are refused all the same.

    Returns
    -------
    MarginLoss

    Raises
    ------
    InvalidInputError
        If the name is not known, theta is outside [0, 1) or mu outside (0, 1].

    Examples
    --------
    >>> resolve_loss("odm", theta=0.2, mu=0.5)
    MarginLoss(name='odm', theta=0.2, mu=0.5, linear=False, width=0.0)
    """
    if not 0.0 <= theta < 1.0:
        raise InvalidInputError(
            f"theta={theta} is outside [0, 1); pass half the width of the band of margins without "
            f"loss, such as 0.4."
        )
    if not 0.0 < mu <= 1.0:
        raise InvalidInputError(
            f"mu={mu} is outside (0, 1]; pass the weight of margins above the band against those "
            f"below, such as 0.4."
        )
    if not is_choice(name, LOSSES):
        raise InvalidInputError(
            f"loss={name!r} is not known; pass one of {', '.join(map(repr, LOSSES))}."
        )
    loss = LOSSES[name]
    return replace(loss, theta=float(theta), mu=float(mu)) if name == "odm" else loss


def resolve_lambda(lam: float | None, C: float | None, weight: float) -> float:
    r"""Return :math:`\lambda = C M`, of which exactly one is given; C is 1 without both.

    Raises
    ------
    InvalidInputError
        If both are given.

    Examples
    --------
    >>> resolve_lambda(None, 0.5, 100.0), resolve_lambda(8.0, None, 100.0)
    (50.0, 8.0)
    """
    if lam is not None and C is not None:
        raise InvalidInputError(
            f"lam={lam} and C={C} are two scales of the same thing, lam = C * n; pass one of them."
        )
    return float(lam) if lam is not None else (1.0 if C is None else float(C)) * weight
