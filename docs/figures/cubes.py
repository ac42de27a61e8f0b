"""A map of regions that warm and cool alike, and the year of each region."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from theme import BLUE, GREEN, ORANGE, SKY, Theme

import daskcoreset.xarray  # noqa: F401 - gives xarray objects .coreset

# From cold to warm.
COLORS = (BLUE, SKY, GREEN, "#CC79A7", "#E69F00", ORANGE)

# Middle and half axes in degrees of longitude and latitude.
CONTINENTS = (
    (18, 18, 32, 18), (25, -12, 14, 22), (300, -12, 16, 18), (292, -36, 7, 18), (258, 50, 38, 18),
    (75, 52, 72, 17), (105, 25, 20, 15), (134, -25, 18, 10),
)  # fmt: skip


def ocean() -> xr.Dataset:
    """Return the synthetic ocean of the page: months by latitude by longitude."""
    noise = np.random.default_rng(0).normal(size=(48, 45, 90))
    coords = {
        "time": xr.date_range("2000-01-01", periods=48, freq="MS"),
        "lat": np.arange(-88.0, 90, 4),
        "lon": np.arange(2.0, 360, 4),
    }
    noise = xr.DataArray(noise, coords)
    time, lat, lon = noise.time, noise.lat, noise.lon
    season = np.cos(2 * np.pi * (time.dt.month - 8) / 12)
    waves = 8 * np.sin(np.deg2rad(2 * lon + 3 * lat))
    angle = np.deg2rad((lat + waves).clip(-90, 90))
    cool = np.exp(-(((lon - 255) / 40) ** 2) - (lat / 14) ** 2)
    sst = 0.5 * noise + 29 * np.cos(angle) ** 1.4 - 1 + 8 * np.sin(2 * angle) * season - 8 * cool
    wind = noise + 7 + 5 * np.sin(2 * angle) ** 2 + 4 * cool - 3 * np.sin(angle) * season
    height = sum(
        np.exp(-((((lon - x + 180) % 360 - 180) / width) ** 2) - ((lat - y) / length) ** 2)
        for x, y, width, length in CONTINENTS
    )
    return xr.Dataset({"sst": sst, "wind": wind}).where(height < 0.5)


def draw(theme: Theme) -> Figure:
    """Draw the map, and the year of each region."""
    sea = ocean()
    area = np.cos(np.deg2rad(sea.lat))
    year = sea.groupby("time.month").mean()
    scaled = (year - year.weighted(area).mean()) / year.weighted(area).std()
    model = scaled.coreset.kmeans(len(COLORS), feature_dims="month", weights=area, random_state=0)
    labels = model.predict(scaled).transpose("lat", "lon")
    courses = [
        year.sst.where(labels == k).weighted(area).mean(["lat", "lon"]) for k in range(len(COLORS))
    ]
    order = np.argsort([float(course.mean()) for course in courses])

    figure = Figure(figsize=(9, 3.3), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[2.1, 1])
    rank = np.argsort(order).astype(float)
    known = np.isfinite(labels.values)
    shown = np.full(labels.shape, np.nan)
    shown[known] = rank[labels.values[known].astype(int)]
    colors = {"cmap": ListedColormap(COLORS), "vmin": -0.5, "vmax": len(COLORS) - 0.5}
    left.imshow(shown, extent=(0, 360, -90, 90), origin="lower", interpolation="nearest", **colors)
    left.set(xticks=range(0, 361, 60), yticks=range(-60, 61, 30))
    left.set(xlabel="longitude", ylabel="latitude", title="six regions")
    for color, k in zip(COLORS, order, strict=True):
        right.plot(year.month, courses[k], color=color, lw=2.2)
    right.set(xticks=(1, 4, 7, 10), xlabel="month", title="temperature of each, °C")
    for ax in (left, right):
        ax.title.set_color(theme.ink)
        ax.spines[:].set_color(theme.ink)
    return figure
