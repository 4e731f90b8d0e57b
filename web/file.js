/*
 * file.js - Your file: open a filter, look at it, ask it; build one from a text
 */
import { Helper } from "./helper.js";

export const MOST = 1 << 30; // bytes: a tab has 4 GB for the file and the filter together

export function file(page, root) {
  const { t, escape } = page, helper = new Helper(page);
  let saved = null;
  root.innerHTML = `
    <p class="lead">${t("fileLead")}</p>
    <div class="drop" id="drop"><p>${t("drop")} <label class="field" for="pick">${t("pick")} <input type="file" id="pick"></label></p></div>
    <form class="row" id="ask" style="margin-top:1rem"><label>${t("key")}<input id="key" autocomplete="off" required></label><button class="first">${t("ask")}</button><span id="answer" role="status"></span></form>
    <div class="two"><div class="card"><h2 id="name">–</h2><table><tbody id="info"></tbody></table></div><div class="card"><h2>${t("picture")}</h2><canvas id="picture" width="256" height="64" role="img" aria-label="${t("picture")}"></canvas></div></div>
    <h3>${t("buildFrom")}</h3>
    <div class="row"><label>${t("kind")}<select id="kind">${page.kindOptions("blocked", (k) => k.can.includes("has"))}</select></label><label>${t("rate")}<input id="fpr" value="${page.shown("0.01")}" size="8" inputmode="decimal"></label><label>${t("textFile")}<input type="file" id="text" accept="text/*,.txt,.csv,.lst"></label><a id="save" class="button" hidden download="keys.bly">${t("saveAs")}</a></div>`;
  const $ = (id) => root.querySelector(`#${id}`);
  const describe = (name, { info, picture, foreign }) => {
    $("answer").textContent = ""; // which was another filter's
    $("name").textContent = foreign ? t("opened", name, t("foreignFile", info.format)) : t("opened", name, info.kind);
    const rows = Object.entries({ ...info, params: undefined, meta: undefined, ...info.params }).filter(([, v]) => v !== undefined && v !== false && v !== "" && !(typeof v === "number" && Number.isNaN(v)));
    $("info").innerHTML = rows.map(([k, v]) => `<tr><th scope="row" class="text">${escape(page.words.fields[k] ?? k)}</th><td>${escape(typeof v === "number" ? (k.includes("fpr") ? page.rate(v) : k.includes("bytes") ? page.bytes(v) : page.number(v, 6)) : v === true ? t("yes") : v)}</td></tr>`).join("");
    const canvas = $("picture"), wide = Math.min(256, picture.length), high = Math.ceil(picture.length / wide);
    canvas.width = wide;
    canvas.height = high;
    const pen = canvas.getContext("2d"), image = pen.createImageData(wide, high);
    picture.forEach((share, i) => image.data.set([31, 95, 191, Math.round(255 * share)], 4 * i));
    pen.putImageData(image, 0, 0);
  };
  const tooLarge = (f) => {
    if (f.size <= MOST) return false;
    page.say(t("tooLarge", f.name, page.bytes(f.size), page.bytes(MOST)), true);
    return true;
  };
  async function open(f) {
    if (!f || tooLarge(f)) return;
    page.say(t("opening", f.name));
    try {
      describe(f.name, await helper.ask("open", { file: f }));
      page.say("");
    } catch (error) {
      page.say(t("notKnown", f.name, page.reason(error)), true);
    }
  }
  async function build(f) {
    if (!f || tooLarge(f)) return;
    page.say(t("opening", f.name));
    try {
      const made = await helper.ask("build", { file: f, kind: $("kind").value, fpr: page.typedRate($("fpr").value) });
      describe(f.name, made);
      URL.revokeObjectURL(saved);
      saved = URL.createObjectURL(new Blob([made.bytes], { type: "application/octet-stream" }));
      $("save").href = saved;
      $("save").download = `${f.name.replace(/\.\w+$/, "")}.bly`;
      $("save").hidden = false;
      page.say(t("builtOf", page.count(made.info.capacity), page.bytes(made.info.file_bytes)));
    } catch (error) {
      page.say(t("notKnown", f.name, page.reason(error)), true);
    }
  }
  $("pick").addEventListener("change", (event) => open(event.target.files[0]));
  $("text").addEventListener("change", (event) => build(event.target.files[0]));
  for (const kind of ["dragover", "dragleave", "drop"])
    $("drop").addEventListener(kind, (event) => {
      event.preventDefault();
      $("drop").classList.toggle("over", kind === "dragover");
      if (kind === "drop") open(event.dataTransfer.files[0]);
    });
  $("ask").addEventListener("submit", async (event) => {
    event.preventDefault();
    const key = $("key").value;
    try {
      const answer = await helper.ask("ask", { key });
      if (!answer) return page.say(t("noFilter"), true);
      $("answer").innerHTML = `${escape(key)}: <span class="${answer.maybe ? "maybe" : "no"}">${t(answer.maybe ? "maybe" : "no")}</span>`;
    } catch (error) {
      page.say(page.reason(error), true);
    }
  });
  page.keep({});
  return () => {
    helper.end("");
    URL.revokeObjectURL(saved);
  };
}
