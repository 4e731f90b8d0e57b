/*
 * alike.js - Likeness and rings: two texts and their sketches; a Chord ring
 */
const RING = "3 9 20 27 41 46 58";

export function alike(page, root) {
  const { t, escape } = page, [A, B] = page.words.texts, state = Object.fromEntries(page.state), { c, check, take, told, withText, u8 } = page.lib.raw;
  root.innerHTML = `
    <p class="lead">${t("alikeLead")}</p>
    <div class="two"><label class="field">${t("textA")}<textarea id="a">${escape(state.a ?? A)}</textarea></label><label class="field">${t("textB")}<textarea id="b">${escape(state.b ?? B)}</textarea></label></div>
    <div class="row" style="margin-top:1rem"><label>${t("shingle")}<input id="size" type="number" min="1" max="20" value="${escape(state.size ?? 3)}"></label><label>&nbsp;<select id="unit"><option value="0">${t("wordsU")}</option><option value="1"${state.unit === "1" ? " selected" : ""}>${t("charsU")}</option></select></label><label>${t("components")}<input id="k" type="number" min="16" max="512" step="16" value="${escape(state.k ?? 128)}"></label></div>
    <div class="card" id="result" aria-live="polite"></div>
    <h2>${t("ring")}</h2><p class="lead">${t("ringLead")}</p>
    <div class="row"><label>${t("bits")}<input id="bits" type="number" min="3" max="16" value="${escape(state.bits ?? 6)}"></label><label>${t("members")}<input id="members" value="${escape(state.members ?? RING)}" size="28"></label><label>${t("from")}<input id="from" type="number" min="0" value="${escape(state.from ?? 3)}"></label><label>${t("find")}<input id="find" type="number" min="0" value="${escape(state.find ?? 45)}"></label></div>
    <div class="card"><div id="ring"></div><p id="way" aria-live="polite"></p><p class="note" id="fingers"></p></div>`;
  const $ = (id) => root.querySelector(`#${id}`);
  const keep = () => page.keep({ a: $("a").value === A ? "" : $("a").value.slice(0, 2000), b: $("b").value === B ? "" : $("b").value.slice(0, 2000), size: $("size").value, unit: $("unit").value, k: $("k").value, bits: $("bits").value, members: $("members").value, from: $("from").value, find: $("find").value });

  function texts() {
    withText($("a").value.replaceAll("\0", " "), (a) => withText($("b").value.replaceAll("\0", " "), (b) => check(c.alike(a, b, Number($("unit").value), Number($("size").value), Number($("k").value)))));
    const r = told();
    $("result").innerHTML = `<p>${t("exactly", page.count(r.in_both), page.count(r.in_either), page.number(r.jaccard))}</p><p>${t("estimated", $("k").value, r.equal, page.number(r.estimate), page.number(r.sd, 2))}</p><h3>${t("agree")}</h3><div class="cells plain" role="img" aria-label="${t("agree")}: ${r.equal}">${r.agree.map((x) => `<i class="${x ? "on" : ""}"></i>`).join("")}</div>`;
  }
  function ring() {
    const bits = Number($("bits").value), ids = [...new Set($("members").value.split(/[\s,;]+/).filter(Boolean))].map((id) => {
      if (!/^\d{1,6}$/.test(id)) throw new TypeError(t("badWhole", id));
      return BigInt(id);
    });
    for (const id of ["from", "find"]) if (!/^\d{0,6}$/.test($(id).value)) throw new TypeError(t("badWhole", $(id).value));
    const at = take(8 * ids.length + 8);
    try {
      new BigUint64Array(u8().buffer, at, ids.length).set(ids);
      check(c.ring(bits, at, ids.length, BigInt($("from").value || 0), BigInt($("find").value || 0)));
    } finally {
      c.give(at);
    }
    const r = told(), R = 120, all = 2 ** bits, [X, Y] = [230, 150];
    const place = (id, radius = R) => [X + radius * Math.sin((2 * Math.PI * id) / all), Y - radius * Math.cos((2 * Math.PI * id) / all)];
    const xy = (p) => `${p[0].toFixed(1)},${p[1].toFixed(1)}`;
    let svg = `<circle cx="${X}" cy="${Y}" r="${R}" fill="none" stroke="var(--line)" stroke-width="2"/>`;
    for (const f of new Set(r.fingers)) svg += `<path d="M${xy(place(r.from))} Q${X},${Y} ${xy(place(f))}" stroke="var(--line)"/>`;
    for (let i = 1; i < r.path.length; i++) svg += `<path d="M${xy(place(r.path[i - 1]))} Q${X},${Y} ${xy(place(r.path[i]))}" stroke="var(--warm)" stroke-width="2.5"/>`;
    for (const id of r.members) {
      const [x, y] = place(id, R + 18), on = r.path.includes(id);
      svg += `<circle cx="${place(id)[0]}" cy="${place(id)[1]}" r="6" fill="${id === r.owner ? "var(--good)" : on ? "var(--warm)" : "var(--main)"}"/>${r.members.length <= 40 ? `<text x="${x}" y="${y + 4}" text-anchor="middle">${id}</text>` : ""}`;
    }
    const [kx, ky] = place(Number($("find").value) % all, R - 22);
    svg += `<text x="${kx}" y="${ky + 4}" text-anchor="middle">◆ ${escape($("find").value)}</text>`;
    const words = t("path", r.path[0], $("find").value, r.path.join(" → "), r.owner);
    $("ring").innerHTML = `<svg class="chart" style="max-width:34rem;margin:auto" viewBox="0 0 460 300" role="img" aria-label="${escape(words)}">${svg}</svg>`;
    $("way").textContent = words;
    $("fingers").textContent = t("fingers", r.from, r.fingers.join(", "));
  }
  for (const id of ["a", "b", "size", "unit", "k"]) $(id).addEventListener("input", () => page.attempt(() => (texts(), keep())));
  for (const id of ["bits", "members", "from", "find"]) $(id).addEventListener("input", () => page.attempt(() => (ring(), keep())));
  page.attempt(texts);
  page.attempt(ring);
}
