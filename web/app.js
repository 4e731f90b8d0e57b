/*
 * app.js - the page: panels, language, light and dark, state in the URL
 *
 * What a panel shows is in the URL behind #, as in #see?kind=classic&ops=+ant,?bee, so that
 * a link shows somebody else the same, whether the page wrote it or somebody typed it. A panel is a function that fills the page and gets
 * what the URL says; it calls keep() whenever that changes.
 */
import { hasSimd, instantiate } from "./bloomery.js";
import { reasonIn } from "./reasons.js";
import { words } from "./words.js";
import { alike } from "./alike.js";
import { file } from "./file.js";
import { measure } from "./measure.js";
import { plan } from "./plan.js";
import { see } from "./see.js";
import { tour } from "./tour.js";

const panels = { see, tour, plan, measure, file, alike };
const WORDS = new Set(["a", "b", "members"]); // of an address: here a plus is a blank, as forms write it
const $ = (id) => document.getElementById(id);
const stored = (name) => {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
};
const store = (name, value) => {
  try {
    localStorage.setItem(name, value);
  } catch {
    /* a page without storage forgets, and works */
  }
};

const page = { lang: "en", panel: "see", state: new URLSearchParams(), lib: null, module: null };
let ended = () => {};

/** The text of a name in the page's language, with {0}, {1} ... replaced. */
page.t = (name, ...values) => words[page.lang][name].replace(/\{(\d)\}/g, (_, i) => values[i]);
page.escape = (text) => String(text).replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
page.number = (x, digits = 3) => (Number.isFinite(x) ? new Intl.NumberFormat(page.lang, { maximumSignificantDigits: digits }).format(x) : "–");
page.count = (x) => new Intl.NumberFormat(page.lang).format(x);
page.bytes = (x) => {
  let unit = 0;
  for (; x >= 1000 && unit < 4; unit++) x /= 1000;
  return `${page.number(x)} ${["B", "kB", "MB", "GB", "TB"][unit]}`;
};
page.inPercent = (p) => p >= 0.001;
page.rate = (p, percent = page.inPercent(p)) => (!(p > 0) ? "–" : percent ? `${page.number(100 * p)} %` : p >= 1e-12 ? page.t("oneIn", page.number(1 / p)) : new Intl.NumberFormat(page.lang, { notation: "scientific", maximumFractionDigits: 1 }).format(p));
page.say = (text, bad = false) => {
  $("status").textContent = text;
  $("status").classList.toggle("bad", bad);
};
page.said = () => $("status").textContent;
/** Why something failed, in the page's language. */
page.reason = (error) => (error.message ? reasonIn(page.lang, error) : page.t("memoryOut"));
/** Do something that may fail: the reason is said, and the page goes on. */
page.attempt = (what) => {
  try {
    page.say("");
    return what();
  } catch (error) {
    page.say(page.reason(error), true);
    return undefined;
  }
};
/** Remember the state of the panel in the URL. */
page.keep = (state) => {
  const kept = new URLSearchParams(Object.entries(state).filter(([, v]) => v !== undefined && v !== ""));
  if (page.lang !== "en") kept.set("lang", page.lang);
  page.state = kept;
  history.replaceState(null, "", `#${page.panel}${addressed(kept)}`);
};
/** What a kind is, in the page's language; in English where nobody has translated it yet. */
page.summary = (k) => words[page.lang].kinds?.[k.kind] ?? k.summary;
/** Numbers as the library reads them, of what people type: 20,000 in English, 20.000 and 0,1 in German. */
page.typedCount = (text) => text.replace(/\s/g, "").replace(page.lang === "de" ? /\.(?=\d{3}(?!\d))/g : /,(?=\d{3}(?!\d))/g, "");
page.typedRate = (text) => text.replace(/\s/g, "").replace(",", ".");
/** And the way back, for fields that the address fills. */
page.shown = (text) => (/^\d{1,15}(\.\d+)?$/.test(text) ? new Intl.NumberFormat(page.lang, { maximumFractionDigits: 20 }).format(Number(text)) : text);
/** Options of a <select> of kinds, those that `which` wants. */
page.kindOptions = (chosen, which = () => true) =>
  page.kinds.filter(which).map((k) => `<option value="${k.kind}"${k.kind === chosen ? " selected" : ""} title="${page.escape(page.summary(k))}">${k.kind}</option>`).join("");

/* What is behind the name of a panel. Written by hand, + in a list of steps or in a formula means itself. */
const readAddress = (query) =>
  new URLSearchParams(query.split("&").map((pair) => (WORDS.has(pair.split("=")[0]) ? pair : pair.replaceAll("+", "%2B"))).join("&"));
const addressed = (query) => (query.size ? `?${query.toString().replaceAll("+", "%20")}` : "");

function show() {
  const [, name, query = ""] = /^#?([^?]*)\??(.*)$/s.exec(location.hash); // a step may begin with "?" too
  page.panel = Object.hasOwn(panels, name) ? name : "see";
  page.state = readAddress(query);
  page.lang = page.state.get("lang") === "de" || (page.state.get("lang") !== "en" && page.lang === "de") ? "de" : "en";
  page.words = words[page.lang];
  document.documentElement.lang = page.lang;
  document.title = page.t("title");
  for (const element of document.querySelectorAll("[data-t]")) element.textContent = page.t(element.dataset.t);
  for (const element of document.querySelectorAll("[data-aria]")) element.setAttribute("aria-label", page.t(element.dataset.aria));
  $("language").textContent = page.t("other");
  $("language").lang = page.lang === "en" ? "de" : "en";
  for (const tab of $("tabs").children) {
    const on = tab.id === `tab-${page.panel}`;
    tab.setAttribute("aria-selected", on);
    tab.tabIndex = on ? 0 : -1;
    if (on) tab.scrollIntoView({ block: "nearest", inline: "nearest" });
  }
  $("panel").setAttribute("aria-labelledby", `tab-${page.panel}`);
  ended();
  ended = () => {};
  page.say(page.simd ? "" : page.t("nosimd"));
  // Whatever an address has in it, the page stays one that can be used.
  try {
    ended = panels[page.panel](page, $("panel")) ?? ended;
  } catch (error) {
    page.say(page.reason(error), true);
  }
  page.plays = false;
}

/** Go to a panel with a state; `plays`: its example begins from the first step. */
page.go = (name, state = {}, plays = false) => {
  const query = new URLSearchParams(Object.entries(state).filter(([, v]) => v !== undefined && v !== ""));
  if (page.lang !== "en") query.set("lang", page.lang);
  page.plays = plays;
  const hash = `#${name}${addressed(query)}`;
  if (hash === location.hash) show();
  else location.hash = hash;
};

function theme(dark) {
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  $("theme").setAttribute("aria-pressed", dark);
}

$("tabs").addEventListener("click", (event) => event.target.role === "tab" && page.go(event.target.id.slice(4)));
$("tabs").addEventListener("keydown", (event) => {
  const tabs = [...$("tabs").children], at = tabs.indexOf(event.target);
  const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
  if (to === undefined || at < 0) return;
  event.preventDefault();
  const tab = tabs[(to + tabs.length) % tabs.length];
  tab.focus();
  page.go(tab.id.slice(4));
});
$("language").addEventListener("click", () => {
  page.lang = page.lang === "en" ? "de" : "en";
  store("lang", page.lang);
  const state = new URLSearchParams(page.state);
  state.set("lang", page.lang);
  history.replaceState(null, "", `#${page.panel}${addressed(state)}`);
  show();
});
$("theme").addEventListener("click", () => {
  const dark = document.documentElement.dataset.theme !== "dark";
  theme(dark);
  store("theme", dark ? "dark" : "light");
});

theme(stored("theme") ? stored("theme") === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);
page.lang = (stored("lang") ?? navigator.language).startsWith("de") ? "de" : "en";
page.words = words[page.lang];
document.documentElement.lang = page.lang;
try {
  page.simd = hasSimd();
  const answer = await fetch("play.wasm");
  if (!answer.ok) throw new Error(`play.wasm: ${answer.status}`);
  page.module = await WebAssembly.compile(await answer.arrayBuffer());
  page.lib = instantiate(page.module);
  page.kinds = page.lib.kinds();
  $("version").textContent = `bloomery ${page.lib.version}`;
  addEventListener("hashchange", show);
  show();
  document.documentElement.dataset.ready = "yes";
} catch (error) {
  $("panel").textContent = page.t("nowasm", error.message);
}
