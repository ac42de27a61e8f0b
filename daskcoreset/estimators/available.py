"""Methods that an estimator has with some parameters only."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from types import MethodType
from typing import Any


class AvailableWhere:
    """A method of estimators that is there only where its parameters are right.

    As `sklearn.utils.metaestimators.available_if`, whose error hides what would bring the method.

    Parameters
    ----------
    method : callable
    reason : callable
        ``reason(estimator)`` says why the method is not there and what to do, or is None.
    """

    def __init__(self, method: Callable[..., Any], reason: Callable[[Any], str | None]) -> None:
        self.method = method
        self.reason = reason
        update_wrapper(self, method)  # type: ignore[arg-type] # its descriptor is called, not it

    def __get__(self, model: Any, owner: type) -> Any:
        if model is None:  # of the class, which documents it
            return self.method
        reason = self.reason(model)
        if reason is not None:
            name = self.method.__name__
            raise AttributeError(f"This {owner.__name__!r} has no attribute {name!r}: {reason}")
        return MethodType(self.method, model)


def available_where(reason: Callable[[Any], str | None]) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator of methods that are there only where `reason` is None.

    Parameters
    ----------
    reason : callable
        As of `AvailableWhere`.

    Examples
    --------
    >>> class Model:
    ...     soft = False
    ...
    ...     @available_where(lambda model: None if model.soft else "pass soft=True.")
    ...     def predict_proba(self): ...
    >>> hasattr(Model(), "predict_proba")
    False
    >>> Model().predict_proba
    Traceback (most recent call last):
    ...
    AttributeError: This 'Model' has no attribute 'predict_proba': pass soft=True.
    """

    def decorate(method: Callable[..., Any]) -> Any:
        return AvailableWhere(method, reason)

    return decorate
