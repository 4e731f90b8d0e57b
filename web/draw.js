/*
 * draw.js - cells as boxes, series as curves
 */

/** Cells of a filter as [{ width, values, name }], one entry per array of cells. */
export function cellsOf(filter) {
  const { params } = filter.info({ quick: true });
  return filter.cells().map((bytes) => {
    const bits = 8 * bytes.length;
    // Kinds of counters and slots say how many these are; others are bits.
    const n = Number(params.counters ?? (params.bucket ? params.buckets * params.bucket : params.depth && params.width ? params.width * params.depth : (params.slots ?? 0)));
    const width = n ? Math.floor(bits / n) : 1;
    const whole = n && width > 1 && width <= 64 && bits - n * width < 64 ? { n, width } : { n: bits, width: 1 };
    const values = [];
    for (let i = 0; i < whole.n; i++) {
      let value = 0;
      for (let b = 0, at = i * whole.width; b < whole.width; b++, at++) value += ((bytes[at >> 3] >> (at & 7)) & 1) * 2 ** b;
      values.push(value);
    }
    return { width: whole.width, values };
  });
}

/** Boxes for cells; those in `hit` are the last key's. */
export function boxes(values, hit, label) {
  const many = values.length > 160;
  const cells = values.map((v, i) => `<i class="${v ? "on" : ""}${hit.has(i) ? " hit" : ""}" title="${i}">${v || (many ? "" : "·")}</i>`).join("");
  return `<div class="cells${many ? " many" : ""}" role="img" aria-label="${label}">${cells}</div>`;
}

const HIGH = 300, LEFT = 68, RIGHT = 24, TOP = 12, BOTTOM = 40;

/**
 * A chart. x and y are { from, to, log, label, show }; series are { points, colour, dash, dots,
 * dim, name }. What is outside is left out.
 */
export function chart({ x, y, series, label }) {
  const WIDE = innerWidth < 640 ? 400 : 640; // so that its words can be read on a phone
  const along = (axis, v) => (axis.log ? (Math.log(v) - Math.log(axis.from)) / (Math.log(axis.to) - Math.log(axis.from)) : (v - axis.from) / (axis.to - axis.from));
  const px = (v) => LEFT + (WIDE - LEFT - RIGHT) * along(x, v);
  const py = (v) => HIGH - BOTTOM - (HIGH - TOP - BOTTOM) * along(y, v);
  const ticks = (axis) => {
    const out = [];
    if (axis.log) for (let v = 10 ** Math.ceil(Math.log10(axis.from) - 1e-9); v <= axis.to * 1.0001; v *= 10) out.push(v);
    else for (let i = 0; i <= 4; i++) out.push(axis.from + ((axis.to - axis.from) * i) / 4);
    return out;
  };
  let body = "";
  for (const v of ticks(x)) body += `<line class="axis" x1="${px(v)}" x2="${px(v)}" y1="${TOP}" y2="${HIGH - BOTTOM}"/><text x="${px(v)}" y="${HIGH - BOTTOM + 16}" text-anchor="middle">${x.show(v)}</text>`;
  for (const v of ticks(y)) body += `<line class="axis" x1="${LEFT}" x2="${WIDE - RIGHT}" y1="${py(v)}" y2="${py(v)}"/><text x="${LEFT - 6}" y="${py(v) + 4}" text-anchor="end">${y.show(v)}</text>`;
  for (const s of series) {
    const points = s.points.filter(([, v]) => Number.isFinite(v) && (!y.log || v > 0) && along(y, v) <= 1.001 && along(y, v) >= 0);
    const name = s.name ? `<title>${s.name}</title>` : "";
    if (s.dots) body += points.map(([a, b]) => `<circle cx="${px(a).toFixed(1)}" cy="${py(b).toFixed(1)}" r="3" fill="${s.colour}">${name}</circle>`).join("");
    else body += `<polyline class="${s.dim ? "dim" : ""}" stroke="${s.colour}"${s.dash ? ' stroke-dasharray="6 4"' : ""} points="${points.map(([a, b]) => `${px(a).toFixed(1)},${py(b).toFixed(1)}`).join(" ")}">${name}</polyline>`;
  }
  body += `<text x="${(WIDE + LEFT) / 2}" y="${HIGH - 6}" text-anchor="middle">${x.label}</text><text x="12" y="${HIGH / 2}" transform="rotate(-90 12 ${HIGH / 2})" text-anchor="middle">${y.label}</text>`;
  return `<svg class="chart" viewBox="0 0 ${WIDE} ${HIGH}" role="img" aria-label="${label}">${body}</svg>`;
}

/** Colours that differ, for line i. */
export const colour = (i) => `hsl(${(i * 137.5) % 360} 62% 48%)`;
