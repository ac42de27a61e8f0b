// Runs when a widget or the selection changes, and once at the start. All text goes through `safe`.
const safe = (text) => String(text).replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
// Bokeh reads such text as formulas, for which it would ask the network.
const plain = (text) => String(text).replace(/\$\$/g, "$\u200b$").replace(/\\([()[\]])/g, "\\\u200b$1");
const short = (value) => Number.isInteger(value) ? value.toLocaleString("en") : Number(value.toPrecision(5)).toLocaleString("en", {maximumSignificantDigits: 5});

const data = rows.data, found = clusters.data, count = k.value;
const at = [...found.k.keys()].filter((i) => found.k[i] === count);
const own = data[`k${count}`] ?? data.k1;
const xs = data[`v${x.value}`], ys = data[`v${y.value}`];
const n = xs.length;
const kind = color.value;
// Labels that share one name are many, and stand back.
const rest = (code) => kind === "label" && code === config.others;
const tone = (code) => rest(code) ? "#8a8a8a" : config.palette[code % config.palette.length];
// A dash is no marker of a label. Beyond the last colour the first comes again, beside another marker.
const sign = (code) => rest(code) ? "dash" : config.markers[(code + Math.floor(code / config.palette.length)) % config.markers.length];
// An axis has room for so many letters; long names often differ in their last ones only.
const brief = (text) => text.length > 44 ? `${text.slice(0, 29)}…${text.slice(-14)}` : text;

// Colours of many values: dark to light, but never the colour of a page.
const ramp = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [222, 200, 37]];
const blend = (share) => {
  if (!isFinite(share)) return config.ink;
  const place = Math.min(Math.max(share, 0), 1) * (ramp.length - 1), i = Math.min(Math.floor(place), ramp.length - 2);
  return "rgb(" + ramp[i].map((c, j) => Math.round(c + (place - i) * (ramp[i + 1][j] - c))).join(",") + ")";
};
const codes = kind === "cluster" ? own : kind === "label" && config.classes.length ? data.label : null;
const numbers = codes ? null : kind === "label" ? data.label : kind === "weight" ? data.weight : data[`v${kind}`];
let low = Infinity, high = -Infinity;
if (numbers) for (const value of numbers) if (isFinite(value)) { low = Math.min(low, value); high = Math.max(high, value); }
const colors = new Array(n), markers = new Array(n), sizes = new Array(n);
for (let i = 0; i < n; i++) {
  colors[i] = codes ? tone(codes[i]) : blend(high > low ? (numbers[i] - low) / (high - low) : 0.5);
  markers[i] = codes ? sign(codes[i]) : "circle";
  sizes[i] = (4 + 11 * Math.sqrt(data.weight[i] / config.largest)) * (codes && rest(codes[i]) ? 0.8 : 1);
}
// Clusters have colours only where these are not taken by something else.
const ofCluster = (code) => kind === "cluster" ? tone(code) : config.ink;
if (cb_obj !== shown.selected) {
  shown.data = {x: xs, y: ys, color: colors, marker: markers, size: sizes, row: data.index, weight: data.weight};
  // Of a constant column rounding alone sets the centers apart, and would be all that the axis shows.
  const along = (axis, values, whisker) => {
    const only = values.every((value) => value === values[0]) ? values[0] : NaN;
    return at.map((i) => {
      const place = found[`v${axis}`][i] + whisker * found[`e${axis}`][i];
      return Math.abs(place - only) <= 1e-6 * Math.max(1, Math.abs(only)) ? only : place;
    });
  };
  centers.data = {
    x: along(x.value, xs, 0), x0: along(x.value, xs, -1), x1: along(x.value, xs, 1),
    y: along(y.value, ys, 0), y0: along(y.value, ys, -1), y1: along(y.value, ys, 1),
    color: at.map((_, j) => ofCluster(j)), name: at.map((_, j) => `${j + 1}`),
  };
  shares.data = {
    x: at.map((_, j) => j + 1), top: at.map((i) => found.share[i]),
    color: at.map((_, j) => kind === "cluster" ? tone(j) : "#b8b8b8"),
    low: at.map((i) => Math.max(0, found.share[i] - found.share_error[i])), high: at.map((i) => found.share[i] + found.share_error[i]),
  };
  across.axis_label = plain(brief(config.names[x.value]));
  up.axis_label = plain(brief(config.names[y.value]));
}

const glyphs = {circle: "●", triangle: "▲", square: "■", diamond: "◆", inverted_triangle: "▼", plus: "✚", x: "✖", star: "★", hex: "⬢", square_pin: "▣", dash: "–"};
if (codes) {
  const names = kind === "cluster" ? at.map((i, j) => `cluster ${j + 1}: ${(100 * found.share[i]).toFixed(1)} ± ${(100 * found.share_error[i]).toFixed(1)} %`) : config.classes;
  legend.text = names.map((name, j) => `<span style="color:${tone(j)}">${glyphs[sign(j)]}</span> ${safe(name)}`).join("<br>");
} else {
  legend.text = high >= low ? `<div style="height:10px;background:linear-gradient(90deg,${ramp.map((c) => `rgb(${c})`)})"></div>${short(low)} … ${short(high)}` : "";
  if (numbers.some((value) => !isFinite(value))) legend.text += `<br><span style="color:${config.ink}">●</span> no number`;
}

const chosen = shown.selected.indices;
if (!chosen.length) {
  details.text = "<em>Choose points, by a click or a frame, to see which rows of the data they are.</em>";
} else {
  let weight = 0;
  for (const i of chosen) weight += data.weight[i];
  const most = chosen.slice(0, 50), cell = 'style="padding:2px 9px;text-align:right;white-space:nowrap"';
  const label = (i) => config.rare[i] ?? (config.classes.length ? config.classes[data.label[i]] : short(data.label[i]));
  const heads = ["row of the data", "weight", "cluster", ...(config.hasLabels ? ["label"] : []), ...(config.where.length ? ["where"] : []), ...config.names];
  const line = (i) => [short(data.index[i]), short(data.weight[i]), own[i] + 1, ...(config.hasLabels ? [label(i)] : []), ...(config.where.length ? [config.where[i]] : []), ...config.names.map((_, j) => short(data[`v${j}`][i]))];
  const table = most.map((i) => `<tr>${line(i).map((text) => `<td ${cell}>${safe(text)}</td>`).join("")}</tr>`).join("");
  details.text = `<div style="max-width:min(1168px,calc(100vw - 34px))"><p>${chosen.length > 1 ? `${chosen.length.toLocaleString("en")} points, which stand` : "1 point, which stands"} for ${short(weight)} rows, ${(100 * weight / config.weight).toFixed(2)} % of the weight of all.`
    + ` <code>coreset.source_rows([${most.slice(0, 20).map((i) => data.position[i]).join(", ")}])</code> reads them from their source.</p>`
    + `<div style="overflow-x:auto"><table style="border-collapse:collapse;font-size:13px"><thead><tr>${heads.map((text) => `<th ${cell}>${safe(text)}</th>`).join("")}</tr></thead><tbody>${table}</tbody></table></div>`
    + (chosen.length > most.length ? `<p>… and ${chosen.length - most.length} more.</p>` : "") + "</div>";
}
