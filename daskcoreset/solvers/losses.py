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

from daskcoreset.core.typing import FloatArray


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

    References
    ----------
    Tan, Zhang and Wang (2019), Remarks 1 and 2. The 1/m inside the loss of Remark 2 is a misprint,
    because equation 3 divides already.
    """

    name: str
    theta: float = 0.0
    mu: float = 0.0
    linear: bool = False

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
        short = np.maximum(self.low - z, 0.0)
        if self.linear:
            return np.asarray(short)
        out = short * short
        if self.mu:
            over = np.maximum(z - self.high, 0.0)
            out += self.mu * (over * over)
        return np.asarray(out * self.scale)

    def slope(self, z: FloatArray) -> FloatArray:
        """Return derivatives with respect to the margin. The hinge has its left derivative at 1.

        Examples
        --------
        >>> LOSSES["hinge"].slope(np.array([0.0, 1.0, 2.0]))
        array([-1., -1.,  0.])
        """
        if self.linear:
            return np.where(z <= 1.0, -1.0, 0.0)
        out = np.minimum(z - self.low, 0.0)
        if self.mu:
            out += self.mu * np.maximum(z - self.high, 0.0)
        return np.asarray(out * (2.0 * self.scale))

    def curvature(self, z: FloatArray) -> FloatArray:
        """Second derivative with respect to the margin, of the smooth losses.

        Examples
        --------
        >>> LOSSES["squared_hinge"].curvature(np.array([0.0, 2.0]))
        array([2., 0.])
        """
        out = (z < self.low).astype(np.float64)
        if self.mu:
            out += self.mu * (z > self.high)
        return np.asarray(out * (2.0 * self.scale))

    @property
    def smoothness(self) -> float:
        """Largest second derivative. The hinge has the value of the squared hinge."""
        return 2.0 if self.linear else 2.0 * self.scale * max(1.0, self.mu)

    def safe_radius(self, lam: float) -> float:
        r"""Radius of a ball about zero that holds the optimum.

        There :math:`|w|^2 = -(\lambda / M) \sum_i u_i z_i l'(z_i)`, and :math:`-z l'(z)` is at
        most 1 for the hinge and 1/2 for the others. Theorem 1's radius :math:`\lambda` for the
        squared hinge would cut off the optimum if :math:`\lambda < 1/2`.

        Examples
        --------
        >>> LOSSES["hinge"].safe_radius(4.0), LOSSES["squared_hinge"].safe_radius(8.0)
        (2.0, 2.0)
        """
        return float(np.sqrt(lam if self.linear else lam / 2.0))


@dataclass(frozen=True)
class RoundedHinge:
    r"""The hinge :math:`[1 - z]_+`, a parabola between :math:`1 - h` and :math:`1 + h`.

    It is at most h/4 above the hinge.

    Parameters
    ----------
    width : float
        h > 0.

    Examples
    --------
    >>> RoundedHinge(0.5).value(np.array([0.0, 1.0, 2.0]))
    array([1.   , 0.125, 0.   ])
    """

    width: float

    def value(self, z: FloatArray) -> FloatArray:
        """Loss of margins."""
        slope = self.slope(z)
        return np.where(slope > -1.0, slope * slope * self.width, 1.0 - z)

    def slope(self, z: FloatArray) -> FloatArray:
        """Return derivatives with respect to the margin, in [-1, 0]."""
        return -np.clip((1.0 + self.width - z) / (2.0 * self.width), 0.0, 1.0)

    def curvature(self, z: FloatArray) -> FloatArray:
        """Second derivative with respect to the margin."""
        return np.where(np.abs(z - 1.0) < self.width, 0.5 / self.width, 0.0)


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
        Of "odm". The other losses have none.

    Examples
    --------
    >>> resolve_loss("odm", theta=0.2, mu=0.5)
    MarginLoss(name='odm', theta=0.2, mu=0.5, linear=False)
    """
    loss = LOSSES[name]
    return replace(loss, theta=float(theta), mu=float(mu)) if name == "odm" else loss
