/*
 * draw.js - cells as boxes, series as curves
 */

/** Cells of a filter as [{ width, values }], one entry per array of cells. */
export function cellsOf(filter) {
  return filter.cells().map((bytes) => {
    const room = 8 * bytes.length, { params, bits: all } = bytes.info;
    // Counters, counts and unpacked fingerprints have a width of their own; all else is shown as bits. The last
    // word of an array of bits may be longer than the filter.
    let n = room, width = 1;
    if (params.counters) [n, width] = [Number(params.counters), params.width];
    else if (params.bucket && params.semisort === "off") [n, width] = [params.buckets * params.bucket, params.fingerprint];
    else if (params.depth && params.width) [n, width] = [params.depth * params.width, Number(params.counter)];
    else if (params.bits >= all && ("k" in params || "k0" in params)) n = Number(params.bits);
    if (!(n * width <= room && width <= 64)) [n, width] = [room, 1];
    const values = Array(n);
    for (let i = 0, at = 0; i < n; i++) {
      let value = 0;
      for (let b = 0; b < width; b++, at++) value += ((bytes[at >> 3] >> (at & 7)) & 1) * 2 ** b;
      values[i] = value;
    }
    return { width, values };
  });
}

const NUMBERED = 256;
const DRAWN = 2048, PER_ROW = 32;

/* Cells as boxes with their number; many of them as small boxes, in rows that begin with it. */
function boxes(page, { values, width }, hit, label, numbered) {
  const used = [];
  for (let i = 0; i < values.length && used.length < 40; i++) if (values[i]) used.push(i);
  const box = (v, i) => `class="${v ? "on" : ""}${hit.has(i) ? " hit" : ""}"`;
  const name = `${label}${used.length ? `: ${used.join(", ")}${used.length === 40 ? " …" : ""}` : ""}`;
  if (values.length <= numbered) {
    const wide = width > 4 ? ' style="--w:2.7rem"' : "";
    return `<div class="cells" role="img" aria-label="${page.escape(name)}"${wide}>${values.map((v, i) => `<i ${box(v, i)}><b>${v}</b><small>${i}</small></i>`).join("")}</div>`;
  }
  const rows = [];
  for (let from = 0; from < Math.min(values.length, DRAWN); from += PER_ROW)
    rows.push(`<small>${from}</small>${values.slice(from, from + PER_ROW).map((v, i) => `<i ${box(v, from + i)} title="${from + i}"></i>`).join("")}`);
  return `<div class="cells many" role="img" aria-label="${page.escape(name)}">${rows.join("")}</div>${values.length > DRAWN ? `<p class="note">${page.t("notDrawn", page.count(values.length - DRAWN))}</p>` : ""}`;
}

/** All cells of a filter, those in `hits` ([[part, cell] ...]) marked; up to `numbered` in a part are large. */
export function cellsIn(page, parts, hits, numbered = NUMBERED) {
  return parts.map((part, i) => {
    const used = part.values.filter(Boolean).length, mine = new Set(hits.filter(([p]) => p === i).map(([, cell]) => cell));
    const label = (parts.length > 1 ? page.t("layerN", i + 1) : "") + (part.width > 1 ? page.t("cellsN", page.count(part.values.length), part.width, page.count(used)) : page.t("bitsN", page.count(part.values.length), page.count(used)));
    return `<p class="note">${label}</p>${boxes(page, part, mine, label, numbered)}`;
  }).join("");
}

/** The end of an axis from 0 whose four steps are round numbers. */
export function roundEnd(most) {
  const step = most / 4, unit = 10 ** Math.floor(Math.log10(step));
  return 4 * unit * [1, 2, 2.5, 5, 10].find((v) => v * unit >= step * 0.9999);
}

const HIGH = 300, TOP = 12, BOTTOM = 40;

/**
 * A chart. x and y are { from, to, log, label, show }, and x.from may be the greater; series are
 * { points, colour, dash, dots, dim, name, end }: `end` is written beside the last point. What is
 * outside is left out.
 */
export function chart({ x, y, series, label }) {
  const WIDE = innerWidth < 400 ? 300 : innerWidth < 640 ? 400 : 640, LEFT = WIDE < 400 ? 62 : 68; // so that its words can be read on a phone
  const RIGHT = 24 + 6.6 * Math.max(0, ...series.map((s) => (s.end ?? "").length)), ends = [];
  const along = (axis, v) => (axis.log ? (Math.log(v) - Math.log(axis.from)) / (Math.log(axis.to) - Math.log(axis.from)) : (v - axis.from) / (axis.to - axis.from));
  const px = (v) => LEFT + (WIDE - LEFT - RIGHT) * along(x, v);
  const py = (v) => HIGH - BOTTOM - (HIGH - TOP - BOTTOM) * along(y, v);
  const ticks = (axis) => {
    const out = [];
    const least = Math.min(axis.from, axis.to), most = Math.max(axis.from, axis.to);
    if (axis.log) for (let v = 10 ** Math.ceil(Math.log10(least) - 1e-9); v <= most * 1.0001; v *= 10) out.push(v);
    else for (let i = 0; i <= 4; i++) out.push(axis.from + ((axis.to - axis.from) * i) / 4);
    return WIDE < 400 && axis === x && out.length > 5 ? out.filter((_, i) => i % 2 === 0) : out;
  };
  let body = "";
  for (const v of ticks(x)) body += `<line class="axis" x1="${px(v)}" x2="${px(v)}" y1="${TOP}" y2="${HIGH - BOTTOM}"/><text x="${px(v)}" y="${HIGH - BOTTOM + 16}" text-anchor="middle">${x.show(v)}</text>`;
  for (const v of ticks(y)) body += `<line class="axis" x1="${LEFT}" x2="${WIDE - RIGHT}" y1="${py(v)}" y2="${py(v)}"/><text x="${LEFT - 6}" y="${py(v) + 4}" text-anchor="end">${y.show(v)}</text>`;
  for (const s of series) {
    const points = s.points.filter(([, v]) => Number.isFinite(v) && (!y.log || v > 0) && along(y, v) <= 1.001 && along(y, v) >= 0);
    const name = s.name ? `<title>${s.name}</title>` : "";
    if (s.dots) body += points.map(([a, b]) => `<circle cx="${px(a).toFixed(1)}" cy="${py(b).toFixed(1)}" r="3" fill="${s.colour}">${name}</circle>`).join("");
    else body += `<polyline class="${s.dim ? "dim" : ""}" stroke="${s.colour}"${s.dash ? ` stroke-dasharray="${s.dash === true ? "6 4" : s.dash}"` : ""} points="${points.map(([a, b]) => `${px(a).toFixed(1)},${py(b).toFixed(1)}`).join(" ")}">${name}</polyline>`;
    if (s.end && points.length) ends.push({ x: px(points.at(-1)[0]) + 6, y: py(points.at(-1)[1]) + 4, s });
  }
  // Names that would overlap make room for each other.
  ends.sort((a, b) => a.y - b.y);
  ends.forEach((e, i) => i && (e.y = Math.max(e.y, ends[i - 1].y + 14)));
  for (const e of ends) body += `<text class="end" x="${e.x.toFixed(1)}" y="${e.y.toFixed(1)}" style="fill:${e.s.colour}">${e.s.end}</text>`;
  body += `<text x="${(WIDE - RIGHT + LEFT) / 2}" y="${HIGH - 6}" text-anchor="middle">${x.label}</text><text x="12" y="${HIGH / 2}" transform="rotate(-90 12 ${HIGH / 2})" text-anchor="middle">${y.label}</text>`;
  return `<svg class="chart" viewBox="0 0 ${WIDE} ${HIGH}" role="img" aria-label="${label}">${body}</svg>`;
}
