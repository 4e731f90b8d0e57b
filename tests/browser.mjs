/*
 * browser.mjs PLAYWRIGHT CHROMIUM URL ENV.json PICTURES - the playground and the package in a real Chromium
 *
 * Prints { name: failure or "" } as JSON. PICTURES is a folder for screenshots, or "".
 */
import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const [playwright, program, url, given, pictures] = process.argv.slice(2);
const { chromium } = (await import(`file://${playwright}/node_modules/playwright-core/index.mjs`)).default ?? (await import(`file://${playwright}/node_modules/playwright-core/index.mjs`));
const env = JSON.parse(readFileSync(given, "utf8"));
const home = mkdtempSync(join(tmpdir(), "bly-browser-"));
const context = await chromium.launchPersistentContext(home, {
  executablePath: program, headless: true, viewport: { width: 1100, height: 900 }, locale: "en-GB", acceptDownloads: true,
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
const results = {};
const complaints = [], outside = [];
let sent = 0;
const page = await context.newPage();
page.setDefaultTimeout(20000);
const watch = (p) => {
  p.on("console", (m) => m.type() === "error" && complaints.push(m.text()));
  p.on("pageerror", (e) => complaints.push(String(e)));
  p.on("request", (r) => !r.url().startsWith(url) && !r.url().startsWith("blob:") && outside.push(r.url()));
};
watch(page);
const assert = (ok, what) => {
  if (!ok) throw new Error(what);
};
const open = async (hash) => {
  await page.goto(`${url}#${hash}`);
  await page.reload();
  await page.waitForSelector("html[data-ready=yes]");
};
// Not waitForFunction(), which evaluates text in the page: its policy forbids that.
const until = async (is, arg) => {
  for (const end = Date.now() + 60000; !(await page.evaluate(is, arg).catch(() => false)); await page.waitForTimeout(50)) assert(Date.now() < end, `never: ${is}; the page says: ${await text("#status")}`);
};
const text = (selector) => page.textContent(selector);
const picture = async (name) => {
  if (!pictures) return;
  await page.waitForTimeout(300); // colours change slowly
  await page.screenshot({ path: join(pictures, `${name}.png`), fullPage: true });
};
const check = async (name, run) => {
  try {
    await run();
    results[name] = "";
  } catch (error) {
    results[name] = String(error?.stack ?? error);
    if (pictures) await picture(`failed-${name}`);
  }
};

await check("first_paint_and_bytes", async () => {
  page.on("response", async (r) => {
    const sizes = await r.request().sizes().catch(() => null);
    if (sizes) sent += sizes.responseBodySize + sizes.responseHeadersSize;
  });
  await page.goto(`${url}#see?kind=classic&ops=%2Bant,?bee`);
  await page.waitForSelector("html[data-ready=yes]");
  const paint = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime);
  results.paint = paint;
  await page.waitForTimeout(200);
  results.sent = sent;
  assert(sent > 0 && sent < 300000, `${sent} bytes were sent`);
});

await check("see_real_filter", async () => {
  await open("see?kind=classic&items=8&fpr=0.1");
  for (const key of ["ant", "bee"]) {
    await page.fill("#key", key);
    await page.click("button[value='+']");
  }
  await page.fill("#key", "cat");
  await page.click("button[value='?']");
  assert((await page.locator("#steps li").count()) === 3, "three steps");
  assert((await text("#steps li:nth-child(3)")).startsWith("cat: no, certainly"), await text("#steps"));
  assert((await page.locator("#keys button").count()) === 2, "two keys");
  assert((await page.locator(".cells i.on").count()) > 3, "cells are lit");
  assert(page.url().includes("ops="), "the URL has the state");
  await page.reload();
  await page.waitForSelector("#steps li:nth-child(3)");
  await picture("see-light");
});

await check("see_every_kind", async () => {
  await open("see?kind=classic&ops=%2Bant,%2Bbee,?ant,?zebra");
  const kinds = await page.$$eval("#kind option", (all) => all.map((o) => o.value).filter(Boolean));
  assert(kinds.length > 20, kinds.join());
  for (const kind of kinds) {
    await page.goto(`${url}#see?kind=${kind}&ops=%2Bant,%2Bbee,?ant,?zebra`);
    await until((k) => document.querySelector("#kind")?.value === k, kind);
    assert(!(await page.getAttribute("#status", "class"))?.includes("bad"), `${kind}: ${await text("#status")}`);
    assert((await page.locator(".cells i").count()) > 0, `${kind} shows no cells`);
  }
});

await check("see_blackboard", async () => {
  await open("see");
  await page.click("[data-example='0']");
  await page.waitForSelector("#steps li:nth-child(6)");
  const steps = await page.$$eval("#steps li", (all) => all.map((li) => li.textContent));
  assert(steps[4].includes("7: no") && steps[5].includes("false positive") && steps[5].includes("belongs to"), steps.join(" | "));
  await picture("see-blackboard");
  await page.fill("#key", "nonsense");
  await page.click("button[value='+']");
  assert((await text("#status")).includes("nonsense"), "a wrong key is named");
  assert((await page.locator("#steps li").count()) === 6, "and taken back");
});

await check("see_false_positive_has_owners", async () => {
  await open("see");
  await page.click("[data-example='3']");
  await page.waitForSelector("#steps li:nth-child(13)");
  assert((await text("#steps")).includes("belongs to"), await text("#steps"));
});

await check("plan", async () => {
  await open("plan");
  const rows = await page.locator("#rows tr").count();
  assert(rows > 20 && (await page.locator("#chart polyline").count()) === rows + 1, `${rows} rows`);
  const before = await text("#rows tr:first-child");
  await page.fill("#p", "4");
  assert((await text("#rows tr:first-child")) !== before && page.url().includes("p=4"), "the slider changes it");
  const told = env.plans.find((k) => k.kind === "blocked");
  await open("plan?n=3&p=2");
  assert((await text("#rows tr:first-child td:nth-child(2)")) === String(Number(told.bits_per_key.toPrecision(3))), await text("#rows tr:first-child"));
  await page.selectOption("#by", "memory");
  assert(await page.isVisible("#b"), "memory has its slider");
  await picture("plan-light");
});

await check("measure", async () => {
  await open("measure?kind=blocked&items=2000&fpr=0.01");
  await until(() => document.querySelector("#status").textContent.startsWith("Done"));
  assert((await page.locator("#rates circle").count()) >= 30, "points");
  await picture("measure-light");
  await page.goto(`${url}#measure?kind=cuckoo&items=2000&fpr=0.01`);
  await until(() => document.querySelector("#status").textContent.startsWith("Full at"));
  await page.goto(`${url}#measure?kind=scalable&items=500&fpr=0.01`);
  await until(() => document.querySelector("#status").textContent.startsWith("Done"));
  assert(!(await text("#layers")).includes("Layers: 1 "), await text("#layers"));
});

await check("a_worker_that_is_ended", async () => {
  await open("measure?kind=blocked&items=3000000&fpr=0.01");
  await page.click("#stop");
  await until(() => document.querySelector("#status").textContent.startsWith("Stopped"));
  await page.fill("#items", "1000");
  await page.click("#start");
  await until(() => document.querySelector("#status").textContent.startsWith("Done"));
});

await check("a_worker_that_ends_by_itself", async () => {
  // It is gone in the middle of a job, and nothing tells the page: no message, no error.
  await page.route("**/worker.js", async (route) => {
    const answer = await route.fetch();
    await route.fulfill({ response: answer, body: (await answer.text()).replace("async open({ file }) {", "async open({ file }) { self.close(); await new Promise(() => {});") });
  });
  try {
    await open("file");
    await page.setInputFiles("#pick", join(env.folder, "blocked.bly"));
    await until(() => document.querySelector("#status").textContent.includes("The worker ended"));
  } finally {
    await page.unroute("**/worker.js");
  }
  await page.setInputFiles("#pick", join(env.folder, "classic.bly"));
  await page.waitForSelector("#info tr");
  assert((await text("#name")) === "classic.bly: classic", await text("#name"));
});

await check("file", async () => {
  await open("file");
  await page.setInputFiles("#pick", join(env.folder, "blocked.bly"));
  await page.waitForSelector("#info tr");
  assert((await text("#name")) === "blocked.bly: blocked", await text("#name"));
  for (const [key, word] of [["key-7", "maybe"], ["mallory-is-absent", "no"]]) {
    await page.fill("#key", key);
    await page.click("#ask button");
    await until((want) => document.querySelector("#answer").textContent === want, `${key}: ${word}`);
  }
  await page.setInputFiles("#text", { name: "words.txt", mimeType: "text/plain", buffer: Buffer.from("ant\nbee\ncat\n") });
  await page.waitForSelector("#save:not([hidden])");
  const [download] = await Promise.all([page.waitForEvent("download"), page.click("#save")]);
  await download.saveAs(join(home, "saved.bly"));
  writeFileSync(`${given}.saved.bly`, readFileSync(join(home, "saved.bly")));
  assert((await text("#answer")) === "", "the answer of the file before is still there");
  await picture("file-light");
  if (env.foreign) {
    await page.setInputFiles("#pick", env.foreign);
    await until(() => document.querySelector("#name").textContent.includes("a filter of"));
    await page.fill("#key", "ant");
    await page.click("#ask button");
    await until(() => document.querySelector("#answer").textContent === "ant: maybe");
  }
  await page.setInputFiles("#pick", { name: "bad.bly", mimeType: "x/y", buffer: Buffer.from("no filter at all") });
  await until(() => document.querySelector("#status").textContent.startsWith("bad.bly cannot be opened"));
});

await check("a_file_of_2_gigabytes", async () => {
  await open("file");
  writeFileSync(`${given}.huge`, "");
  truncateSync(`${given}.huge`, 2 ** 31); // of which the disk holds nothing
  const says = () => until(() => /2\.15 GB.*bloomery info/.test(document.querySelector("#status").textContent));
  await page.setInputFiles("#pick", `${given}.huge`);
  await says();
  await page.setInputFiles("#text", `${given}.huge`);
  await says();
  await page.evaluate(() => {
    document.querySelector("#status").textContent = "";
    const event = new Event("drop", { cancelable: true });
    event.dataTransfer = { files: document.querySelector("#pick").files };
    document.querySelector("#drop").dispatchEvent(event);
  });
  await says();
  await page.setInputFiles("#pick", join(env.folder, "classic.bly"));
  await page.waitForSelector("#info tr");
});

await check("likeness_and_rings", async () => {
  await open("alike");
  assert((await text("#result")).includes("J ="), await text("#result"));
  assert((await text("#way")) === "3 asks for 45: 3 → 41 → 46; 46 owns it.", await text("#way"));
  await picture("alike-light");
  await page.fill("#b", await page.inputValue("#a"));
  assert((await text("#result")).includes("J = 1"), await text("#result"));
  await page.fill("#members", "3 nonsense");
  assert((await text("#status")).includes("nonsense"), await text("#status"));
});

await check("keyboard", async () => {
  await open("see");
  await page.focus("#tab-see");
  await page.keyboard.press("ArrowRight");
  await until(() => document.activeElement.id === "tab-plan" && location.hash.startsWith("#plan"));
  await page.keyboard.press("End");
  await until(() => location.hash.startsWith("#alike"));
  await open("see?kind=counting");
  await page.focus("#key");
  await page.keyboard.type("ant");
  await page.keyboard.press("Enter");
  await page.waitForSelector("#steps li");
});

await check("names_for_a_screen_reader", async () => {
  for (const panel of ["see?kind=classic&ops=%2Bant", "plan", "measure", "file", "alike"]) {
    await open(panel);
    const nameless = await page.evaluate(() =>
      [...document.querySelectorAll("button, input, select, textarea, canvas, svg[role=img], .cells")]
        .filter((e) => !(e.getAttribute("aria-label") || e.labels?.length || e.textContent.trim()))
        .map((e) => e.outerHTML.slice(0, 80)));
    assert(!nameless.length, `${panel}: ${nameless.join(" ")}`);
    assert((await page.getAttribute("#panel", "aria-labelledby")) === `tab-${panel.split("?")[0]}`, panel);
  }
});

await check("german_and_dark", async () => {
  await open("see?kind=classic&ops=%2Bant,?bee");
  await page.click("#language");
  await until(() => document.documentElement.lang === "de");
  assert((await text("#tab-plan")) === "Planen" && page.url().includes("lang=de"), await text("#tab-plan"));
  assert((await text("#summary")).includes("Maßstab") && (await page.getAttribute("#summary", "lang")) === "de", await text("#summary"));
  await picture("see-german");
  await page.click("#theme");
  assert((await page.getAttribute("html", "data-theme")) === "dark", "dark");
  await picture("see-dark-german");
  for (const panel of ["plan", "measure", "file", "alike"]) {
    await open(`${panel}?lang=de`);
    await picture(`${panel}-dark-german`);
  }
  // Numbers as they are typed in German; the address has them as the library reads them.
  await open("measure?lang=de&kind=classic");
  await page.fill("#items", "1.000");
  await page.fill("#fpr", "0,1");
  await page.click("#start");
  await until(() => document.getElementById("status").textContent.startsWith("Fertig: 2.000"));
  assert(/items=1000&fpr=0.1/.test(page.url()), page.url());
  // A kind that nobody has translated yet.
  await page.evaluate(async () => delete (await import("./words.js")).words.de.kinds.cuckoo);
  await page.evaluate(() => (location.hash = "#see?kind=cuckoo&lang=de"));
  await until(() => document.getElementById("summary")?.lang === "en");
  assert((await text("#summary")).startsWith("fingerprints"), await text("#summary"));
  await open("see?lang=en");
  await page.click("#theme");
});

await check("phone", async () => {
  await page.setViewportSize({ width: 360, height: 740 });
  for (const panel of ["see?kind=blocked&ops=%2Bant,%2Bbee,?cat", "plan", "measure?items=1000", "file", "alike"]) {
    await open(panel);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    assert(wide <= 360, `${panel} is ${wide} wide`);
    const tab = await page.locator("[aria-selected=true]").boundingBox();
    assert(tab.x >= 0 && tab.x + tab.width <= 361, `${panel}: its tab is out of sight`);
    const small = await page.$$eval("svg.chart text", (all) => all.map((e) => e.getBoundingClientRect().height).filter((h) => h > 0 && h < 9));
    assert(!small.length, `${panel}: words of ${small[0]} pixels`);
    await picture(`phone-${panel.split("?")[0]}`);
  }
  await page.setViewportSize({ width: 1100, height: 900 });
});

await check("without_simd", async () => {
  const other = await context.newPage();
  watch(other);
  await other.addInitScript(() => (WebAssembly.validate = () => false));
  await other.goto(`${url}#see?kind=classic&ops=%2Bant`);
  await other.waitForSelector("#steps li");
  assert((await other.textContent("#status")) === "" || (await other.textContent("#status")).includes("SIMD"), "it says so");
  await other.close();
});

await check("nothing_from_outside", async () => assert(!outside.length, outside.join(" ")));
await check("no_complaint_on_the_console", async () => assert(!complaints.length, complaints.join("\n")));

/* The package itself, in a page and in a worker of another server. */
if (env.package) {
  await check("package_in_page_and_worker", async () => {
    const other = await context.newPage();
    other.setDefaultTimeout(60000);
    await other.goto(`${env.package}/tests/js_page.html`);
    for (const where of ["page", "worker"]) {
      const result = await other.evaluate((w) => window.run(w), where);
      for (const [name, failure] of Object.entries(result)) results[`${where}: ${name}`] = failure;
    }
    await other.close();
  });
}
console.log(JSON.stringify(results));
await context.close();
rmSync(home, { recursive: true, force: true });
